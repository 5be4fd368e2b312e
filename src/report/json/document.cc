// Reduces each record to its row; moments become milliseconds with their provenance.
#include "report/json/document.h"

#include <utility>

#include "base/sha256.h"
#include "stats/quantile.h"

namespace fullstop::report {
namespace {

using answer::Fact;

Fact<double> span_fact(const std::optional<base::Duration>& span, answer::StampClock clock,
                       const std::string& what) {
    if (!span) return Fact<double>::unavailable("it never came");
    return Fact<double>::measured(
        base::to_ms(*span), what + (clock == answer::StampClock::kKernel ? ", kernel receive stamps"
                                                                         : ", user-space stamps"));
}

std::optional<double> milliseconds(const std::optional<base::Duration>& moment) {
    return moment ? std::optional(base::to_ms(*moment)) : std::nullopt;
}

std::optional<judge::Quantiles> gap_quantiles(const std::vector<base::Duration>& gaps) {
    if (gaps.empty()) return std::nullopt;
    std::vector<double> ms;
    ms.reserve(gaps.size());
    for (const base::Duration gap : gaps) ms.push_back(base::to_ms(gap));
    return judge::Quantiles{.p50 = stats::quantile(ms, 0.5),
                            .p95 = stats::quantile(ms, 0.95),
                            .p99 = stats::quantile(ms, 0.99),
                            .max = stats::quantile(ms, 1),
                            .count = static_cast<std::int64_t>(ms.size())};
}

/// Member by member: a copy of the whole record would copy captures of megabytes first.
answer::Record without_bulk(const answer::Record& record) {
    answer::Record kept;
    kept.request = record.request;
    kept.request.messages.clear();
    kept.timeline.clock = record.timeline.clock;
    kept.status = record.status;
    kept.text_events = record.text_events;
    kept.end = record.end, kept.disconnect = record.disconnect,
    kept.server_errors = record.server_errors;
    kept.requested_max_tokens = record.requested_max_tokens,
    kept.effective_max_tokens = record.effective_max_tokens;
    kept.prompt_tokens = record.prompt_tokens, kept.output_tokens = record.output_tokens;
    kept.reasoning_tokens = record.reasoning_tokens, kept.counted_tokens = record.counted_tokens;
    kept.queue_ms = record.queue_ms, kept.preemptions = record.preemptions,
    kept.paused_ms = record.paused_ms;
    kept.client_deadline_ms = record.client_deadline_ms,
    kept.gateway_deadline_ms = record.gateway_deadline_ms;
    kept.server_deadline_ms = record.server_deadline_ms,
    kept.deadline_fired = record.deadline_fired;
    kept.kv_bytes = record.kv_bytes, kept.memory_free_bytes = record.memory_free_bytes;
    return kept;
}

Row make_row(const answer::Record& record, judge::Finding finding) {
    const auto clock = record.timeline.clock;
    return {.record = without_bulk(record),
            .finding = std::move(finding),
            .finish_reason = record.end.reason
                                 ? Fact<std::string>::reported(
                                       *record.end.reason, "the last finish reason that was sent")
                                 : Fact<std::string>::unavailable("no event carried one"),
            .ttft_ms = span_fact(record.ttft(), clock, "request sent to first token of any kind"),
            .ttft_answer_ms =
                span_fact(record.ttft_answer(), clock, "request sent to first token of the answer"),
            .itl_ms = gap_quantiles(record.timeline.gaps),
            .started_ms = milliseconds(record.timeline.started),
            .ended_ms = milliseconds(record.timeline.ended),
            .elapsed_ms = milliseconds(record.elapsed()),
            .text_bytes = static_cast<std::int64_t>(record.text.size()),
            .text_sha256 = base::sha256_hex(record.text)};
}

answer::ServerFacts server_of(const answer::Run& run) {
    answer::ServerFacts facts;
    if (const auto found = run.server_before.find("deployed"); found != run.server_before.end())
        facts = found->second;
    else if (!run.server_before.empty())
        facts = run.server_before.begin()->second;
    facts.raw.clear();
    return facts;
}

}  // namespace

Document make_document(const answer::Run& run, judge::RunJudgement judgement) {
    Document document{.id = run.id,
                      .started = run.started,
                      .elapsed = run.elapsed,
                      .fullstop_version = run.fullstop_version,
                      .fullstop_build = run.fullstop_build,
                      .url = run.url,
                      .model = run.model,
                      .api = run.api,
                      .server = server_of(run),
                      .experiment = run.experiment,
                      .prompts = static_cast<std::int64_t>(run.experiment.prompts.size()),
                      .arms = run.arms,
                      .judgement = {},
                      .rows = {},
                      .timeline = run.samples,
                      .interrupted = run.interrupted,
                      .notes = run.notes};
    document.experiment.prompts.clear();
    for (const answer::Record& record : run.records) {
        const auto found = judgement.findings.find(record.request.id);
        document.rows.push_back(
            make_row(record, found == judgement.findings.end() ? judge::Finding{} : found->second));
    }
    judgement.findings.clear();
    document.judgement = std::move(judgement);
    return document;
}

std::string arm_description(const Document& document, const std::string& arm) {
    for (const answer::Arm& candidate : document.arms)
        if (candidate.name == arm) return candidate.how;
    return "";
}

int exit_code(judge::Verdict verdict) {
    switch (verdict) {
        case judge::Verdict::kServingDefect:
        case judge::Verdict::kPolicy: return 1;
        case judge::Verdict::kInconclusive: return 3;
        case judge::Verdict::kUnaffected:
        case judge::Verdict::kLatencyOnly:
        case judge::Verdict::kSamplingVariance: return 0;
    }
    return 3;
}

}  // namespace fullstop::report
