// OpenAI's Responses, as far as the end of an answer and its text go: response.completed and
// response.incomplete are whole ends, response.failed is an error. Which dialect an answer is in is
// not said yet.
#include <string_view>

#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void report(answer::Fact<base::Tokens>& fact, JsonValue value, const char* how) {
    if (const auto n = value.integer(); n && *n >= 0)
        fact = answer::Fact<base::Tokens>::reported({*n}, how);
}

/// The object in the last event, or the whole body.
void read_response(JsonValue response, Transcript& out) {
    answer::Record& record = out.record();
    if (const JsonValue model = response["model"]; model.is_string())
        record.response_model = model.string();
    if (const JsonValue id = response["id"]; id.is_string()) record.response_id = id.string();
    const JsonValue usage = response["usage"], why = response["incomplete_details"]["reason"];
    report(record.prompt_tokens, usage["input_tokens"], "usage.input_tokens");
    report(record.output_tokens, usage["output_tokens"], "usage.output_tokens");
    report(record.cached_tokens, usage["input_tokens_details"]["cached_tokens"],
           "usage.input_tokens_details.cached_tokens");
    report(record.reasoning_tokens, usage["output_tokens_details"]["reasoning_tokens"],
           "usage.output_tokens_details.reasoning_tokens");
    const std::string_view status = response["status"].string();
    out.finish(0, why.is_string() ? why.string() : status);
    if (status != "failed") return;
    if (auto error = error_of(response, true)) out.error(std::move(*error));
}

void read_items(JsonValue items, Transcript& out) {
    for (const JsonValue item : items) {
        for (const JsonValue part : item["content"]) out.content(0, part["text"].string());
        out.tool_call(0, item["name"].string());
        out.tool_call(0, item["arguments"].string());
    }
}

}  // namespace

bool read_responses(JsonValue event, Transcript& out) {
    if (event["object"].string() == "response")
        return read_items(event["output"], out), read_response(event, out), true;
    std::string_view type = event["type"].string();
    if (!type.starts_with("response.")) return false;
    type.remove_prefix(9);
    out.partial();
    const std::string_view delta = event["delta"].string();
    if (type == "output_text.delta" || type == "refusal.delta") out.content(0, delta);
    if (type == "reasoning_text.delta" || type == "reasoning_summary_text.delta")
        out.reasoning(0, delta);
    if (type == "function_call_arguments.delta") out.tool_call(0, delta);
    if (type == "completed" || type == "incomplete" || type == "failed") {
        read_response(event["response"], out);
        out.terminator();
    }
    return true;
}

}  // namespace fullstop::wire
