// Flags to values, one check at a time; each error names the flag, what it got and what it wants.
#include "cli/probe/probe_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "net/limits.h"
#include "probe/schedule.h"

namespace fullstop::cli {
namespace {

base::Result<std::vector<int>> parse_levels(const std::string& text) {
    const std::string hint = fmt::format(
        "give numbers of users from 1 to {}, like --levels 1,2,4,8", net::kMaxConcurrency);
    std::vector<int> levels;
    for (const std::string& word : CLI::detail::split(text, ',')) {
        int level = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), level);
        if (error != std::errc() || end != word.data() + word.size() || level < 1 ||
            level > net::kMaxConcurrency)
            return base::usage_error(
                fmt::format("--levels: '{}' is not a number of users that can be probed", word),
                hint);
        levels.push_back(level);
    }
    std::ranges::sort(levels);
    levels.erase(std::ranges::unique(levels).begin(), levels.end());
    if (levels.empty()) return base::usage_error("--levels names no level", hint);
    if (levels.front() != 1)
        levels.insert(levels.begin(), 1);  // every comparison is against one user alone
    return levels;
}

base::Result<std::optional<base::Tokens>> parse_max_tokens(const std::string& text) {
    if (text == "omit") return std::optional<base::Tokens>();
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > 10'000'000)
        return base::usage_error(
            fmt::format("--max-tokens: '{}' is neither a positive number nor 'omit'", text));
    return std::optional(base::Tokens{count});
}

base::Result<wire::Headers> parse_headers(const ProbeFlags& flags,
                                          const std::optional<std::string>& secret) {
    wire::Headers headers;
    for (const std::string& line : flags.headers) {
        const auto colon = line.find(':');
        if (colon == std::string::npos || colon == 0 ||
            line.find_first_of("\r\n") != std::string::npos)
            return base::usage_error("--header wants 'Name: value' on one line",
                                     "example: --header 'X-Team: lab'");
        const auto value = line.find_first_not_of(' ', colon + 1);
        headers.emplace_back(line.substr(0, colon),
                             value == std::string::npos ? "" : line.substr(value));
    }
    if (!flags.api_key_env.empty()) {
        if (!secret || secret->empty())
            return base::usage_error(
                fmt::format("--api-key-env: the environment variable {} is not set",
                            flags.api_key_env),
                fmt::format("export {}=... and run again; the key is never stored or printed",
                            flags.api_key_env));
        if (secret->find_first_of("\r\n") != std::string::npos)
            return base::usage_error("--api-key-env: the key holds a line break");
        headers.emplace_back("Authorization", "Bearer " + *secret);
    }
    return headers;
}

base::Result<base::Duration> parse_start(const std::string& text) {
    if (text == "together") return base::Duration{};
    if (text.starts_with("staggered:")) return parse_duration(text.substr(10), "--start staggered");
    return base::usage_error(
        fmt::format("--start: '{}' is neither 'together' nor 'staggered:SECONDS'", text));
}

