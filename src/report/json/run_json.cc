// Document to JSON, in the order of the contract. Objects are always there, with null members where
// nothing is known, so that a script may write level.completion_rate.value without asking first.
#include "report/json/run_json.h"

#include <boost/json.hpp>

#include "report/json/json_parts.h"
#include "report/json/json_text.h"
#include "report/text.h"

namespace fullstop::report {
namespace {

json::value seconds(const std::optional<base::Duration>& time) {
    return time ? json::value(base::to_seconds(*time)) : json::value(nullptr);
}

json::value interval(const std::optional<judge::Interval>& value) {
    if (!value) return json::object{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}};
    return json::object{{"value", value->value}, {"low", value->low}, {"high", value->high}};
}
json::value quantiles(const std::optional<judge::Quantiles>& value) {
    if (!value)
        return json::object{
            {"p50", nullptr}, {"p95", nullptr}, {"p99", nullptr}, {"max", nullptr}, {"count", 0}};
    return json::object{{"p50", value->p50},
                        {"p95", value->p95},
                        {"p99", value->p99},
                        {"max", value->max},
                        {"count", value->count}};
}
json::value paired(const std::optional<judge::PairedLength>& value) {
    if (!value)
        return json::object{{"median_ratio", nullptr},
                            {"low", nullptr},
                            {"high", nullptr},
                            {"p", nullptr},
                            {"pairs", 0}};
    return json::object{{"median_ratio", value->median_ratio},
                        {"low", value->low},
                        {"high", value->high},
                        {"p", value->p},
                        {"pairs", value->pairs}};
}

json::value remedy_of(const judge::Remedy& remedy) {
    return json::object{{"text", text(remedy.text)},
                        {"setting", text(remedy.setting)},
                        {"number", maybe(remedy.number)}};
}
json::value load_of(const judge::Load& load) {
    return json::object{
        {"value", word(load.value)}, {"why", text(load.why)}, {"bound", maybe(load.bound)}};
}
json::value verdict_of(const judge::Judgement& judgement) {
    return json::object{{"value", word(judgement.value)},
                        {"headline", text(judgement.headline)},
                        {"cause", maybe_word(judgement.cause)},
                        {"layer", maybe_word(judgement.layer)},
                        {"confidence", word(judgement.confidence)},
                        {"load", load_of(judgement.load)},
                        {"firm", judgement.firm},
                        {"from_concurrency", maybe(judgement.from_concurrency)},
                        {"evidence", list(judgement.evidence, evidence_of)},
                        {"remedies", list(judgement.remedies, remedy_of)},
                        {"missing", list(judgement.missing)},
                        {"next", text(judgement.next)}};
}

json::value cause_of(const judge::CauseCount& count) {
    return json::object{{"cause", word(count.cause)},
                        {"layer", word(count.layer)},
                        {"count", count.count},
                        {"confidence", word(count.confidence)}};
}
json::value test_of(const judge::LevelTest& test) {
    return json::object{{"name", text(test.name)},
                        {"events", test.seen.events},
                        {"total", test.seen.total},
                        {"baseline_events", test.alone.events},
                        {"baseline_total", test.alone.total},
                        {"p", maybe(test.p)},
                        {"e", maybe(test.e)},
                        {"firm", test.firm}};
}
json::value level_of(const judge::LevelJudgement& level) {
    return json::object{{"concurrency", level.concurrency},
                        {"verdict", word(level.verdict)},
                        {"why", text(level.why)},
                        {"answers", level.answers},
                        {"natural", level.natural},
                        {"limited", level.limited},
                        {"cut", level.cut},
                        {"refused", level.refused},
                        {"failed", level.failed},
                        {"completion_rate", interval(level.completion_rate)},
                        {"coverage", interval(level.coverage)},
                        {"output_tokens", json::object{{"p50", maybe(level.output_tokens_p50)},
                                                       {"mean", maybe(level.output_tokens_mean)}}},
                        {"paired_length", paired(level.paired_length)},
                        {"ttft_ms", quantiles(level.ttft_ms)},
                        {"itl_ms", quantiles(level.itl_ms)},
                        {"queue_ms", quantiles(level.queue_ms)},
                        {"elapsed_ms", quantiles(level.elapsed_ms)},
                        {"preemptions", fact(level.preemptions)},
                        {"kv_bytes_peak", fact(level.kv_bytes_peak)},
                        {"memory_free_bytes_min", fact(level.memory_free_bytes_min)},
                        {"p_cut", level.p_cut},
                        {"tests", list(level.tests, test_of)},
                        {"bound", maybe(level.bound)},
                        {"causes", list(level.causes, cause_of)}};
}

void add_method_values(const answer::Record& record, const Row& row, json::object& out) {
    out["requested_max_tokens"] = fact(record.requested_max_tokens);
    out["effective_max_tokens"] = fact(record.effective_max_tokens);
    out["prompt_tokens"] = fact(record.prompt_tokens);
    out["output_tokens"] = fact(record.output_tokens);
    out["reasoning_tokens"] = fact(record.reasoning_tokens);
    out["counted_tokens"] = fact(record.counted_tokens);
    out["finish_reason"] = fact(row.finish_reason);
    out["end"] = end_of(record.end);
    out["http_status"] = maybe(record.status);
    out["queue_ms"] = fact(record.queue_ms);
    out["ttft_ms"] = fact(row.ttft_ms);
    out["ttft_answer_ms"] = fact(row.ttft_answer_ms);
    out["itl_ms"] = quantiles(row.itl_ms);
    out["deadline"] = json::object{{"client_ms", fact(record.client_deadline_ms)},
                                   {"gateway_ms", fact(record.gateway_deadline_ms)},
                                   {"server_ms", fact(record.server_deadline_ms)},
                                   {"fired", word(record.deadline_fired)}};
    out["disconnect"] = json::object{{"by", word(record.disconnect.by)},
                                     {"kind", word(record.disconnect.kind)},
                                     {"at_byte", record.disconnect.at_byte}};
    out["preemptions"] = fact(record.preemptions);
    out["paused_ms"] = fact(record.paused_ms);
    out["kv_bytes"] = fact(record.kv_bytes);
    out["memory_free_bytes"] = fact(record.memory_free_bytes);
    out["server_errors"] = list(record.server_errors, error_fields);
}

json::value record_of(const Row& row) {
    const answer::Request& asked = row.record.request;
    const judge::Finding& finding = row.finding;
    json::object out{{"id", text(asked.id)},
                     {"arm", text(asked.arm)},
                     {"concurrency", asked.concurrency},
                     {"phase", text(asked.phase)},
                     {"prompt", text(asked.prompt_id)},
                     {"seed", asked.seed},
                     {"repeat", asked.repeat}};
    add_method_values(row.record, row, out);
    out["started_ms"] = maybe(row.started_ms);
    out["ended_ms"] = maybe(row.ended_ms);
    out["elapsed_ms"] = maybe(row.elapsed_ms);
    out["clock"] = word(row.record.timeline.clock);
    out["text_events"] = row.record.text_events;
    out["text_bytes"] = row.text_bytes;
    out["text_sha256"] = text(row.text_sha256);
    out["coverage"] = fact(finding.coverage);
    out["prefix_of_baseline"] = maybe(finding.prefix_of_baseline);
    out["open_ending"] = finding.open_ending;
    out["cause"] = word(finding.cause);
    out["layer"] = word(finding.layer);
    out["confidence"] = word(finding.confidence);
    out["shortened"] = maybe(finding.shortened);
    out["evidence"] = list(finding.evidence, evidence_of);
    out["alternatives"] = list(finding.alternatives, alternative_of);
    out["next"] = text(finding.next);
    return out;
}

json::value sample_of(const answer::Sample& sample) {
    return json::object{
        {"t_ms", base::to_ms(sample.at)},         {"arm", text(sample.arm)},
        {"kv_used", maybe(sample.kv_used)},       {"running", maybe(sample.running)},
        {"waiting", maybe(sample.waiting)},       {"preemptions", maybe(sample.preemptions)},
        {"free_bytes", maybe(sample.free_bytes)}, {"server_bytes", maybe(sample.server_bytes)}};
}

json::value target_of(const Document& document) {
    const answer::ServerFacts& server = document.server;
    return json::object{
        {"url", text(document.url)},
        {"model", text(document.model)},
        {"api", word(document.api)},
        {"server", json::object{{"name", text(server.name)},
                                {"version", text(server.version)},
                                {"how", text(server.how)},
                                {"model", text(server.model)},
                                {"window_tokens", fact(server.window)},
                                {"pool_tokens", fact(server.pool)},
                                {"slots", fact(server.slots)},
                                {"shared_pool", fact(server.shared_pool)},
                                {"default_max_tokens", fact(server.default_max_tokens)},
                                {"kv_bytes_per_token", fact(server.kv_bytes_per_token)},
                                {"max_queue", fact(server.max_queue)},
                                {"output_deadline_ms", fact(server.output_deadline_ms)}}}};
}

json::value experiment_of(const Document& document) {
    const answer::Experiment& plan = document.experiment;
    const auto step = [](const answer::Experiment::Step& s) -> json::value {
        return json::array{text(s.arm), s.concurrency};
    };
    const auto phase = [](const answer::Experiment::Step& s) { return text(s.phase); };
    const auto admitted = [](const answer::Experiment::Step& s) -> json::value {
        return s.admitted;
    };
    return json::object{{"levels", list(plan.levels)},
                        {"prompts", document.prompts},
                        {"repeat", plan.repeat},
                        {"max_tokens", maybe(plan.max_tokens)},
                        {"temperature", maybe(plan.temperature)},
                        {"top_p", maybe(plan.top_p)},
                        {"seed", plan.seed},
                        {"stream", plan.stream},
                        {"stagger_s", base::to_seconds(plan.stagger)},
                        {"client_deadline_s", seconds(plan.client_deadline)},
                        {"client_idle_s", seconds(plan.client_idle)},
                        {"budget_s", base::to_seconds(plan.budget)},
                        {"order", list(plan.order, step)},
                        {"phases", list(plan.order, phase)},
                        {"admitted", list(plan.order, admitted)},
                        {"reduced", maybe(plan.reduced)}};
}

}  // namespace

std::string to_json(const Document& document) {
    json::array arms;
    for (const judge::ArmJudgement& arm : document.judgement.arms)
        arms.push_back(json::object{{"name", text(arm.name)},
                                    {"url", text(arm.url)},
                                    {"how", text(arm_description(document, arm.name))},
                                    {"verdict", verdict_of(arm.verdict)},
                                    {"levels", list(arm.levels, level_of)}});
    return json_text(
        json::object{{"schema", text(kRunSchema)},
                     {"id", text(document.id)},
                     {"started", text(rfc3339(document.started))},
                     {"elapsed_s", base::to_seconds(document.elapsed)},
                     {"interrupted", document.interrupted},
                     {"fullstop", json::object{{"version", text(document.fullstop_version)},
                                               {"build", text(document.fullstop_build)}}},
                     {"target", target_of(document)},
                     {"experiment", experiment_of(document)},
                     {"verdict", verdict_of(document.judgement.verdict)},
                     {"arms", std::move(arms)},
                     {"timeline", list(document.timeline, sample_of)},
                     {"notes", list(document.notes)},
                     {"records", list(document.rows, record_of)}});
}

}  // namespace fullstop::report
