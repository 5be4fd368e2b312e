// Each family of counters is written by the function that introduces it.
#include "gateway/metrics/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace fullstop::gateway {
namespace {

void by_upstream(std::string& out, std::string_view name, std::string_view help,
                 const std::map<std::string, std::int64_t>& values) {
    serving::introduce_metric(out, name, "counter", help);
    for (const auto& [upstream, value] : values)
        fmt::format_to(std::back_inserter(out), "{}{{upstream=\"{}\"}} {}\n", name, upstream,
                       value);
}

}  // namespace

void Metrics::waited(Priority priority, base::Duration time) {
    waits_[static_cast<std::size_t>(priority)].add(base::to_seconds(time));
}

std::map<answer::Cause, std::int64_t> Metrics::ends() const {
    std::map<answer::Cause, std::int64_t> out;
    for (const auto& [key, count] : ends_) out[key.second] += count;
    return out;
}

std::int64_t Metrics::others() const {
    std::int64_t sum = 0;
    for (const auto& [upstream, count] : others_) sum += count;
    return sum;
}

void Metrics::write_upstreams(std::string& out, const Upstreams& upstreams,
                              base::Instant now) const {
    const auto put = std::back_inserter(out);
    const auto gauge = [&](std::string_view name, std::string_view help, const auto& value_of) {
        serving::introduce_metric(out, name, "gauge", help);
        for (const auto& [id, upstream] : upstreams.all())
            if (const std::optional<std::int64_t> value = value_of(*upstream))
                fmt::format_to(put, "{}{{upstream=\"{}\"}} {}\n", name, upstream->name(), *value);
    };
    gauge("fullstop_gateway_requests_running", "Answers under way at the upstream",
          [](const Upstream& u) { return u.running(); });
    gauge("fullstop_gateway_slots",
          "Answers that the upstream takes at the same time, configured or learned",
          [](const Upstream& u) { return u.slots(); });
    gauge("fullstop_gateway_tokens_held", "Tokens set aside for running answers",
          [](const Upstream& u) { return u.held(); });
    gauge("fullstop_gateway_kv_tokens", "Tokens that its answers share, configured or learned",
          [](const Upstream& u) { return u.pool(); });
    gauge("fullstop_gateway_upstream_usable", "0 while it gets no requests because it failed",
          [now](const Upstream& u) { return u.health.usable(now) ? 1 : 0; });
}

void Metrics::write_queue(std::string& out, const Queue& queue) const {
    const auto put = std::back_inserter(out);
    serving::introduce_metric(out, "fullstop_gateway_queue_requests", "gauge",
                              "Requests that wait for an upstream");
    for (const Priority each : serving::kAllPriorities)
        fmt::format_to(put, "fullstop_gateway_queue_requests{{class=\"{}\"}} {}\n", to_string(each),
                       queue.size(each));
    serving::introduce_metric(out, "fullstop_gateway_queue_tokens", "gauge",
                              "Tokens that the waiting requests may need");
    fmt::format_to(put, "fullstop_gateway_queue_tokens {}\n", queue.tokens());
    const std::string_view name = "fullstop_gateway_queue_seconds";
    serving::introduce_metric(out, name, "histogram", "Arrival until an upstream was chosen");
    for (const Priority each : serving::kAllPriorities)
        waits_[static_cast<std::size_t>(each)].write(out, name,
                                                     fmt::format("class=\"{}\"", to_string(each)));
}

std::string records_text(const RecordCounts& counts) {
    std::string out;
    serving::write_metric(out, "fullstop_gateway_records_total", "counter",
                          "Answers that the store should have a record of", counts.seen);
    serving::write_metric(out, "fullstop_gateway_records_waiting", "gauge",
                          "Records that the store has not written yet", counts.waiting);
    serving::write_metric(out, "fullstop_gateway_records_dropped_total", "counter",
                          "Records that the store will never have", counts.lost);
    return out;
}

std::string memory_text(const net::MemoryBudget& memory) {
    std::string out;
    serving::write_metric(out, "fullstop_memory_limit_bytes", "gauge",
                          "Bytes of requests and backlogs that may be held at once",
                          memory.limit());
    serving::write_metric(out, "fullstop_memory_held_bytes", "gauge",
                          "Bytes of requests and backlogs that are held", memory.held());
    serving::write_metric(out, "fullstop_memory_dropped_total", "counter",
                          "Connections dropped because others needed the memory they held",
                          memory.dropped());
    serving::write_metric(out, "fullstop_memory_refused_total", "counter",
                          "Requests refused because there was no memory for them",
                          memory.refused());
    return out;
}

std::string Metrics::text(const Upstreams& upstreams, const Queue& queue, std::size_t exchanges,
                          base::Instant now) const {
    std::string out;
    const auto put = std::back_inserter(out);
    serving::write_metric(out, "fullstop_gateway_exchanges", "gauge",
                          "Requests of all kinds that wait or are under way", exchanges);
    write_upstreams(out, upstreams, now);
    write_queue(out, queue);
    serving::introduce_metric(out, "fullstop_answers_total", "counter",
                              "Answers by the cause of their end");
    for (const auto& [key, count] : ends_)
        fmt::format_to(put,
                       "fullstop_answers_total{{cause=\"{}\",layer=\"{}\",upstream=\"{}\"}} {}\n",
                       answer::to_string(key.second),
                       answer::to_string(answer::entry(key.second).layer), key.first, count);
    by_upstream(out, "fullstop_other_responses_total",
                "Responses relayed that were no answer of a model", others_);
    by_upstream(out, "fullstop_relayed_bytes_total", "Bytes of response bodies relayed", bytes_);
    by_upstream(out, "fullstop_gateway_retries_total",
                "Attempts that failed before the first byte and were repeated at another upstream",
                retries_);
    serving::write_metric(out, "fullstop_gateway_limited_total", "counter",
                          "Requests whose token limit was lowered by a setting of this gateway",
                          limited_);
    serving::write_metric(out, "fullstop_gateway_continued_total", "counter",
                          "Times that another server continued an answer whose server died",
                          continued_);
    serving::write_metric(out, "fullstop_gateway_faults_total", "counter",
                          "Requests that a fault of this gateway ended; standard error says more",
                          faults_);
    return out + genai_.text();
}

}  // namespace fullstop::gateway