base::Result<answer::Experiment> experiment_of(const ProbeFlags& flags) {
    answer::Experiment experiment;
    auto levels = parse_levels(flags.levels);
    if (!levels) return std::unexpected(levels.error());
    experiment.levels = *levels;
    auto max_tokens = parse_max_tokens(flags.max_tokens);
    if (!max_tokens) return std::unexpected(max_tokens.error());
    experiment.max_tokens = *max_tokens;
    if (flags.repeat < 1 || flags.repeat > 1000)
        return base::usage_error("--repeat wants a number from 1 to 1000");
    experiment.repeat = flags.quick ? 1 : flags.repeat;
    if (flags.temperature < 0 || flags.temperature > 5)
        return base::usage_error("--temperature wants a number from 0 to 5");
    experiment.temperature = flags.temperature;
    if (flags.top_p && (*flags.top_p <= 0 || *flags.top_p > 1))
        return base::usage_error("--top-p wants a number above 0 and up to 1");
    experiment.top_p = flags.top_p;
    experiment.seed = flags.seed;
    auto stagger = parse_start(flags.start);
    if (!stagger) return std::unexpected(stagger.error());
    experiment.stagger = *stagger;
    // The embedded server is there to see what a verdict looks like; a server of one's own deserves
    // the longer look.
    const std::string usual = flags.quick ? "2m" : flags.url.empty() ? "3m" : "10m";
    auto budget = parse_duration(flags.budget.empty() ? usual : flags.budget, "--budget");
    if (!budget) return std::unexpected(budget.error());
    experiment.budget = *budget;
    for (auto [text, name, target] :
         {std::tuple{&flags.client_deadline, "--client-deadline", &experiment.client_deadline},
          std::tuple{&flags.client_idle, "--client-idle", &experiment.client_idle}}) {
        if (text->empty()) continue;
        auto limit = parse_duration(*text, name);
        if (!limit) return std::unexpected(limit.error());
        *target = *limit;
    }
    return experiment;
}

/// A look of two minutes: this many pairs are the fewest that judge compares, and prompts of any
/// length stay in.
constexpr std::size_t kQuickPrompts = 8;

std::vector<answer::Prompt> fewer(const std::vector<answer::Prompt>& prompts) {
    if (prompts.size() <= kQuickPrompts) return prompts;
    std::vector<answer::Prompt> some;
    for (std::size_t i = 0; i < kQuickPrompts; ++i)
        some.push_back(prompts[i * prompts.size() / kQuickPrompts]);
    return some;
}

}  // namespace

void declare_probe_options(CLI::App& app, ProbeFlags& flags) {
    app.add_option(
        "URL", flags.url,
        "the server's root or its /v1; default: the embedded server with its small model");
    app.add_option("--model", flags.model, "model name; default: the first one the server lists");
    app.add_option("--api", flags.api,
                   "auto, openai-chat, openai-completions, ollama, llama-server, koboldcpp, tgi")
        ->capture_default_str();
    app.add_option("--levels", flags.levels,
                   "numbers of concurrent users; each is compared with one user alone")
        ->capture_default_str();
    app.add_option("--prompts", flags.prompts,
                   "prompts as JSON lines; default: a built-in set whose answers can be checked");
    app.add_option("--repeat", flags.repeat, "runs of each prompt and seed at each level")
        ->capture_default_str();
    app.add_option("--max-tokens", flags.max_tokens,
                   "limit sent with each request; 'omit' sends none, which shows hidden defaults")
        ->capture_default_str();
    app.add_option("--temperature", flags.temperature, "temperature at every level")
        ->capture_default_str();
    app.add_option("--top-p", flags.top_p, "default: the server's");
    app.add_option("--seed", flags.seed, "first seed; the same seeds at every level")
        ->capture_default_str();
    app.add_option("--client-deadline", flags.client_deadline,
                   "abandon an answer after so long, like 60s; default: never");
    app.add_option("--client-idle", flags.client_idle,
                   "abandon an answer after so long a silence, like 30s; default: never");
    app.add_option("--control", flags.control,
                   "URL of the server behind the gateway at URL: probed as the control arm");
    app.add_flag("--no-control", flags.no_control, "leave out the control arm");
    app.add_flag("--no-observe", flags.no_observe,
                 "do not ask the server about itself during the probe");
    app.add_option("--start", flags.start, "when users start: 'together' or 'staggered:SECONDS'")
        ->capture_default_str();
    app.add_option("--budget", flags.budget,
                   "time for the whole probe; repeats and levels shrink to fit it. Default: 10m; "
                   "2m with --quick; 3m for the embedded server");
    app.add_flag("--quick", flags.quick, "a two-minute look: 8 prompts at most, one repeat");
    app.add_option("--header", flags.headers, "'Name: value' for each request; never stored");
    app.add_option("--api-key-env", flags.api_key_env,
                   "name of the environment variable with the API key; never stored");
    app.add_flag("--insecure", flags.insecure,
                 "accept any TLS certificate (self-signed home servers)");
    app.add_option("--metrics-url", flags.metrics_url,
                   "URL of the server's Prometheus metrics; default: searched for");
    app.add_option("--log-file", flags.log_file,
                   "the server's log; what it says during the probe is evidence");
    app.add_option("--store", flags.store,
                   "where runs are kept: an SQLite file, postgresql://USER@HOST:PORT/DB (password: "
                   "PGPASSWORD or ~/.pgpass), or 'none'; default: a file in "
                   "your state folder");
    app.add_option("--captures", flags.captures,
                   "folder for the raw bytes of every answer, one file each");
    app.add_flag("--dry-run", flags.dry_run,
                 "print the schedule; send only the requests that identify the server");
    app.add_flag("--quiet", flags.quiet, "no progress");
    declare_documents(app, flags.documents);
    app.footer(
        "Examples:\n"
        "  fullstop probe                                   the embedded server, to see what a "
        "verdict looks like\n"
        "  fullstop probe http://127.0.0.1:8080 --quick     a two-minute look at your own server\n"
        "  fullstop probe http://gateway:8081 --control http://server:8080 --json run.json\n"
        "\n"
        "Exit: 0 nothing was shortened, 1 answers were shortened, 2 usage, 3 inconclusive, 4 could "
        "not measure, 130 interrupted.");
}

