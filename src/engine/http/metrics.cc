// The text format of Prometheus 0.0.4, written directly: a dozen lines do not need a library.
#include "engine/http/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

template <class Number>
void line(std::string& out, std::string_view name, std::string_view type, std::string_view help,
          Number value) {
    head(out, name, type, help);
    fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

/// One family with one label.
void labelled(std::string& out, std::string_view name, std::string_view type, std::string_view help,
              std::string_view label,
              std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
    head(out, name, type, help);
    for (const auto& [word, value] : values)
        fmt::format_to(std::back_inserter(out), "{}{{{}=\"{}\"}} {}\n", name, label, word, value);
}

}  // namespace

void Histogram::add(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);
    ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
    sum_ += value;
}

void Histogram::write(std::string& out, std::string_view name, std::string_view help) const {
    head(out, name, "histogram", help);
    std::int64_t below = 0;
    for (std::size_t i = 0; i < bounds_.size(); ++i)
        fmt::format_to(std::back_inserter(out), "{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i],
                       below += counts_[i]);
    below += counts_.back();
    fmt::format_to(std::back_inserter(out),
                   "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, below,
                   sum_);
}

void Metrics::token(const Produced& produced) {
    if (produced.gap) gaps_.add(base::to_seconds(*produced.gap));
}

void Metrics::ended(const AnswerEnd& end) {
    ++ends_[end.cause];
    if (end.numbers.ttft) ttft_.add(base::to_seconds(*end.numbers.ttft));
    if (end.numbers.ttft && end.numbers.ttft_estimate && *end.numbers.ttft > base::Duration{})
        estimates_.add(base::to_seconds(*end.numbers.ttft_estimate) /
                       base::to_seconds(*end.numbers.ttft));
    if (!end.numbers.queue) return;
    queue_.add(base::to_seconds(*end.numbers.queue));
    prompt_tokens_ += end.numbers.prompt_tokens.value_or(base::Tokens{}).count;
    output_tokens_ += end.numbers.output_tokens.count;
}

std::string Metrics::text(const Occupancy& now, std::int64_t slots) const {
    std::string out;
    line(out, "fullstop_requests_running", "gauge", "Answers being computed", now.running);
    line(out, "fullstop_requests_waiting", "gauge", "Requests waiting for admission", now.waiting);
    line(out, "fullstop_slots_total", "gauge", "Answers that can be computed at once", slots);
    line(out, "fullstop_kv_tokens_used", "gauge", "Tokens in the KV cache", now.kv_used.count);
    line(out, "fullstop_kv_tokens_reserved", "gauge",
         "Tokens held by and promised to running answers", now.kv_reserved.count);
    line(out, "fullstop_kv_tokens_total", "gauge", "Tokens the KV cache holds", now.kv_total.count);
    line(out, "fullstop_kv_usage_ratio", "gauge", "Share of the KV cache in use, 0 to 1",
         static_cast<double>(now.kv_used.count) / static_cast<double>(now.kv_total.count));
    constexpr std::int64_t block = kBlockTokens.count;
    static_assert(block == 16, "the help text says so");
    labelled(out, "fullstop_kv_blocks", "gauge",
             "KV blocks of 16 tokens: free, promised to running answers, owned by them", "state",
             {{"free", (now.kv_total - now.kv_reserved).count / block},
              {"promised", (now.kv_reserved - now.kv_owned).count / block},
              {"owned", now.kv_owned.count / block}});
    labelled(out, "fullstop_preemptions_total", "counter",
             "Pauses of answers, by how their KV comes back; none loses a token", "kind",
             {{"swap", now.swaps}, {"recompute", now.recomputes}});
    labelled(out, "fullstop_slo_actions_total", "counter",
             "Requests whose first token was expected too late, by what was done", "action",
             {{"demoted", now.demoted}, {"rejected", now.rejected_early}});
    line(out, "fullstop_host_memory_used_bytes", "gauge",
         "Host memory that holds the KV of paused answers", now.host_used.count);
    line(out, "fullstop_host_memory_limit_bytes", "gauge", "Host memory allowed for it",
         now.host_total.count);
    line(out, "fullstop_swapped_out_bytes_total", "counter", "KV copied to host memory",
         now.swapped_out.count);
    line(out, "fullstop_swapped_in_bytes_total", "counter", "KV copied back from host memory",
         now.swapped_in.count);
    line(out, "fullstop_steps_total", "counter", "Batches computed", now.steps);
    line(out, "fullstop_prompt_tokens_total", "counter", "Prompt tokens of ended answers",
         prompt_tokens_);
    line(out, "fullstop_output_tokens_total", "counter", "Output tokens of ended answers",
         output_tokens_);
    head(out, "fullstop_answers_total", "counter", "Answers by the cause of their end");
    for (const auto& [cause, count] : ends_)
        fmt::format_to(
            std::back_inserter(out), "fullstop_answers_total{{cause=\"{}\",layer=\"{}\"}} {}\n",
            answer::to_string(cause), answer::to_string(answer::entry(cause).layer), count);
    queue_.write(out, "fullstop_queue_seconds", "Arrival to admission, of ended answers");
    ttft_.write(out, "fullstop_time_to_first_token_seconds",
                "Arrival to first token, of ended answers");
    estimates_.write(out, "fullstop_time_to_first_token_estimate_ratio",
                     "Estimate at arrival over what it was, of answers with a target");
    gaps_.write(out, "fullstop_inter_token_latency_seconds",
                "Between tokens of one answer, as computed");
    return out;
}

}  // namespace fullstop::engine
