// Ollama's native /api/chat and /api/generate. `done_reason` may be missing (runner gone) or say
// load / unload.
#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

constexpr double kNanosecondsPerMs = 1e6;

void read_message(JsonValue message, Transcript& out) {
    out.reasoning(0, message["thinking"].string());
    out.content(0, message["content"].string());
    for (const JsonValue call : message["tool_calls"]) {
        out.tool_call(0, call["function"]["name"].string());
        const JsonValue arguments = call["function"]["arguments"];
        out.tool_call(0, arguments.is_string() ? arguments.string() : arguments.source());
    }
}

void read_numbers(JsonValue event, answer::Record& record) {
    using TokenFact = answer::Fact<base::Tokens>;
    if (const auto n = event["prompt_eval_count"].integer())
        record.prompt_tokens = TokenFact::reported({*n}, "prompt_eval_count");
    if (const auto n = event["eval_count"].integer())
        record.output_tokens = TokenFact::reported({*n}, "eval_count");
    const auto prompt = event["prompt_eval_duration"].number();
    if (prompt)
        record.prompt_ms = answer::Fact<double>::reported(*prompt / kNanosecondsPerMs,
                                                          "prompt_eval_duration, nanoseconds");
    const auto total = event["total_duration"].number(), load = event["load_duration"].number(),
               eval = event["eval_duration"].number();
    if (!total || !eval) return;
    // What is left of the total is waiting; rounding may leave a little less than nothing.
    const double queue =
        (*total - load.value_or(0) - prompt.value_or(0) - *eval) / kNanosecondsPerMs;
    record.queue_ms = answer::Fact<double>::derived(
        queue > 0 ? queue : 0,
        "total_duration - load_duration - prompt_eval_duration - eval_duration");
}

}  // namespace

bool read_ollama(JsonValue event, Transcript& out) {
    const JsonValue done = event["done"], message = event["message"], response = event["response"];
    if (!done.is_bool() || !(message.is_object() || response.is_string())) return false;
    out.speaks(answer::Api::kOllama);
    answer::Record& record = out.record();
    if (const auto model = event["model"];
        model.is_string() && record.response_model != model.string())
        record.response_model = model.string();
    read_message(message, out);
    out.reasoning(0, event["thinking"].string());
    out.content(0, response.string());
    if (!done.is_true()) {
        out.partial();
        return true;
    }
    out.finish(0, event["done_reason"]);
    out.detail("done_reason", event["done_reason"]);
    out.detail("load_duration", event["load_duration"]);
    read_numbers(event, record);
    out.terminator();
    return true;
}

}  // namespace fullstop::wire
