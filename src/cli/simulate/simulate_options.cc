// Each flag is checked once, here, with a message that names it.
#include "cli/simulate/simulate_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/input_file.h"
#include "report/json/run_json.h"
#include "simulator/capacity/serving_trace.h"

namespace fullstop::cli {
namespace {

using base::Tokens;
using simulator::ArrivalPattern;

constexpr std::int64_t kMaxUsers = 100'000;
constexpr std::int64_t kLeastPool =
    256;  // libllama's least window (adapters/llama/model/loading.cc)
constexpr double kMaxRate = 1e6;

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// The two numbers of "100..400", or of "250" twice.
std::optional<std::pair<std::int64_t, std::int64_t>> two_numbers(std::string_view text) {
    const std::size_t dots = text.find("..");
    const auto low = whole_number(text.substr(0, dots));
    const auto high = dots == std::string_view::npos ? low : whole_number(text.substr(dots + 2));
    if (!low || !high || *low > *high) return std::nullopt;
    return std::pair(*low, *high);
}

base::Result<simulator::TokenRange> parse_range(const std::string& text, const std::string& option,
                                                std::int64_t low) {
    const auto range = two_numbers(text);
    if (!range || range->first < low || range->second > simulator::kMaxRequestTokens)
        return base::usage_error(fmt::format("{} {} is not a number of tokens", option, text),
                                 fmt::format("a number from {}, or a range such as 100..400", low));
    return simulator::TokenRange{.low = {range->first}, .high = {range->second}};
}

base::Result<std::vector<engine::AdmissionMode>> parse_modes(const std::string& text) {
    std::vector<engine::AdmissionMode> modes;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const auto mode =
            engine::parse_admission(std::string_view(text).substr(begin, end - begin));
        if (!mode)
            return base::usage_error(fmt::format("--admission {} is not known", text),
                                     "reserve, forecast, eager, or several of them: reserve,eager");
        if (std::ranges::find(modes, *mode) == modes.end()) modes.push_back(*mode);
        begin = end + 1;
    }
    return modes;
}

base::Result<void> check_numbers(const SimulateFlags& flags) {
    if (flags.max_sequences < 1 || flags.max_sequences > engine::kMaxSequences)
        return base::usage_error(
            fmt::format("--max-sequences {} is out of range", flags.max_sequences),
            fmt::format("1 to {}", engine::kMaxSequences));
    if (flags.max_queue < 0)
        return base::usage_error(fmt::format("--max-queue {} is out of range", flags.max_queue),
                                 "0 or more");
    if (flags.seed < 0)
        return base::usage_error(fmt::format("--seed {} is out of range", flags.seed), "0 or more");
    if (flags.requests &&
        (*flags.requests < 1 || std::cmp_greater(*flags.requests, simulator::kMaxRequests)))
        return base::usage_error(fmt::format("--requests {} is out of range", *flags.requests),
                                 fmt::format("1 to {}", simulator::kMaxRequests));
    if (flags.rate && !(*flags.rate > 0 && *flags.rate <= kMaxRate))
        return base::usage_error(fmt::format("--rate {} is out of range", *flags.rate),
                                 "requests a second, above 0");
    for (const auto& [target, option] : {std::pair{flags.ttft_target, "--ttft-target"},
                                         std::pair{flags.itl_target, "--itl-target"}})
        if (target && !(*target > 0))
            return base::usage_error(fmt::format("{} {} is out of range", option, *target),
                                     "milliseconds, above 0");
    if (flags.kv_layout != "streams" && flags.kv_layout != "unified")
        return base::usage_error(fmt::format("--kv-layout {} is not known", flags.kv_layout),
                                 "streams or unified");
    const int patterns =
        (flags.users.empty() ? 0 : 1) + (flags.rate ? 1 : 0) + (flags.burst ? 1 : 0);
    if (patterns > 1)
        return base::usage_error("--users, --rate and --burst exclude each other",
                                 "give one of them");
    if (!flags.trace.empty() && (flags.rate || flags.burst || flags.requests))
        return base::usage_error("--trace brings its own arrivals",
                                 "leave out --rate, --burst and --requests; with --users, so many "
                                 "users ask its requests in turn");
    return {};
}

base::Result<void> read_load(const SimulateFlags& flags, SimulateOptions& options) {
    simulator::LoadShape& shape = options.plan.shape;
    const auto prompt = parse_range(flags.prompt_tokens, "--prompt-tokens", 1);
    if (!prompt) return std::unexpected(prompt.error());
    const auto natural = parse_range(flags.output_tokens, "--output-tokens", 0);
    if (!natural) return std::unexpected(natural.error());
    shape.prompt = *prompt, shape.natural = *natural;
    if (flags.shared_tokens < 0)
        return base::usage_error(
            fmt::format("--shared-tokens {} is out of range", flags.shared_tokens), "0 or more");
    shape.shared = Tokens{flags.shared_tokens};
    shape.pattern = flags.rate    ? ArrivalPattern::kPoisson
                    : flags.burst ? ArrivalPattern::kBurst
                                  : ArrivalPattern::kUsers;
    shape.rate = flags.rate.value_or(shape.rate);
    if (flags.requests) shape.requests = *flags.requests;
    options.plan.requests_given = flags.requests.has_value();
    if (flags.max_tokens != "omit") {
        const auto limit = whole_number(flags.max_tokens);
        if (!limit || *limit < 1 || *limit > simulator::kMaxRequestTokens)
            return base::usage_error(
                fmt::format("--max-tokens {} is not a number of tokens", flags.max_tokens),
                "a whole number from 1, or omit");
        shape.max_tokens = Tokens{*limit};
    }
    if (flags.trace.empty()) return {};
    const auto text = read_input(flags.trace, report::kMaxRunDocumentBytes, "trace",
                                 "a run document (probe --json) or JSON lines; see --help");
    if (!text) return std::unexpected(text.error());
    auto trace = simulator::read_trace(*text, flags.trace);
    if (!trace) return std::unexpected(trace.error());
    options.plan.trace = std::move(trace->load);
    options.notes = std::move(trace->notes);
    return {};
}

base::Result<void> read_settings(const SimulateFlags& flags, SimulateOptions& options) {
    const auto pools = parse_sweep(flags.kv_tokens, "--kv-tokens", kLeastPool, 1'000'000'000);
    if (!pools) return std::unexpected(pools.error());
    const auto modes = parse_modes(flags.admission);
    if (!modes) return std::unexpected(modes.error());
    std::vector<std::optional<std::int64_t>> users = {std::nullopt};
    const bool users_ask = flags.trace.empty() && !flags.rate && !flags.burst;
    if (users_ask || !flags.users.empty()) {
        const auto numbers =
            parse_sweep(flags.users.empty() ? "8" : flags.users, "--users", 1, kMaxUsers);
        if (!numbers) return std::unexpected(numbers.error());
        users.assign(numbers->begin(), numbers->end());
    }
    for (const std::int64_t pool : *pools) {
        if (simulator::window_of(options.plan, {pool}).count == 0)
            return base::usage_error(
                fmt::format("--kv-tokens {} leaves less than {} tokens for each of {} streams",
                            pool, kLeastPool, flags.max_sequences),
                "give more, fewer --max-sequences, or --kv-layout unified");
        for (const auto& number : users)
            for (const auto mode : *modes)
                options.plan.settings.push_back(
                    {.pool = {pool}, .users = number, .admission = mode});
    }
    if (options.plan.settings.size() > simulator::kMaxSettings)
        return base::usage_error(fmt::format("{} settings are more than {}",
                                             options.plan.settings.size(), simulator::kMaxSettings),
                                 "sweep over less at a time");
    return {};
}

}  // namespace

base::Result<std::vector<std::int64_t>> parse_sweep(const std::string& text,
                                                    const std::string& option, std::int64_t low,
                                                    std::int64_t high) {
    const auto wrong = [&] {
        return base::usage_error(
            fmt::format("{} {} is not a list of numbers from {} to {}", option, text, low, high),
            "for example 1024, or 512,3000, or 512..8192 (doubling)");
    };
    std::vector<std::int64_t> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const auto range = two_numbers(std::string_view(text).substr(begin, end - begin));
        if (!range || range->first < low || range->second > high) return wrong();
        for (std::int64_t number = range->first; number < range->second; number *= 2)
            numbers.push_back(number);
        numbers.push_back(range->second);
        begin = end + 1;
    }
    std::ranges::sort(numbers);
    numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
    return numbers;
}

