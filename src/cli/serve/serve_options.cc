// Each flag is checked once, here, with a message that names it.
#include "cli/serve/serve_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "adapters/llama/text/chat_template.h"
#include "cli/listen_address.h"
#include "cli/probe/probe_options.h"
#include "cli/serve/config_file.h"

namespace fullstop::cli {
namespace {

namespace llama = adapters::llama;

constexpr const char* kBuiltinModel = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// The built-in model answers the built-in prompts: prompt and 512 tokens fit, and eight windows
/// take 100 MB.
constexpr base::Tokens kBuiltinWindow{1024};
constexpr int kMaxThreads = 512;
constexpr std::uintmax_t kMaxTextBytes = 1 << 20;  // of a template: thousands of lines

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Beside the program in a build folder, or where it is installed.
base::Result<std::filesystem::path> builtin_model(const std::filesystem::path& executable) {
    const auto folder = executable.parent_path();
    std::error_code ignored;
    for (const auto& candidate :
         {folder / "models" / kBuiltinModel,
          folder.parent_path() / "share" / "fullstop" / "models" / kBuiltinModel})
        if (std::filesystem::exists(candidate, ignored)) return candidate;
    return base::unreachable_error(fmt::format("the built-in model {} is not in {}", kBuiltinModel,
                                               (folder / "models").string()),
                                   "./setup puts it there; or give another one with --model FILE");
}

base::Result<void> read_kv(const ServeFlags& flags, llama::LoadOptions& out) {
    const auto type = engine::kv_type_of(flags.kv_type);
    if (!type)
        return base::usage_error(fmt::format("--kv-type {} is not known", flags.kv_type),
                                 "q8_0 or f16");
    out.kv_type = *type;
    out.layout = engine::kv_layout_of(flags.kv_layout);
    if (!out.layout && flags.kv_layout != "auto")
        return base::usage_error(fmt::format("--kv-layout {} is not known", flags.kv_layout),
                                 "auto, streams or unified");
    if (flags.load_invariant != "on" && flags.load_invariant != "off")
        return base::usage_error(
            fmt::format("--load-invariant {} is not known", flags.load_invariant), "on or off");
    out.load_invariant = flags.load_invariant == "on";
    if (flags.gpu_layers != "auto") {
        out.gpu_layers = whole_number(flags.gpu_layers);
        if (!out.gpu_layers || *out.gpu_layers < 0)
            return base::usage_error(
                fmt::format("--gpu-layers {} is not a number of layers", flags.gpu_layers),
                "a whole number, or auto");
    }
    if (flags.kv_tokens == "auto") return {};
    const auto tokens = whole_number(flags.kv_tokens);
    if (!tokens || *tokens < 1)
        return base::usage_error(
            fmt::format("--kv-tokens {} is not a number of tokens", flags.kv_tokens),
            "a whole number, or auto");
    out.kv_tokens = base::Tokens{*tokens};
    return {};
}

/// A number of milliseconds, or with its unit; "none": no target.
base::Result<std::optional<base::Duration>> read_target(const std::string& text,
                                                        const std::string& flag) {
    if (text == "none") return std::nullopt;
    const auto number = whole_number(text);
    const auto target = parse_duration(number ? text + "ms" : text, flag);
    if (target && *target > base::Duration::zero()) return *target;
    return base::usage_error(fmt::format("{} {}: a time above 0 is wanted", flag, text),
                             "for example 200 (milliseconds), 2s, or none");
}

base::Result<void> check_numbers(const ServeFlags& flags) {
    if (flags.max_sequences < 1 || flags.max_sequences > engine::kMaxSequences)
        return base::usage_error(
            fmt::format("--max-sequences {} is out of range", flags.max_sequences),
            fmt::format("1 to {}", engine::kMaxSequences));
    if (flags.max_queue < 0)
        return base::usage_error(fmt::format("--max-queue {} is out of range", flags.max_queue),
                                 "0 or more");
    if (flags.threads < 0 || flags.threads > kMaxThreads)
        return base::usage_error(fmt::format("--threads {} is out of range", flags.threads),
                                 fmt::format("1 to {}; 0 chooses", kMaxThreads));
    if (!engine::parse_admission(flags.admission))
        return base::usage_error(fmt::format("--admission {} is not known", flags.admission),
                                 "reserve, forecast or eager");
    return {};
}

base::Result<std::string> read_text(const std::string& name, std::string_view flag) {
    std::error_code trouble;
    const auto size = std::filesystem::file_size(name, trouble);
    if (trouble)
        return base::usage_error(fmt::format("{} {}: {}", flag, name, trouble.message()),
                                 "give a text file");
    if (size > kMaxTextBytes)
        return base::usage_error(fmt::format("{} {} has {} bytes", flag, name, size),
                                 fmt::format("at most {}", kMaxTextBytes));
    std::ifstream file(name);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file)
        return base::usage_error(fmt::format("{} {} cannot be read", flag, name),
                                 "check that it is not empty, and its permissions");
    return text.str();
}

/// The source, once it is known to be a program.
base::Result<std::string> read_template(const std::string& name) {
    if (name.empty()) return std::string();
    auto text = read_text(name, "--chat-template");
    if (!text) return text;
    if (const auto parsed = llama::ChatTemplate::parse(*text, {}, {}); !parsed)
        return base::usage_error(
            fmt::format("--chat-template {}: {}", name, parsed.error().message),
            "a Jinja program, as in tokenizer_config.json");
    return text;
}

}  // namespace

