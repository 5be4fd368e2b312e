// A forgiving reader: HELP and TYPE are passed over, a broken line costs only itself.
#include "observe/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "observe/limits.h"
#include "observe/observer.h"

namespace fullstop::observe {
namespace {

enum class Meaning { kUsed, kRunning, kWaiting, kPreemptions };

struct Known {
    std::string_view name;  ///< without _total
    Meaning meaning;
};

constexpr std::array kKnown = {
    Known{"vllm:kv_cache_usage_perc", Meaning::kUsed},
    Known{"vllm:gpu_cache_usage_perc", Meaning::kUsed},
    Known{"sglang:token_usage", Meaning::kUsed},
    Known{"fullstop_kv_usage_ratio", Meaning::kUsed},
    Known{"llamacpp:kv_cache_usage_ratio", Meaning::kUsed},
    Known{"vllm:num_requests_running", Meaning::kRunning},
    Known{"sglang:num_running_reqs", Meaning::kRunning},
    Known{"llamacpp:requests_processing", Meaning::kRunning},
    Known{"fullstop_requests_running", Meaning::kRunning},
    Known{"tgi_batch_current_size", Meaning::kRunning},
    Known{"vllm:num_requests_waiting", Meaning::kWaiting},
    Known{"sglang:num_queue_reqs", Meaning::kWaiting},
    Known{"llamacpp:requests_deferred", Meaning::kWaiting},
    Known{"fullstop_requests_waiting", Meaning::kWaiting},
    Known{"tgi_queue_size", Meaning::kWaiting},
    Known{"vllm:num_preemptions", Meaning::kPreemptions},
    Known{"sglang:num_retracted_requests", Meaning::kPreemptions},
    Known{"fullstop_preemptions", Meaning::kPreemptions},
};

constexpr std::array<std::string_view, 5> kPrefixes = {"vllm:", "sglang:", "llamacpp:", "fullstop_",
                                                       "tgi_"};
/// Labels that tell ends apart; the others (model, engine, rank) only repeat what is known.
constexpr std::array<std::string_view, 6> kTelling = {"finished_reason", "reason", "cause",
                                                      "layer",           "err",    "upstream"};

std::string_view without_total(std::string_view name) {
    if (name.ends_with("_total")) name.remove_suffix(6);
    return name;
}

void skip_blanks(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
}

/// `{a="b",c="d"}` off the front of `line`; false when it is broken.
bool take_labels(std::string_view& line, Series& series) {
    line.remove_prefix(1);
    for (;;) {
        skip_blanks(line);
        if (line.empty()) return false;
        if (line.front() == '}') return line.remove_prefix(1), true;
        if (line.front() == ',') {
            line.remove_prefix(1);
            continue;
        }
        const auto equals = line.find("=\"");
        if (equals == std::string_view::npos) return false;
        std::string name(line.substr(0, equals)), value;
        line.remove_prefix(equals + 2);
        while (!line.empty() && line.front() != '"') {
            if (line.front() == '\\' && line.size() > 1) line.remove_prefix(1);
            value += line.front();
            line.remove_prefix(1);
        }
        if (line.empty()) return false;
        line.remove_prefix(1);
        series.labels.emplace_back(std::move(name), std::move(value));
    }
}

std::optional<Series> series_of(std::string_view line) {
    skip_blanks(line);
    if (line.empty() || line.front() == '#') return std::nullopt;
    Series series;
    const auto end = line.find_first_of("{ \t");
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    series.name = line.substr(0, end);
    line.remove_prefix(end);
    skip_blanks(line);
    if (!line.empty() && line.front() == '{' && !take_labels(line, series)) return std::nullopt;
    skip_blanks(line);
    if (line.starts_with('+')) line.remove_prefix(1);
    const auto [stop, error] =
        std::from_chars(line.data(), line.data() + line.size(), series.value);
    const bool whole = stop == line.data() + line.size() || *stop == ' ' || *stop == '\t' ||
                       *stop == '\r';  // a time stamp may follow
    if (error != std::errc() || !whole || !std::isfinite(series.value)) return std::nullopt;
    return series;
}

std::string counter_name(const Series& series) {
    std::string out = series.name;
    std::string labels;
    for (const auto& [name, value] : series.labels)
        if (std::ranges::find(kTelling, name) != kTelling.end())
            labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", name, value);
    return labels.empty() ? out : out + "{" + labels + "}";
}

void add(std::optional<double>& sum, double value) { sum = sum.value_or(0) + value; }

void count(const Series& series, answer::Sample& sample) {
    const bool ours = std::ranges::any_of(
        kPrefixes, [&](auto prefix) { return series.name.starts_with(prefix); });
    if (!ours || !series.name.ends_with("_total")) return;
    const std::string name = counter_name(series);
    if (sample.counters.size() >= kMaxCounters && !sample.counters.contains(name)) return;
    sample.counters[name] += series.value;
}

}  // namespace

std::string Series::label(std::string_view wanted) const {
    for (const auto& [key, content] : labels)
        if (key == wanted) return content;
    return {};
}

std::vector<Series> parse_prometheus(std::string_view text) {
    std::vector<Series> out;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (auto series = series_of(line)) out.push_back(std::move(*series));
    }
    return out;
}

void read_prometheus(std::string_view text, answer::Sample& sample) {
    for (const Series& series : parse_prometheus(text)) {
        count(series, sample);
        const auto known = std::ranges::find(kKnown, without_total(series.name), &Known::name);
        if (known == kKnown.end()) continue;
        switch (known->meaning) {  // several engines behind one endpoint: shares do not add up,
                                   // counts do
            case Meaning::kUsed:
                sample.kv_used = std::max(sample.kv_used.value_or(0), series.value);
                break;
            case Meaning::kRunning: add(sample.running, series.value); break;
            case Meaning::kWaiting: add(sample.waiting, series.value); break;
            case Meaning::kPreemptions: add(sample.preemptions, series.value); break;
        }
    }
}

void read_metrics_facts(std::string_view text, answer::ServerFacts& facts) {
    const auto whole = [](const std::string& digits) {
        std::int64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    };
    for (const Series& series : parse_prometheus(text)) {
        if (series.name == "vllm:cache_config_info") {
            const std::int64_t blocks = whole(series.label("num_gpu_blocks")),
                               size = whole(series.label("block_size"));
            if (blocks <= 0 || size <= 0 || blocks > (INT64_MAX / size)) continue;
            facts.pool = answer::Fact<base::Tokens>::reported(
                base::Tokens{blocks * size},
                "/metrics cache_config_info: num_gpu_blocks x block_size");
            facts.shared_pool = answer::Fact<bool>::derived(
                true, "paged KV cache: all requests take blocks from one pool");
        } else if (series.name == "sglang:max_total_num_tokens" && series.value > 0 &&
                   series.value < 1e15) {
            facts.pool = answer::Fact<base::Tokens>::reported(
                base::Tokens{static_cast<std::int64_t>(series.value)},
                "/metrics sglang:max_total_num_tokens");
            facts.shared_pool = answer::Fact<bool>::derived(
                true, "paged KV cache: all requests take pages from one pool");
        }
    }
}

}  // namespace fullstop::observe