base::Result<base::Duration> parse_duration(const std::string& text, const std::string& option) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string unit(end, text.data() + text.size());
    const double seconds = unit.empty() || unit == "s" ? 1
                           : unit == "ms"              ? 0.001
                           : unit == "m"               ? 60
                           : unit == "h"               ? 3600
                                                       : 0;
    if (error != std::errc() || seconds == 0 || !(number > 0) ||
        number * seconds > 30.0 * 24 * 3600)
        return base::usage_error(fmt::format("{}: '{}' is not a time", option, text),
                                 "write it like 90s, 10m or 1.5h");
    return base::from_ms(number * seconds * 1000);
}

base::Result<ProbeOptions> check_probe_options(const ProbeFlags& flags,
                                               const std::optional<std::string>& secret,
                                               const std::optional<std::string>& prompts_text) {
    ProbeOptions options;
    auto experiment = experiment_of(flags);
    if (!experiment) return std::unexpected(experiment.error());
    options.experiment = *experiment;
    auto headers = parse_headers(flags, secret);
    if (!headers) return std::unexpected(headers.error());
    options.headers = *headers;
    if (flags.api != "auto") {
        options.api = answer::parse_api(flags.api);
        if (!options.api)
            return base::usage_error(fmt::format("--api: '{}' is not known", flags.api),
                                     "known: auto, openai-chat, openai-completions, ollama, "
                                     "llama-server, koboldcpp, tgi");
    }
    for (auto [text, target] :
         {std::pair{&flags.url, &options.url}, std::pair{&flags.control, &options.control}}) {
        if (text->empty()) continue;
        auto url = wire::parse_server_url(*text);
        if (!url) return std::unexpected(url.error());
        *target = *url;
    }
    if (options.control && !options.url)
        return base::usage_error("--control without a URL: there is nothing to compare it with");
    if (options.control && flags.no_control)
        return base::usage_error("--control and --no-control exclude each other");
    if (prompts_text) {
        auto prompts = probe::parse_prompts(*prompts_text, flags.prompts);
        if (!prompts) return std::unexpected(prompts.error());
        options.experiment.prompts = *prompts;
    } else {
        options.experiment.prompts = probe::builtin_prompts();
    }
    if (flags.quick) {
        options.experiment.prompts = fewer(options.experiment.prompts);
        options.experiment.reduced =
            fmt::format("--quick: {} prompts, one repeat", options.experiment.prompts.size());
    }
    return options;
}

}  // namespace fullstop::cli