void declare_serve(CLI::App& app, ServeFlags& flags) {
    app.add_option("--model", flags.model, "a GGUF file, or 'builtin'")->capture_default_str();
    app.add_option("--listen", flags.listen, "HOST:PORT; port 0 picks a free one")
        ->capture_default_str();
    app.add_option("--kv-tokens", flags.kv_tokens,
                   "size of the KV cache in tokens, for all answers together; auto: chosen from "
                   "the model's window")
        ->capture_default_str();
    app.add_option("--kv-type", flags.kv_type, "q8_0 or f16")->capture_default_str();
    app.add_option("--kv-layout", flags.kv_layout,
                   "streams (each answer has its own window), unified (all answers share one "
                   "pool), auto (streams if every window fits)")
        ->capture_default_str();
    app.add_option("--max-sequences", flags.max_sequences, "answers computed at once")
        ->capture_default_str();
    app.add_option(
           "--admission", flags.admission,
           "when a waiting answer starts: when its longest possible length fits (reserve), when "
           "the length of recent answers fits (forecast), when its prompt fits (eager)")
        ->capture_default_str();
    app.add_option("--host-memory", flags.host_memory,
                   "host memory for the KV of paused answers, for example 512MB; 0: their KV is "
                   "computed again")
        ->transform(CLI::AsSizeValue(false))
        ->default_str("1GB");
    app.add_option("--ttft-target", flags.ttft_target,
                   "target for the time to first token, in milliseconds; each answer reports "
                   "whether it was met")
        ->capture_default_str();
    app.add_option(
           "--slo-policy", flags.slo_policy,
           "what happens to a request that will miss --ttft-target because of load: ignore (serve "
           "it), demote (one class lower), reject_early (503 with the expected wait)")
        ->capture_default_str();
    app.add_option("--itl-target", flags.itl_target,
                   "target for inter-token latency, in milliseconds: prompts are computed in "
                   "chunks that keep to it. The cost of a step is measured at start (10 s at "
                   "most), unless 'fullstop simulate --calibrate' kept a table")
        ->capture_default_str();
    app.add_option("--load-invariant", flags.load_invariant,
                   "on: an answer has the same bytes alone and in company (checked at start; costs "
                   "speed); off: faster")
        ->capture_default_str();
    app.add_option("--max-queue", flags.max_queue,
                   "requests that may wait; further ones get 503 with the expected wait")
        ->capture_default_str();
    app.add_option("--gpu-layers", flags.gpu_layers,
                   "layers computed on GPUs (needs ./setup --gpu); auto: as many as fit")
        ->capture_default_str();
    app.add_option(
           "--threads", flags.threads,
           "threads for computing; 0: every CPU but one, which is left to clients on this machine")
        ->capture_default_str();
    app.add_option("--drain", flags.drain, "time that running answers have after SIGTERM")
        ->capture_default_str();
    app.add_flag("--quiet", flags.quiet, "no progress and no summary on standard error");
    app.add_option("--chat-template", flags.chat_template,
                   "file with a Jinja chat template that replaces the model's own");
    declare_access(app, flags.access);
    declare_config(app, flags.config);
    app.footer(
        R"(When the KV cache is full, --admission forecast and eager pause the answer that came last: its KV
moves to host memory and comes back when there is room. A paused answer comes later and loses
nothing. The oldest answer is never paused.

--slo-policy forecasts the first token from the cost of a step: from the table that 'fullstop simulate
--calibrate' kept, else from the first steps of this run. Before it knows, it refuses and demotes nobody.

response_format json_object and json_schema are enforced by a grammar: 'stop' means that the JSON is
complete, 'length' that it was cut. A schema keyword that cannot be enforced gets a 400 that names it
(docs/response_format.md).

A prompt that cannot fit the window is refused ('at least N tokens'). If the last message of a
conversation is the assistant's, the answer continues it. POST /apply-template returns the prompt that
a conversation becomes.

--gpu-layers has been tried with a software Vulkan driver only, never on a GPU.

Prints 'listening on http://HOST:PORT' when ready. /health, /metrics and /fullstop/status show its state.

Examples:
  fullstop serve                                           the built-in small model on 127.0.0.1:8080
  fullstop serve --model chat.gguf --kv-tokens 32768 --max-sequences 4   four windows of 8192 tokens
  fullstop serve --config serve.toml --api-key-file keys   flags from a file; only key holders may ask)");
}

