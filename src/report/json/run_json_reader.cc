// JSON to Document. A cursor knows where it stands, so an error says records[3].end.transport and
// not just "bad value".
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <concepts>
#include <map>
#include <stdexcept>

#include "report/json/run_json.h"
#include "report/text.h"

namespace fullstop::report {
namespace {

namespace json = boost::json;

/// Caught in read_run_document.
struct Misfit : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One value of the document and its place in it; absent values read as nothing.
class Cursor {
public:
    Cursor(const json::value* value, std::string place) : value_(value), place_(std::move(place)) {}

    Cursor operator[](const char* name) const {
        if (!there()) return {nullptr, ""};
        if (!value_->is_object()) misfit("an object");
        return {value_->get_object().if_contains(name),
                place_.empty() ? name : place_ + "." + name};
    }
    std::vector<Cursor> elements() const {
        std::vector<Cursor> found;
        if (!there()) return found;
        if (!value_->is_array()) misfit("a list");
        for (const json::value& element : value_->get_array())
            found.emplace_back(&element, fmt::format("{}[{}]", place_, found.size()));
        return found;
    }
    bool there() const { return value_ != nullptr && !value_->is_null(); }

    void read(std::string& out) const {
        if (!there()) return;
        if (!value_->is_string()) misfit("a text");
        out.assign(value_->get_string().data(), value_->get_string().size());
    }
    void read(bool& out) const {
        if (!there()) return;
        if (!value_->is_bool()) misfit("true or false");
        out = value_->get_bool();
    }
    void read(double& out) const {
        if (!there()) return;
        if (!value_->is_number()) misfit("a number");
        out = value_->to_number<double>();
    }
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    void read(T& out) const {
        if (!there()) return;
        json::error_code error;
        if (value_->is_number()) out = value_->to_number<T>(error);
        if (!value_->is_number() || error) misfit("a whole number");
    }
    template <class Tag>
    void read(base::Quantity<Tag>& out) const {
        read(out.count);
    }
    void read(base::Duration& out) const {
        double s = base::to_seconds(out);
        read(s);
        if (!(std::abs(s) < 9e9)) misfit("a number of seconds");
        out = base::Duration(std::llround(s * 1e9));
    }
    template <class T>
    void read(std::optional<T>& out) const {
        out.reset();
        if (there()) read(out.emplace());
    }
    template <class T>
    void read(std::vector<T>& out) const {
        out.clear();
        for (const Cursor& element : elements()) element.read(out.emplace_back());
    }
    template <class T>
    void read(answer::Fact<T>& out) const {
        if (!there()) return;
        (*this)["value"].read(out.value);
        (*this)["from"].word(out.from, answer::parse_provenance);
        (*this)["how"].read(out.how);
        if (out.value.has_value() == (out.from == answer::Provenance::kUnavailable))
            misfit("a fact whose value is null exactly when it is unavailable");
    }
    /// A word of a closed list.
    template <class E, class Parse>
    void word(E& out, Parse parse) const {
        if (!there()) return;
        std::string spelled;
        read(spelled);
        const auto parsed = parse(spelled);
        if (!parsed)
            throw Misfit(fmt::format("{}: '{}' is not a word of this schema", place_, spelled));
        out = *parsed;
    }

private:
    [[noreturn]] void misfit(const char* wanted) const {
        throw Misfit(
            fmt::format("{}: expected {}", place_.empty() ? "the document" : place_, wanted));
    }

