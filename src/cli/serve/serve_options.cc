// Each word is checked once, here, with a message that names the flag.
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

/// The words that libllama's side understands.
base::Result<void> read_kv(const ServeWords& words, llama::LoadOptions& out) {
    if (words.kv_type != "q8_0" && words.kv_type != "f16")
        return base::usage_error(fmt::format("--kv-type {} is not known", words.kv_type),
                                 "q8_0 or f16");
    out.kv_type = words.kv_type == "f16" ? llama::KvType::kF16 : llama::KvType::kQ8_0;
    if (words.kv_layout != "auto" && words.kv_layout != "streams" && words.kv_layout != "unified")
        return base::usage_error(fmt::format("--kv-layout {} is not known", words.kv_layout),
                                 "auto, streams or unified");
    if (words.kv_layout != "auto")
        out.layout =
            words.kv_layout == "unified" ? llama::KvLayout::kUnified : llama::KvLayout::kStreams;
    if (words.load_invariant != "on" && words.load_invariant != "off")
        return base::usage_error(
            fmt::format("--load-invariant {} is not known", words.load_invariant), "on or off");
    out.load_invariant = words.load_invariant == "on";
    if (words.gpu_layers != "auto") {
        out.gpu_layers = whole_number(words.gpu_layers);
        if (!out.gpu_layers || *out.gpu_layers < 0)
            return base::usage_error(
                fmt::format("--gpu-layers {} is not a number of layers", words.gpu_layers),
                "a whole number, or auto");
    }
    if (words.kv_tokens == "auto") return {};
    const auto tokens = whole_number(words.kv_tokens);
    if (!tokens || *tokens < 1)
        return base::usage_error(
            fmt::format("--kv-tokens {} is not a number of tokens", words.kv_tokens),
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

base::Result<void> check_numbers(const ServeWords& words) {
    if (words.max_sequences < 1 || words.max_sequences > engine::kMaxSequences)
        return base::usage_error(
            fmt::format("--max-sequences {} is out of range", words.max_sequences),
            fmt::format("1 to {}", engine::kMaxSequences));
    if (words.max_queue < 0)
        return base::usage_error(fmt::format("--max-queue {} is out of range", words.max_queue),
                                 "0 or more");
    if (words.threads < 0 || words.threads > kMaxThreads)
        return base::usage_error(fmt::format("--threads {} is out of range", words.threads),
                                 fmt::format("1 to {}; 0 chooses", kMaxThreads));
    if (!engine::parse_admission(words.admission))
        return base::usage_error(fmt::format("--admission {} is not known", words.admission),
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

void declare_serve(CLI::App& app, ServeWords& words) {
    app.add_option("--model", words.model, "a GGUF file, or 'builtin'")->capture_default_str();
    app.add_option("--listen", words.listen, "HOST:PORT; port 0 picks a free one")
        ->capture_default_str();
    app.add_option("--kv-tokens", words.kv_tokens,
                   "tokens of KV cache for all answers together, or 'auto'")
        ->capture_default_str();
    app.add_option("--kv-type", words.kv_type, "q8_0 or f16")->capture_default_str();
    app.add_option("--kv-layout", words.kv_layout,
                   "streams (each answer owns its window), unified (all share the pool), or auto: "
                   "streams if every window fits the pool")
        ->capture_default_str();
    app.add_option("--max-sequences", words.max_sequences, "answers computed at once")
        ->capture_default_str();
    app.add_option("--admission", words.admission,
                   "when an answer starts: when its longest course fits (reserve), what answers "
                   "came to lately (forecast), or its prompt (eager)")
        ->capture_default_str();
    app.add_option(
           "--host-memory", words.host_memory,
           "host memory for the KV of paused answers, for example 512MB; 0: it is computed again")
        ->transform(CLI::AsSizeValue(false))
        ->default_str("1GB");
    app.add_option("--ttft-target", words.ttft_target,
                   "first token wanted within so many milliseconds of arrival; answers say whether "
                   "it was met")
        ->capture_default_str();
    app.add_option("--slo-policy", words.slo_policy,
                   "a request whose first token is expected later than --ttft-target because of "
                   "load: ignore (serve it), demote (one class lower), "
                   "reject_early (503 with the estimate and when to come again)")
        ->capture_default_str();
    app.add_option("--itl-target", words.itl_target,
                   "next tokens wanted within so many milliseconds: prompts are computed in pieces "
                   "that allow it. What a step costs here is "
                   "measured at the start, for 10 s at most, unless 'fullstop simulate "
                   "--calibrate' kept a table")
        ->capture_default_str();
    app.add_option("--load-invariant", words.load_invariant,
                   "on: an answer has the same bytes alone and in company, at some cost in speed, "
                   "checked at the start; off: faster")
        ->capture_default_str();
    app.add_option("--max-queue", words.max_queue,
                   "requests that may wait; more are refused with an estimate")
        ->capture_default_str();
    app.add_option("--gpu-layers", words.gpu_layers,
                   "layers computed on GPUs, in a build with ./setup --gpu; auto: as many as fit, "
                   "none without a GPU")
        ->capture_default_str();
    app.add_option(
           "--threads", words.threads,
           "threads for computing; 0: every CPU but one, which is left to clients on this machine")
        ->capture_default_str();
    app.add_option("--drain", words.drain, "how long running answers may go on after SIGTERM")
        ->capture_default_str();
    app.add_flag("--quiet", words.quiet, "no progress and no summary on standard error");
    app.add_option("--chat-template", words.chat_template,
                   "a file with a Jinja chat template, instead of the model's own");
    declare_access(app, words.access);
    declare_config(app, words.config);
    app.footer(
        "With forecast and eager more answers share a small cache; when it runs full, one that "
        "came late is paused: its KV goes to host\n"
        "memory and comes back when there is room. It comes later and loses nothing; the oldest is "
        "never paused.\n"
        "The first token of a request is forecast from what steps cost: as 'fullstop simulate "
        "--calibrate' measured, else as the first\n"
        "steps show, until which nobody is refused or demoted. --gpu-layers was tried with a "
        "software driver for Vulkan only, where answers\n"
        "came and the check for the same text said 'not verified'; no real GPU was at hand.\n"
        "response_format json_object and json_schema are kept by a grammar: 'stop' means that the "
        "JSON is complete, 'length' that it was cut.\n"
        "A keyword of a schema that cannot be kept is a 400 that names it "
        "(docs/response_format.md).\n"
        "A prompt that surely fills the window is refused before it is read ('at least N tokens'). "
        "A conversation that ends with the\n"
        "assistant's words is gone on with behind them; POST /apply-template shows what a "
        "conversation becomes as a prompt.\n"
        "Prints 'listening on http://HOST:PORT' when ready. /health, /metrics and /fullstop/status "
        "tell how it is doing.\n"
        "\nExamples:\n"
        "  fullstop serve                                              the built-in small model on "
        "127.0.0.1:8080\n"
        "  fullstop serve --model chat.gguf --kv-tokens 32768 --max-sequences 4   four answers, a "
        "window of 8192 tokens each\n"
        "  fullstop serve --config serve.toml --api-key-file keys      flags from a file; only who "
        "holds a key may ask");
}

base::Result<ServeOptions> read_serve(const ServeWords& words, const World& world) {
    ServeOptions options;
    if (auto checked = check_numbers(words); !checked) return std::unexpected(checked.error());
    if (auto read = read_kv(words, options.load); !read) return std::unexpected(read.error());
    auto listen = parse_listen_address(words.listen);
    if (!listen) return std::unexpected(listen.error());
    std::tie(options.host, options.port) = *listen;
    const auto drain = parse_duration(words.drain, "--drain");
    if (!drain) return std::unexpected(drain.error());
    options.load.model = words.model;
    if (words.model == "builtin") {
        auto path = builtin_model(world.executable);
        if (!path) return std::unexpected(path.error());
        options.load.model = std::move(*path);
        options.load.auto_window = kBuiltinWindow;
    }
    options.load.max_sequences = words.max_sequences;
    options.load.threads = words.threads > 0 ? words.threads : llama::default_threads();
    options.max_queue = static_cast<std::size_t>(words.max_queue);
    options.admission = *engine::parse_admission(words.admission);
    options.host_memory = base::Bytes{static_cast<std::int64_t>(words.host_memory)};
    for (const auto& [text, flag, target] :
         {std::tuple{&words.ttft_target, "--ttft-target", &options.ttft_target},
          std::tuple{&words.itl_target, "--itl-target", &options.itl_target}}) {
        auto read = read_target(*text, flag);
        if (!read) return std::unexpected(read.error());
        *target = *read;
    }
    const auto policy = engine::parse_slo_policy(words.slo_policy);
    if (!policy)
        return base::usage_error(fmt::format("--slo-policy {} is not known", words.slo_policy),
                                 "ignore, demote or reject_early");
    if (*policy != engine::SloPolicy::kIgnore && !options.ttft_target)
        return base::usage_error(fmt::format("--slo-policy {} without a target", words.slo_policy),
                                 "give --ttft-target, for example 2s");
    options.slo_policy = *policy;
    options.drain = *drain;
    auto access = read_access(words.access);
    if (!access) return std::unexpected(access.error());
    options.access = std::move(*access);
    auto form = read_template(words.chat_template);
    if (!form) return std::unexpected(form.error());
    options.load.chat_template = std::move(*form);
    options.quiet = words.quiet;
    return options;
}

}  // namespace fullstop::cli