base::Result<ServeOptions> read_serve(const ServeFlags& flags, const World& world) {
    ServeOptions options;
    if (auto checked = check_numbers(flags); !checked) return std::unexpected(checked.error());
    if (auto read = read_kv(flags, options.load); !read) return std::unexpected(read.error());
    auto listen = parse_listen_address(flags.listen);
    if (!listen) return std::unexpected(listen.error());
    std::tie(options.host, options.port) = *listen;
    const auto drain = parse_duration(flags.drain, "--drain");
    if (!drain) return std::unexpected(drain.error());
    options.load.model = flags.model;
    if (flags.model == "builtin") {
        auto path = builtin_model(world.executable);
        if (!path) return std::unexpected(path.error());
        options.load.model = std::move(*path);
        options.load.auto_window = kBuiltinWindow;
    }
    options.load.max_sequences = flags.max_sequences;
    options.load.threads = flags.threads > 0 ? flags.threads : llama::default_threads();
    options.max_queue = static_cast<std::size_t>(flags.max_queue);
    options.admission = *engine::parse_admission(flags.admission);
    options.host_memory = base::Bytes{static_cast<std::int64_t>(flags.host_memory)};
    for (const auto& [text, flag, target] :
         {std::tuple{&flags.ttft_target, "--ttft-target", &options.ttft_target},
          std::tuple{&flags.itl_target, "--itl-target", &options.itl_target}}) {
        auto read = read_target(*text, flag);
        if (!read) return std::unexpected(read.error());
        *target = *read;
    }
    const auto policy = engine::parse_slo_policy(flags.slo_policy);
    if (!policy)
        return base::usage_error(fmt::format("--slo-policy {} is not known", flags.slo_policy),
                                 "ignore, demote or reject_early");
    if (*policy != engine::SloPolicy::kIgnore && !options.ttft_target)
        return base::usage_error(fmt::format("--slo-policy {} without a target", flags.slo_policy),
                                 "give --ttft-target, for example 2s");
    options.slo_policy = *policy;
    options.drain = *drain;
    auto access = read_access(flags.access);
    if (!access) return std::unexpected(access.error());
    options.access = std::move(*access);
    auto form = read_template(flags.chat_template);
    if (!form) return std::unexpected(form.error());
    options.load.chat_template = std::move(*form);
    options.quiet = flags.quiet;
    return options;
}

}  // namespace fullstop::cli
