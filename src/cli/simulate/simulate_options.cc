// Each word is checked once, here, with a message that names the flag.
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

base::Result<void> check_numbers(const SimulateWords& words) {
    if (words.max_sequences < 1 || words.max_sequences > engine::kMaxSequences)
        return base::usage_error(
            fmt::format("--max-sequences {} is out of range", words.max_sequences),
            fmt::format("1 to {}", engine::kMaxSequences));
    if (words.max_queue < 0)
        return base::usage_error(fmt::format("--max-queue {} is out of range", words.max_queue),
                                 "0 or more");
    if (words.seed < 0)
        return base::usage_error(fmt::format("--seed {} is out of range", words.seed), "0 or more");
    if (words.requests &&
        (*words.requests < 1 || std::cmp_greater(*words.requests, simulator::kMaxRequests)))
        return base::usage_error(fmt::format("--requests {} is out of range", *words.requests),
                                 fmt::format("1 to {}", simulator::kMaxRequests));
    if (words.rate && !(*words.rate > 0 && *words.rate <= kMaxRate))
        return base::usage_error(fmt::format("--rate {} is out of range", *words.rate),
                                 "requests a second, above 0");
    for (const auto& [target, option] : {std::pair{words.ttft_target, "--ttft-target"},
                                         std::pair{words.itl_target, "--itl-target"}})
        if (target && !(*target > 0))
            return base::usage_error(fmt::format("{} {} is out of range", option, *target),
                                     "milliseconds, above 0");
    if (words.kv_layout != "streams" && words.kv_layout != "unified")
        return base::usage_error(fmt::format("--kv-layout {} is not known", words.kv_layout),
                                 "streams or unified");
    const int patterns =
        (words.users.empty() ? 0 : 1) + (words.rate ? 1 : 0) + (words.burst ? 1 : 0);
    if (patterns > 1)
        return base::usage_error("--users, --rate and --burst exclude each other",
                                 "give one of them");
    if (!words.trace.empty() && (words.rate || words.burst || words.requests))
        return base::usage_error("--trace brings its own arrivals",
                                 "leave out --rate, --burst and --requests; with --users, so many "
                                 "users ask its requests in turn");
    return {};
}

base::Result<void> read_load(const SimulateWords& words, SimulateOptions& options) {
    simulator::LoadShape& shape = options.plan.shape;
    const auto prompt = parse_range(words.prompt_tokens, "--prompt-tokens", 1);
    if (!prompt) return std::unexpected(prompt.error());
    const auto natural = parse_range(words.output_tokens, "--output-tokens", 0);
    if (!natural) return std::unexpected(natural.error());
    shape.prompt = *prompt, shape.natural = *natural;
    if (words.shared_tokens < 0)
        return base::usage_error(
            fmt::format("--shared-tokens {} is out of range", words.shared_tokens), "0 or more");
    shape.shared = Tokens{words.shared_tokens};
    shape.pattern = words.rate    ? ArrivalPattern::kPoisson
                    : words.burst ? ArrivalPattern::kBurst
                                  : ArrivalPattern::kUsers;
    shape.rate = words.rate.value_or(shape.rate);
    if (words.requests) shape.requests = *words.requests;
    options.plan.requests_given = words.requests.has_value();
    if (words.max_tokens != "omit") {
        const auto limit = whole_number(words.max_tokens);
        if (!limit || *limit < 1 || *limit > simulator::kMaxRequestTokens)
            return base::usage_error(
                fmt::format("--max-tokens {} is not a number of tokens", words.max_tokens),
                "a whole number from 1, or omit");
        shape.max_tokens = Tokens{*limit};
    }
    if (words.trace.empty()) return {};
    const auto text = read_input(words.trace, report::kMaxRunDocumentBytes, "trace",
                                 "a run document (probe --json) or JSON lines; see --help");
    if (!text) return std::unexpected(text.error());
    auto trace = simulator::read_trace(*text, words.trace);
    if (!trace) return std::unexpected(trace.error());
    options.plan.trace = std::move(trace->load);
    options.notes = std::move(trace->notes);
    return {};
}

