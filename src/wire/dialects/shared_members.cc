// Numbers that several servers report in the same members or headers; each fact names the member it
// came from.
#include <charconv>
#include <string>

#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

using base::Tokens;
using TokenFact = answer::Fact<Tokens>;

void report(TokenFact& fact, JsonValue value, std::string_view how) {
    const auto count = value.integer();
    if (!count || *count < 0) return;
    // The usual stream repeats its numbers in each event; only the value changes then.
    if (fact.value && fact.from == answer::Provenance::kReported && fact.how == how)
        fact.value = Tokens{*count};
    else
        fact = TokenFact::reported({*count}, std::string(how));
}

void report(answer::Fact<double>& fact, JsonValue value, std::string_view how, double scale = 1) {
    if (const auto number = value.number(); number && *number >= 0)
        fact = answer::Fact<double>::reported(*number * scale, std::string(how));
}

std::optional<double> header_number(const answer::Record& record, const char* name) {
    const auto it = record.headers.find(name);
    if (it == record.headers.end()) return std::nullopt;
    double value = 0;
    const char* begin = it->second.data();
    const auto [end, error] = std::from_chars(begin, begin + it->second.size(), value);
    if (error != std::errc() || !(value >= 0) || value > 1e15) return std::nullopt;
    return value;
}

}  // namespace

void read_usage(JsonValue usage, answer::Record& out) {
    if (!usage.is_object()) return;
    report(out.prompt_tokens, usage["prompt_tokens"], "usage.prompt_tokens");
    report(out.output_tokens, usage["completion_tokens"], "usage.completion_tokens");
    report(out.cached_tokens, usage["prompt_tokens_details"]["cached_tokens"],
           "usage.prompt_tokens_details.cached_tokens");
    report(out.reasoning_tokens, usage["completion_tokens_details"]["reasoning_tokens"],
           "usage.completion_tokens_details.reasoning_tokens");
    report(out.reasoning_tokens, usage["reasoning_tokens"], "usage.reasoning_tokens");  // SGLang
    report(out.prompt_ms, usage["prompt_time"], "usage.prompt_time, seconds", 1000);    // TabbyAPI
    report(out.queue_ms, usage["queue_time"], "usage.queue_time, seconds", 1000);
}

void read_timings(JsonValue timings, answer::Record& out) {
    if (!timings.is_object()) return;
    report(out.prompt_ms, timings["prompt_ms"], "timings.prompt_ms");
    const auto cached = timings["cache_n"].integer(), fresh = timings["prompt_n"].integer();
    if (cached) report(out.cached_tokens, timings["cache_n"], "timings.cache_n");
    // usage says the same where it is sent, and says it without a sum.
    if (!out.prompt_tokens && cached && fresh)
        out.prompt_tokens =
            TokenFact::derived({*cached + *fresh}, "timings.cache_n + timings.prompt_n");
    if (!out.output_tokens || out.output_tokens.how == "timings.predicted_n")
        report(out.output_tokens, timings["predicted_n"], "timings.predicted_n");
    for (const auto key : {"predicted_ms", "predicted_per_token_ms"})
        if (const auto text = timings[key].verbatim(); !text.empty())
            out.stop_details[std::string("timings.") + key] = text;
}

void read_metrics(JsonValue metrics, answer::Record& out) {
    report(out.queue_ms, metrics["queue_time_ms"], "metrics.queue_time_ms");
}

void read_fullstop(JsonValue object, Transcript& out) {
    if (!object.is_object()) return;
    answer::Record& record = out.record();
    report(record.effective_max_tokens, object["effective_max_tokens"],
           "fullstop.effective_max_tokens");
    report(record.prompt_tokens, object["prompt_tokens"], "fullstop.prompt_tokens");
    report(record.cached_tokens, object["cached_tokens"], "fullstop.cached_tokens");
    report(record.output_tokens, object["output_tokens"], "fullstop.output_tokens");
    report(record.queue_ms, object["queue_ms"], "fullstop.queue_ms");
    report(record.paused_ms, object["paused_ms"], "fullstop.paused_ms");
    report(record.server_deadline_ms, object["deadline_ms"], "fullstop.deadline_ms");
    if (const auto bytes = object["kv_bytes_peak"].integer())
        record.kv_bytes = answer::Fact<base::Bytes>::reported({*bytes}, "fullstop.kv_bytes_peak");
    const JsonValue preemptions = object["preemptions"];
    const auto swaps = preemptions["swap"].integer(),
               recomputes = preemptions["recompute"].integer();
    if (swaps || recomputes)
        record.preemptions = answer::Fact<std::int64_t>::reported(
            swaps.value_or(0) + recomputes.value_or(0),
            "fullstop.preemptions.swap + fullstop.preemptions.recompute");
    const JsonValue stop = object["stop"];
    out.detail("fullstop.stop.by", stop["by"]);
    out.detail("fullstop.stop.detail", stop["detail"]);
    const std::string_view cause = stop["cause"].string();
    if (cause.empty()) return;
    record.fullstop_cause = std::string(cause);
    if (cause == "gateway_deadline") record.deadline_fired = answer::DeadlineFired::kGateway;
    if (cause == "generation_time_limit") record.deadline_fired = answer::DeadlineFired::kServer;
}

void read_generation_settings(JsonValue object, Transcript& out) {
    if (!object.is_object()) return;
    answer::Record& record = out.record();
    out.detail("generation_settings.seed", object["seed"]);
    for (const auto key : {"n_predict", "max_tokens"}) {
        const auto limit = object[key].integer();
        if (!limit) continue;
        const std::string how = std::string("generation_settings.") + key;
        record.effective_max_tokens = *limit >= 0
                                          ? TokenFact::reported({*limit}, how)
                                          : TokenFact::unavailable(how + " is negative: no limit");
        return;
    }
}

void read_headers(answer::Record& record) {
    const auto tokens = [&](TokenFact& fact, const char* name) {
        if (const auto n = header_number(record, name))
            fact =
                TokenFact::reported({static_cast<std::int64_t>(*n)}, std::string("header ") + name);
    };
    const auto ms = [&](answer::Fact<double>& fact, const char* name, double scale,
                        const char* note) {
        if (const auto n = header_number(record, name))
            fact = answer::Fact<double>::reported(*n * scale, std::string("header ") + name + note);
    };
    tokens(record.effective_max_tokens, "fullstop-effective-max-tokens");
    ms(record.queue_ms, "fullstop-queue-ms", 1, "");
    ms(record.gateway_deadline_ms, "fullstop-deadline-ms", 1, "");
    ms(record.gateway_deadline_ms, "x-litellm-timeout", 1000,
       ", seconds; of a stream it limits the gap between reads");
    ms(record.queue_ms, "x-queue-time", 1, "");
    tokens(record.prompt_tokens, "x-prompt-tokens");
    tokens(record.output_tokens, "x-generated-tokens");
}

}  // namespace fullstop::wire
