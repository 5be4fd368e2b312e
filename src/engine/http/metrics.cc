#include "engine/http/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

/// One family with one label.
void labelled(std::string& out, std::string_view name, std::string_view type, std::string_view help,
              std::string_view label,
              std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
    serving::introduce_metric(out, name, type, help);
    for (const auto& [word, value] : values)
        fmt::format_to(std::back_inserter(out), "{}{{{}=\"{}\"}} {}\n", name, label, word, value);
}

}  // namespace

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
    serving::write_metric(out, "fullstop_requests_running", "gauge", "Answers being computed",
                          now.running);
    serving::write_metric(out, "fullstop_requests_waiting", "gauge",
                          "Requests waiting for admission", now.waiting);
    serving::write_metric(out, "fullstop_slots_total", "gauge",
                          "Answers that can be computed at once", slots);
    serving::write_metric(out, "fullstop_kv_tokens_used", "gauge", "Tokens in the KV cache",
                          now.kv_used.count);
    serving::write_metric(out, "fullstop_kv_tokens_reserved", "gauge",
                          "Tokens held by and promised to running answers", now.kv_reserved.count);
    serving::write_metric(out, "fullstop_kv_tokens_total", "gauge", "Tokens the KV cache holds",
                          now.kv_total.count);
    serving::write_metric(
        out, "fullstop_kv_usage_ratio", "gauge", "Share of the KV cache in use, 0 to 1",
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
    serving::write_metric(out, "fullstop_host_memory_used_bytes", "gauge",
                          "Host memory that holds the KV of paused answers", now.host_used.count);
    serving::write_metric(out, "fullstop_host_memory_limit_bytes", "gauge",
                          "Host memory allowed for it", now.host_total.count);
    serving::write_metric(out, "fullstop_swapped_out_bytes_total", "counter",
                          "KV copied to host memory", now.swapped_out.count);
    serving::write_metric(out, "fullstop_swapped_in_bytes_total", "counter",
                          "KV copied back from host memory", now.swapped_in.count);
    serving::write_metric(out, "fullstop_steps_total", "counter", "Batches computed", now.steps);
    serving::write_metric(out, "fullstop_prompt_tokens_total", "counter",
                          "Prompt tokens of ended answers", prompt_tokens_);
    serving::write_metric(out, "fullstop_output_tokens_total", "counter",
                          "Output tokens of ended answers", output_tokens_);
    serving::introduce_metric(out, "fullstop_answers_total", "counter",
                              "Answers by the cause of their end");
    for (const auto& [cause, count] : ends_)
        fmt::format_to(
            std::back_inserter(out), "fullstop_answers_total{{cause=\"{}\",layer=\"{}\"}} {}\n",
            answer::to_string(cause), answer::to_string(answer::entry(cause).layer), count);
    const auto histogram = [&](std::string_view name, std::string_view help,
                               const serving::Histogram& values) {
        serving::introduce_metric(out, name, "histogram", help);
        values.write(out, name, "");
    };
    histogram("fullstop_queue_seconds", "Arrival to admission, of ended answers", queue_);
    histogram("fullstop_time_to_first_token_seconds", "Arrival to first token, of ended answers",
              ttft_);
    histogram("fullstop_time_to_first_token_estimate_ratio",
              "Estimate at arrival over what it was, of answers with a target", estimates_);
    histogram("fullstop_inter_token_latency_seconds", "Between tokens of one answer, as computed",
              gaps_);
    return out;
}

}  // namespace fullstop::engine