    const json::value* value_;
    std::string place_;
};

std::optional<judge::Interval> interval(const Cursor& at) {
    if (!at["value"].there()) return std::nullopt;
    judge::Interval out;
    at["value"].read(out.value), at["low"].read(out.low), at["high"].read(out.high);
    return out;
}
std::optional<judge::Quantiles> quantiles(const Cursor& at) {
    if (!at["p50"].there()) return std::nullopt;
    judge::Quantiles out;
    at["p50"].read(out.p50), at["p95"].read(out.p95), at["p99"].read(out.p99),
        at["max"].read(out.max), at["count"].read(out.count);
    return out;
}
std::optional<judge::PairedLength> paired(const Cursor& at) {
    if (!at["median_ratio"].there()) return std::nullopt;
    judge::PairedLength out;
    at["median_ratio"].read(out.median_ratio), at["low"].read(out.low), at["high"].read(out.high),
        at["p"].read(out.p), at["pairs"].read(out.pairs);
    return out;
}
std::vector<judge::Evidence> evidence_list(const Cursor& at) {
    std::vector<judge::Evidence> out;
    for (const Cursor& element : at.elements()) {
        judge::Evidence& evidence = out.emplace_back();
        element["text"].read(evidence.text), element["records"].read(evidence.records);
        element["value"].read(evidence.value), element["where"].read(evidence.where);
    }
    return out;
}

judge::Judgement judgement(const Cursor& at) {
    judge::Judgement out;
    at["value"].word(out.value, judge::parse_verdict);
    at["headline"].read(out.headline);
    if (at["cause"].there()) at["cause"].word(out.cause.emplace(), answer::parse_cause);
    if (at["layer"].there()) at["layer"].word(out.layer.emplace(), answer::parse_layer);
    at["confidence"].word(out.confidence, answer::parse_confidence);
    if (at["load"].there()) {  // documents of earlier versions have none
        at["load"]["value"].word(out.load.value, judge::parse_load);
        at["load"]["why"].read(out.load.why);
        at["load"]["bound"].read(out.load.bound);
    }
    at["firm"].read(out.firm);
    at["from_concurrency"].read(out.from_concurrency);
    out.evidence = evidence_list(at["evidence"]);
    for (const Cursor& element : at["remedies"].elements()) {
        judge::Remedy& remedy = out.remedies.emplace_back();
        element["text"].read(remedy.text), element["setting"].read(remedy.setting),
            element["number"].read(remedy.number);
    }
    at["missing"].read(out.missing);
    at["next"].read(out.next);
    return out;
}

judge::LevelJudgement level(const Cursor& at) {
    judge::LevelJudgement out;
    at["concurrency"].read(out.concurrency);
    at["verdict"].word(out.verdict, judge::parse_verdict);
    at["why"].read(out.why);
    at["answers"].read(out.answers), at["natural"].read(out.natural),
        at["limited"].read(out.limited);
    at["cut"].read(out.cut), at["refused"].read(out.refused), at["failed"].read(out.failed);
    out.completion_rate = interval(at["completion_rate"]);
    out.coverage = interval(at["coverage"]);
    at["output_tokens"]["p50"].read(out.output_tokens_p50),
        at["output_tokens"]["mean"].read(out.output_tokens_mean);
    out.paired_length = paired(at["paired_length"]);
    out.ttft_ms = quantiles(at["ttft_ms"]), out.itl_ms = quantiles(at["itl_ms"]);
    out.queue_ms = quantiles(at["queue_ms"]), out.elapsed_ms = quantiles(at["elapsed_ms"]);
    at["preemptions"].read(out.preemptions), at["kv_bytes_peak"].read(out.kv_bytes_peak);
    at["memory_free_bytes_min"].read(out.memory_free_bytes_min);
    at["p_cut"].read(out.p_cut), at["bound"].read(out.bound);
    for (const Cursor& element : at["tests"].elements()) {
        judge::LevelTest test;
        element["name"].read(test.name), element["firm"].read(test.firm);
        element["events"].read(test.seen.events), element["total"].read(test.seen.total);
        element["baseline_events"].read(test.alone.events);
        element["baseline_total"].read(test.alone.total);
        element["p"].read(test.p), element["e"].read(test.e);
        out.tests.push_back(std::move(test));
    }
    for (const Cursor& element : at["causes"].elements()) {
        judge::CauseCount count{.cause = answer::Cause::kUnexplained,
                                .layer = answer::Layer::kUnknown,
                                .count = 0,
                                .confidence = answer::Confidence::kUnresolved};
        element["cause"].word(count.cause, answer::parse_cause),
            element["layer"].word(count.layer, answer::parse_layer);
        element["count"].read(count.count),
            element["confidence"].word(count.confidence, answer::parse_confidence);
        out.causes.push_back(count);
    }
    return out;
}

answer::ServerError server_error(const Cursor& at) {
    answer::ServerError out;
    at["status"].read(out.status), at["code"].read(out.code), at["type"].read(out.type),
        at["text"].read(out.text);
    at["where"].word(out.where, answer::parse_error_place);
    return out;
}

std::optional<answer::StampClock> parse_clock(std::string_view word) {
    for (const auto clock : {answer::StampClock::kUserSpace, answer::StampClock::kKernel})
        if (to_string(clock) == word) return clock;
    return std::nullopt;
}

answer::Record record(const Cursor& at) {
    answer::Record out;
    answer::Request& asked = out.request;
    at["id"].read(asked.id), at["arm"].read(asked.arm), at["concurrency"].read(asked.concurrency),
        at["phase"].read(asked.phase);
    at["prompt"].read(asked.prompt_id), at["seed"].read(asked.seed),
        at["repeat"].read(asked.repeat);
    at["requested_max_tokens"].read(out.requested_max_tokens),
        at["effective_max_tokens"].read(out.effective_max_tokens);
    at["prompt_tokens"].read(out.prompt_tokens), at["output_tokens"].read(out.output_tokens);
    at["reasoning_tokens"].read(out.reasoning_tokens),
        at["counted_tokens"].read(out.counted_tokens);
    at["end"]["reason"].read(out.end.reason), at["end"]["terminator"].read(out.end.terminator);
    at["end"]["transport"].word(out.end.transport, answer::parse_transport);
    if (at["end"]["error"].there()) out.end.error = server_error(at["end"]["error"]);
    at["http_status"].read(out.status);
    at["queue_ms"].read(out.queue_ms);
    at["deadline"]["client_ms"].read(out.client_deadline_ms),
        at["deadline"]["gateway_ms"].read(out.gateway_deadline_ms);
    at["deadline"]["server_ms"].read(out.server_deadline_ms),
        at["deadline"]["fired"].word(out.deadline_fired, answer::parse_deadline_fired);
    at["disconnect"]["by"].word(out.disconnect.by, answer::parse_disconnect_by);
    at["disconnect"]["kind"].word(out.disconnect.kind, answer::parse_disconnect_kind),
        at["disconnect"]["at_byte"].read(out.disconnect.at_byte);
    at["preemptions"].read(out.preemptions), at["paused_ms"].read(out.paused_ms);
    at["kv_bytes"].read(out.kv_bytes), at["memory_free_bytes"].read(out.memory_free_bytes);
    for (const Cursor& element : at["server_errors"].elements())
        out.server_errors.push_back(server_error(element));
    at["clock"].word(out.timeline.clock, parse_clock);
    at["text_events"].read(out.text_events);
    return out;
}

judge::Finding finding(const Cursor& at) {
    judge::Finding out;
    at["coverage"].read(out.coverage);
    at["prefix_of_baseline"].read(out.prefix_of_baseline);
    at["open_ending"].read(out.open_ending);
    at["cause"].word(out.cause, answer::parse_cause),
        at["layer"].word(out.layer, answer::parse_layer);
    at["confidence"].word(out.confidence, answer::parse_confidence);
    at["shortened"].read(out.shortened);
    out.evidence = evidence_list(at["evidence"]);
    for (const Cursor& element : at["alternatives"].elements()) {
        judge::Alternative alternative{.cause = answer::Cause::kUnexplained, .why_not = {}};
        element["cause"].word(alternative.cause, answer::parse_cause),
            element["why_not"].read(alternative.why_not);
        out.alternatives.push_back(alternative);
    }
    at["next"].read(out.next);
    return out;
}

Row row(const Cursor& at) {
    Row out;
    out.record = record(at);
    out.finding = finding(at);
    at["finish_reason"].read(out.finish_reason);
    at["ttft_ms"].read(out.ttft_ms), at["ttft_answer_ms"].read(out.ttft_answer_ms);
    out.itl_ms = quantiles(at["itl_ms"]);
    at["started_ms"].read(out.started_ms), at["ended_ms"].read(out.ended_ms),
        at["elapsed_ms"].read(out.elapsed_ms);
    at["text_bytes"].read(out.text_bytes), at["text_sha256"].read(out.text_sha256);
    return out;
}

answer::Sample sample(const Cursor& at) {
    answer::Sample out;
    double ms = 0;
    at["t_ms"].read(ms);
    out.at = base::from_ms(ms);
    at["arm"].read(out.arm), at["kv_used"].read(out.kv_used), at["running"].read(out.running),
        at["waiting"].read(out.waiting);
    at["preemptions"].read(out.preemptions), at["free_bytes"].read(out.free_bytes),
        at["server_bytes"].read(out.server_bytes);
    return out;
}

void read_target(const Cursor& at, Document& out) {
    at["url"].read(out.url), at["model"].read(out.model),
        at["api"].word(out.api, answer::parse_api);
    const Cursor server = at["server"];
    server["name"].read(out.server.name), server["version"].read(out.server.version),
        server["how"].read(out.server.how);
    server["model"].read(out.server.model), server["window_tokens"].read(out.server.window),
        server["pool_tokens"].read(out.server.pool);
    server["slots"].read(out.server.slots), server["shared_pool"].read(out.server.shared_pool);
    server["default_max_tokens"].read(out.server.default_max_tokens),
        server["kv_bytes_per_token"].read(out.server.kv_bytes_per_token);
    server["max_queue"].read(out.server.max_queue),
        server["output_deadline_ms"].read(out.server.output_deadline_ms);
}

void read_experiment(const Cursor& at, Document& out) {
    answer::Experiment& plan = out.experiment;
    at["levels"].read(plan.levels), at["prompts"].read(out.prompts), at["repeat"].read(plan.repeat),
        at["max_tokens"].read(plan.max_tokens);
    at["temperature"].read(plan.temperature), at["top_p"].read(plan.top_p),
        at["seed"].read(plan.seed), at["stream"].read(plan.stream);
    at["stagger_s"].read(plan.stagger), at["client_deadline_s"].read(plan.client_deadline),
        at["client_idle_s"].read(plan.client_idle);
    at["budget_s"].read(plan.budget), at["reduced"].read(plan.reduced);
    std::vector<std::string> phases;
    at["phases"].read(phases);
    std::vector<int> admitted;
    at["admitted"].read(admitted);
    for (const Cursor& pair : at["order"].elements()) {
        answer::Experiment::Step& step = plan.order.emplace_back();
        const auto parts = pair.elements();
        if (parts.size() == 2) parts[0].read(step.arm), parts[1].read(step.concurrency);
        if (plan.order.size() <= admitted.size()) step.admitted = admitted[plan.order.size() - 1];
        step.phase = plan.order.size() <= phases.size() ? phases[plan.order.size() - 1] : "level";
    }
}

Document document(const Cursor& at) {
    Document out;
    at["id"].read(out.id);
    std::string started;
    at["started"].read(started);
    if (!started.empty()) at["started"].word(out.started, parse_rfc3339);
    at["elapsed_s"].read(out.elapsed);
    at["interrupted"].read(out.interrupted);
    at["fullstop"]["version"].read(out.fullstop_version),
        at["fullstop"]["build"].read(out.fullstop_build);
    read_target(at["target"], out);
    read_experiment(at["experiment"], out);
    out.judgement.verdict = judgement(at["verdict"]);
    for (const Cursor& element : at["arms"].elements()) {
        judge::ArmJudgement& arm = out.judgement.arms.emplace_back();
        std::string how;
        element["name"].read(arm.name), element["url"].read(arm.url), element["how"].read(how);
        out.arms.push_back({.name = arm.name, .url = arm.url, .how = how});
        arm.verdict = judgement(element["verdict"]);
        for (const Cursor& inner : element["levels"].elements()) arm.levels.push_back(level(inner));
    }
    for (const Cursor& element : at["timeline"].elements()) out.timeline.push_back(sample(element));
    at["notes"].read(out.notes);
    for (const Cursor& element : at["records"].elements()) out.rows.push_back(row(element));
    return out;
}

}  // namespace

base::Result<Document> read_run_document(std::string_view text, std::string_view name) {
    if (text.size() > kMaxRunDocumentBytes)
        return base::usage_error(fmt::format("{} is larger than any run document ({})", name,
                                             short_bytes(static_cast<double>(text.size()))));
    json::error_code error;
    const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
    if (error)
        return base::usage_error(
            fmt::format("{} is not a run document: it is no JSON ({})", name, error.message()),
            "'fullstop probe --json FILE' writes one");
    try {
        std::string schema;
        Cursor(&root, "")["schema"].read(schema);
        if (schema != kRunSchema) {
            const std::string said =
                schema.empty() ? "it names no schema" : "its schema is " + schema;
            return base::usage_error(
                fmt::format("{} is not a document this command reads: {}, wanted is {}", name, said,
                            kRunSchema),
                schema.starts_with("fullstop.run/") ? "a newer fullstop may read it"
                                                    : "'fullstop probe --json FILE' writes one");
        }
        return document(Cursor(&root, ""));
    } catch (const Misfit& misfit) {
        return base::usage_error(
            fmt::format("{} is a damaged run document: {}", name, misfit.what()));
    }
}

}  // namespace fullstop::report