base::Result<void> read_settings(const SimulateWords& words, SimulateOptions& options) {
    const auto pools = parse_sweep(words.kv_tokens, "--kv-tokens", kLeastPool, 1'000'000'000);
    if (!pools) return std::unexpected(pools.error());
    const auto modes = parse_modes(words.admission);
    if (!modes) return std::unexpected(modes.error());
    std::vector<std::optional<std::int64_t>> users = {std::nullopt};
    const bool users_ask = words.trace.empty() && !words.rate && !words.burst;
    if (users_ask || !words.users.empty()) {
        const auto numbers =
            parse_sweep(words.users.empty() ? "8" : words.users, "--users", 1, kMaxUsers);
        if (!numbers) return std::unexpected(numbers.error());
        users.assign(numbers->begin(), numbers->end());
    }
    for (const std::int64_t pool : *pools) {
        if (simulator::window_of(options.plan, {pool}).count == 0)
            return base::usage_error(
                fmt::format("--kv-tokens {} leaves less than {} tokens for each of {} streams",
                            pool, kLeastPool, words.max_sequences),
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

void declare_simulate(CLI::App& app, SimulateWords& words) {
    app.add_option("--users", words.users,
                   "so many users, each asking again when its answer ended: 8, 1,2,4 or 1..64 "
                   "(doubling); default 8");
    app.add_option("--rate", words.rate, "requests a second instead, at random moments (Poisson)");
    app.add_flag("--burst", words.burst, "all requests at once instead");
    app.add_option("--trace", words.trace,
                   "a recorded load instead: a run document, or lines of {at_ms, prompt_tokens, "
                   "output_tokens, max_tokens, "
                   "shared_tokens}")
        ->type_name("FILE");
    app.add_option("--requests", words.requests,
                   "requests of each setting; default: 8 for each user and at least 64");
    app.add_option("--prompt-tokens", words.prompt_tokens,
                   "length of prompts: a number or a range, 50..400")
        ->capture_default_str();
    app.add_option("--shared-tokens", words.shared_tokens,
                   "of each prompt, at its beginning, the same for all: a system prompt")
        ->capture_default_str();
    app.add_option("--output-tokens", words.output_tokens,
                   "length at which answers end by themselves: a number or a range")
        ->capture_default_str();
    app.add_option("--max-tokens", words.max_tokens, "limit that each request names, or 'omit'")
        ->capture_default_str();
    app.add_option("--kv-tokens", words.kv_tokens,
                   "tokens of KV cache, as for serve: one, several, or a range that doubles")
        ->capture_default_str();
    app.add_option("--admission", words.admission, "modes of admission, as for serve")
        ->capture_default_str();
    app.add_option("--max-sequences", words.max_sequences, "answers computed at once")
        ->capture_default_str();
    app.add_option("--max-queue", words.max_queue, "requests that may wait; more are refused")
        ->capture_default_str();
    app.add_option("--host-memory", words.host_memory,
                   "host memory for the KV of paused answers, as for serve")
        ->transform(CLI::AsSizeValue(false))
        ->default_str("1GB");
    app.add_option("--kv-layout", words.kv_layout, "streams or unified, as for serve")
        ->capture_default_str();
    app.add_option("--ttft-target", words.ttft_target,
                   "the first token shall come within so many milliseconds (p99)");
    app.add_option("--itl-target", words.itl_target,
                   "the next token shall come within so many milliseconds (p99); prompts are "
                   "computed in pieces that allow it, as in serve");
    app.add_option("--seed", words.seed,
                   "of lengths, arrivals and noise: the same seed gives the same bytes")
        ->capture_default_str();
    CLI::Option* calibrate = app.add_flag("--calibrate", words.calibrate,
                                          "measure this machine with --model, --kv-type, "
                                          "--kv-layout and --threads, keep the table, and end");
    app.add_option(
           "--cost", words.cost,
           "a cost table instead of the one that --calibrate kept; 'reference': the built-in one")
        ->type_name("FILE");
    app.add_option("--model", words.model, "whose table: a GGUF file, or 'builtin'")
        ->capture_default_str();
    app.add_option("--kv-type", words.kv_type, "whose table: q8_0 or f16")->capture_default_str();
    app.add_option("--threads", words.threads,
                   "whose table: threads for computing; 0: as serve chooses them")
        ->capture_default_str();
    app.add_flag("--no-noise", words.no_noise, "every step takes exactly what the table says");
    app.add_option("--json", words.json,
                   "write the document fullstop.simulation/1 to this file; - is standard output")
        ->type_name("FILE");
    app.add_option("--events", words.events, "write what happens when, one JSON object a line")
        ->type_name("FILE");
    app.add_flag("--quiet", words.quiet, "no progress and no notes on standard error");
    for (const char* other :
         {"--users",         "--rate",          "--burst",         "--trace",       "--requests",
          "--prompt-tokens", "--shared-tokens", "--output-tokens", "--max-tokens",  "--kv-tokens",
          "--admission",     "--max-queue",     "--host-memory",   "--ttft-target", "--itl-target",
          "--seed",          "--cost",          "--no-noise",      "--json",        "--events"})
        calibrate->excludes(
            app.get_option(other));  // it measures and ends: none of these would be looked at
    app.footer(
        "The engine is the one of 'fullstop serve'; only the model and the clock are simulated. "
        "How long a step takes comes from a table:\n"
        "the one that --calibrate measured on this machine, else a reference that is not your "
        "machine (the output says which).\n"
        "Not simulated: the network, HTTP, and what else the machine does.\n"
        "\nExamples:\n"
        "  fullstop simulate --users 1..16 --kv-tokens 1024..8192         how much KV cache do so "
        "many users need?\n"
        "  fullstop simulate --calibrate                                  measure this machine "
        "first\n"
        "  fullstop simulate --trace run.json --kv-tokens 2048,4096       the load of a recorded "
        "probe on other settings\n"
        "  fullstop simulate --rate 0.5 --itl-target 200 --json plan.json   which setting keeps a "
        "gap of 200 ms?");
}

base::Result<SimulateOptions> read_simulate(const SimulateWords& words) {
    SimulateOptions options;
    if (auto checked = check_numbers(words); !checked) return std::unexpected(checked.error());
    options.plan.streams = words.kv_layout == "streams";
    options.plan.max_sequences = words.max_sequences;
    options.plan.max_queue = static_cast<std::size_t>(words.max_queue);
    options.plan.seed = static_cast<std::uint64_t>(words.seed);
    if (words.itl_target) options.plan.itl_target = base::from_ms(*words.itl_target);
    options.targets = {.ttft_ms = words.ttft_target, .itl_ms = words.itl_target};
    if (auto read = read_load(words, options); !read) return std::unexpected(read.error());
    if (auto read = read_settings(words, options); !read) return std::unexpected(read.error());
    return options;
}

}  // namespace fullstop::cli