void declare_simulate(CLI::App& app, SimulateFlags& flags) {
    app.add_option("--users", flags.users,
                   "numbers of users, each asking again when its answer has ended: 8, or 1,2,4, or "
                   "1..64 (doubling); default 8");
    app.add_option("--rate", flags.rate,
                   "instead of users: requests per second, at random moments (Poisson)");
    app.add_flag("--burst", flags.burst, "instead of users: all requests at once");
    app.add_option("--trace", flags.trace,
                   "instead of users: a recorded load, as a run document or as lines of {at_ms, "
                   "prompt_tokens, output_tokens, max_tokens, shared_tokens}")
        ->type_name("FILE");
    app.add_option("--requests", flags.requests,
                   "requests per setting; default: 8 per user, at least 64");
    app.add_option("--prompt-tokens", flags.prompt_tokens,
                   "prompt length: a number or a range, 50..400")
        ->capture_default_str();
    app.add_option(
           "--shared-tokens", flags.shared_tokens,
           "tokens at the beginning of every prompt that are the same for all (a system prompt)")
        ->capture_default_str();
    app.add_option("--output-tokens", flags.output_tokens,
                   "natural length of an answer: a number or a range")
        ->capture_default_str();
    app.add_option("--max-tokens", flags.max_tokens, "limit that each request names, or 'omit'")
        ->capture_default_str();
    app.add_option("--kv-tokens", flags.kv_tokens,
                   "sizes of the KV cache in tokens: one, several, or a range that doubles")
        ->capture_default_str();
    app.add_option("--admission", flags.admission, "admission modes, as for serve")
        ->capture_default_str();
    app.add_option("--max-sequences", flags.max_sequences, "answers computed at once")
        ->capture_default_str();
    app.add_option("--max-queue", flags.max_queue,
                   "requests that may wait; further ones are refused")
        ->capture_default_str();
    app.add_option("--host-memory", flags.host_memory,
                   "host memory for the KV of paused answers, as for serve")
        ->transform(CLI::AsSizeValue(false))
        ->default_str("1GB");
    app.add_option("--kv-layout", flags.kv_layout, "streams or unified, as for serve")
        ->capture_default_str();
    app.add_option("--ttft-target", flags.ttft_target,
                   "target for the time to first token, in milliseconds (p99)");
    app.add_option("--itl-target", flags.itl_target,
                   "target for inter-token latency, in milliseconds (p99); prompts are computed in "
                   "chunks that keep to it, as in serve");
    app.add_option("--seed", flags.seed,
                   "seed of lengths, arrivals and noise: the same seed gives the same bytes")
        ->capture_default_str();
    CLI::Option* calibrate =
        app.add_flag("--calibrate", flags.calibrate,
                     "measure this machine with --model, --kv-type, --kv-layout and --threads, "
                     "keep the table, and exit; no other flag goes with it");
    app.add_option("--cost", flags.cost,
                   "cost table to use instead of the one that --calibrate kept; 'reference': the "
                   "built-in one")
        ->type_name("FILE");
    app.add_option("--model", flags.model, "model of the cost table: a GGUF file, or 'builtin'")
        ->capture_default_str();
    app.add_option("--kv-type", flags.kv_type, "KV type of the cost table: q8_0 or f16")
        ->capture_default_str();
    app.add_option("--threads", flags.threads,
                   "whose table: threads for computing; 0: as serve chooses them")
        ->capture_default_str();
    app.add_flag("--no-noise", flags.no_noise, "every step takes exactly the time of the table");
    app.add_option("--json", flags.json,
                   "write the document fullstop.simulation/1 to this file; - is standard output")
        ->type_name("FILE");
    app.add_option("--events", flags.events, "write every event as one JSON object per line")
        ->type_name("FILE");
    app.add_flag("--quiet", flags.quiet, "no progress and no notes on standard error");
    for (const char* other :
         {"--users",         "--rate",          "--burst",         "--trace",       "--requests",
          "--prompt-tokens", "--shared-tokens", "--output-tokens", "--max-tokens",  "--kv-tokens",
          "--admission",     "--max-queue",     "--host-memory",   "--ttft-target", "--itl-target",
          "--seed",          "--cost",          "--no-noise",      "--json",        "--events"})
        calibrate->excludes(
            app.get_option(other));  // it measures and ends: none of these would be looked at
    app.footer(
        R"(This is the engine of 'fullstop serve'; only the model and the clock are simulated. The time of a step
comes from a table: the one that --calibrate measured on this machine, else a reference that is not your
machine (the output says which). The network, HTTP and other load on the machine are not simulated.

Examples:
  fullstop simulate --users 1..16 --kv-tokens 1024..8192         how much KV cache do so many users need?
  fullstop simulate --calibrate                                  measure this machine first
  fullstop simulate --trace run.json --kv-tokens 2048,4096       a recorded probe on other settings
  fullstop simulate --rate 0.5 --itl-target 200 --json plan.json which setting keeps 200 ms between tokens?)");
}

base::Result<SimulateOptions> read_simulate(const SimulateFlags& flags) {
    SimulateOptions options;
    if (auto checked = check_numbers(flags); !checked) return std::unexpected(checked.error());
    options.plan.streams = flags.kv_layout == "streams";
    options.plan.max_sequences = flags.max_sequences;
    options.plan.max_queue = static_cast<std::size_t>(flags.max_queue);
    options.plan.seed = static_cast<std::uint64_t>(flags.seed);
    if (flags.itl_target) options.plan.itl_target = base::from_ms(*flags.itl_target);
    options.targets = {.ttft_ms = flags.ttft_target, .itl_ms = flags.itl_target};
    if (auto read = read_load(flags, options); !read) return std::unexpected(read.error());
    if (auto read = read_settings(flags, options); !read) return std::unexpected(read.error());
    return options;
}

}  // namespace fullstop::cli
