// Anthropic's Messages, as far as the end of an answer and its text go: the reason comes in
// message_delta, message_stop is the terminator. Which dialect an answer is in is not said yet.
#include <string_view>

#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void report(answer::Fact<base::Tokens>& fact, std::int64_t count, const char* how) {
    if (count >= 0) fact = answer::Fact<base::Tokens>::reported({count}, how);
}

/// What stood in the cache is told apart from the rest of the prompt.
void read_counts(JsonValue usage, answer::Record& record) {
    const auto input = usage["input_tokens"].integer(),
               cached = usage["cache_read_input_tokens"].integer();
    const auto written = usage["cache_creation_input_tokens"].integer();
    if (input)
        report(record.prompt_tokens, *input + cached.value_or(0) + written.value_or(0),
               "usage.input_tokens and what stood in the cache");
    if (cached) report(record.cached_tokens, *cached, "usage.cache_read_input_tokens");
    if (const auto output = usage["output_tokens"].integer(); output && *output > 0)
        report(record.output_tokens, *output, "usage.output_tokens");
}

void read_block(JsonValue block, Transcript& out) {
    out.content(0, block["text"].string());
    out.reasoning(0, block["thinking"].string());
    out.tool_call(0, block["name"].string());
    out.tool_call(0, block["partial_json"].string());
}

void read_message(JsonValue message, Transcript& out) {
    if (const JsonValue model = message["model"]; model.is_string())
        out.record().response_model = model.string();
    if (const JsonValue id = message["id"]; id.is_string()) out.record().response_id = id.string();
    for (const JsonValue block : message["content"]) read_block(block, out);
    out.finish(0, message["stop_reason"].string());
    out.detail("stop_sequence", message["stop_sequence"]);
    read_counts(message["usage"], out.record());
}

}  // namespace

bool read_anthropic(JsonValue event, Transcript& out) {
    const std::string_view type = event["type"].string();
    if (type == "message" && event["content"].is_array()) return read_message(event, out), true;
    if (!type.starts_with("message_") && !type.starts_with("content_block_") && type != "ping")
        return false;
    out.partial();
    if (type == "message_start") read_message(event["message"], out);
    if (type == "content_block_start") read_block(event["content_block"], out);
    if (type == "content_block_delta") read_block(event["delta"], out);
    if (type == "message_delta") {
        out.finish(0, event["delta"]["stop_reason"].string());
        out.detail("stop_sequence", event["delta"]["stop_sequence"]);
        read_counts(event["usage"], out.record());
    }
    if (type == "message_stop") out.terminator();
    return true;
}

}  // namespace fullstop::wire
