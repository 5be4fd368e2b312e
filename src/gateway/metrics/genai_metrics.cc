// One histogram for each set of labels; labels that clients choose are bounded.
#include "gateway/metrics/genai_metrics.h"

#include <array>
#include "gateway/exchange/exchange.h"
#include "gateway/limits.h"

namespace fullstop::gateway {
namespace {

// Bounds: OpenTelemetry semantic conventions 1.36, "Generative AI metrics".
constexpr std::array kDurations = {0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                   1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
constexpr std::array kFirstTokens = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                     0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
constexpr std::array kTokenTimes = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                    0.3,  0.4,   0.5,  0.75,  1.0, 2.5};
constexpr std::array kTokens = {1.0,       4.0,       16.0,       64.0,      256.0,
                                1024.0,    4096.0,    16384.0,    65536.0,   262144.0,
                                1048576.0, 4194304.0, 16777216.0, 67108864.0};

std::string_view operation(std::string_view path) {
    if (path.ends_with("/completions") && !path.ends_with("/chat/completions"))
        return "text_completion";
    if (path.ends_with("/completion") || path.ends_with("/generate") || path.ends_with("/infill"))
        return "text_completion";
    return "chat";
}

/// Whose dialect is spoken, which is all that the middle can know.
std::string_view provider(answer::Api api) {
    const std::string_view word = answer::to_string(api);
    return word.starts_with("openai") ? "openai" : word;
}

std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
        if (c == '\\' || c == '"') out += '\\';
        out += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
    }
    return out;
}

std::string labels_of(const answer::Record& record, std::string_view path) {
    return fmt::format(
        "gen_ai_operation_name=\"{}\",gen_ai_provider_name=\"{}\",gen_ai_response_model=\"{}\"",
        operation(path), provider(record.request.api), escaped(record.response_model));
}

void write(std::string& out, std::string_view name, std::string_view help,
           const std::map<std::string, serving::Histogram>& family) {
    if (family.empty()) return;
    serving::introduce_metric(out, name, "histogram", help);
    for (const auto& [labels, histogram] : family) histogram.write(out, name, labels);
}

}  // namespace

void GenAiMetrics::add(Family& family, const std::string& labels, std::span<const double> bounds,
                       double value) {
    const auto found = family.find(labels);
    // A name that comes from outside may be any; beyond the bound it is not told apart from others.
    const bool full = found == family.end() && family.size() >= kMaxMetricLabels;
    family.try_emplace(full ? "gen_ai_response_model=\"_OTHER\"" : labels, bounds)
        .first->second.add(value);
}

void GenAiMetrics::answer(const answer::Record& record, const Ended& ended) {
    const std::string labels = labels_of(record, ended.path);
    const std::string failed =
        fmt::format("{},error_type=\"{}\"", labels, answer::to_string(ended.cause));
    add(durations_, ended.whole ? labels : failed, kDurations, base::to_seconds(ended.elapsed));
    const auto count = [&](const answer::Fact<base::Tokens>& fact, std::string_view type) {
        if (const auto tokens = reported(fact))
            add(tokens_, fmt::format("{},gen_ai_token_type=\"{}\"", labels, type), kTokens,
                static_cast<double>(*tokens));
    };
    count(record.prompt_tokens, "input");
    count(record.output_tokens, "output");
    const auto& times = record.timeline;
    if (!ended.whole || !ended.stream || !times.first_token) return;
    add(first_tokens_, labels, kFirstTokens, base::to_seconds(*times.first_token));
    const std::int64_t produced = reported(record.output_tokens).value_or(0);
    if (produced > 1 && times.last_token)
        add(token_times_, labels, kTokenTimes,
            base::to_seconds(*times.last_token - *times.first_token) /
                static_cast<double>(produced - 1));
}

std::string GenAiMetrics::text() const {
    std::string out;
    write(out, "gen_ai_server_request_duration_seconds",
          "Arrival of a request to the end of its answer", durations_);
    write(out, "gen_ai_server_time_to_first_token_seconds",
          "Arrival of a request to the first token, of whole streamed answers", first_tokens_);
    write(out, "gen_ai_server_time_per_output_token_seconds",
          "Time per token after the first, of whole streamed answers", token_times_);
    write(out, "gen_ai_client_token_usage",
          "Tokens of prompts and answers, as the server reported them", tokens_);
    return out;
}

}  // namespace fullstop::gateway
