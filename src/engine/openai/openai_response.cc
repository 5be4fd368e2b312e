// Boost.JSON objects in the order clients are used to.
#include "engine/openai/openai_response.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "engine/openai/openai_logprobs.h"
#include "engine/scheduling/slo.h"
#include "serving/answer_object.h"
#include "serving/reply.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;
using answer::Cause;

std::optional<double> milliseconds(const std::optional<base::Duration>& duration) {
    return duration.transform(base::to_ms);
}

std::optional<std::int64_t> count(const std::optional<base::Tokens>& tokens) {
    return tokens.transform([](base::Tokens value) { return value.count; });
}

json::object fullstop_object(const AnswerNames& names, const AnswerEnd& end) {
    const AnswerNumbers& n = end.numbers;
    return serving::fullstop_object(
        {{"cause", answer::to_string(end.cause)}, {"by", "engine"}, {"detail", end.detail}},
        {.request_id = names.request_id,
         .requested_max_tokens = count(n.requested_max_tokens),
         .effective_max_tokens = count(n.effective_max_tokens),
         .prompt_tokens = count(n.prompt_tokens),
         .cached_tokens = n.cached_tokens.count,
         .output_tokens = n.output_tokens.count,
         .queue_ms = milliseconds(n.queue),
         .ttft_ms = milliseconds(n.ttft),
         .paused_ms = base::to_ms(n.paused),
         .preemptions = {{.swap = n.swaps, .recompute = n.recomputes}},
         .kv_bytes_peak = n.kv_bytes_peak.count,
         .deadline_ms = milliseconds(n.deadline),
         .ttft_met = n.ttft_met,
         .itl_met = n.itl_met,
         .ttft_estimate_ms = milliseconds(n.ttft_estimate),
         .demoted = n.demoted});
}

json::object usage_object(const AnswerEnd& end) {
    const std::int64_t prompt = end.numbers.prompt_tokens.value_or(base::Tokens{}).count,
                       output = end.numbers.output_tokens.count;
    return {{"prompt_tokens", prompt},
            {"completion_tokens", output},
            {"total_tokens", prompt + output},
            {"prompt_tokens_details", {{"cached_tokens", end.numbers.cached_tokens.count}}}};
}

json::object frame(const AnswerNames& names, bool chunk) {
    const bool chat = names.route == Route::kChat;
    return {{"id", (chat ? "chatcmpl-" : "cmpl-") + names.request_id},
            {"object", !chat   ? "text_completion"
                       : chunk ? "chat.completion.chunk"
                               : "chat.completion"},
            {"created", names.created},
            {"model", names.model}};
}

json::value word(const std::optional<std::string_view>& text) {
    if (!text) return nullptr;
    return json::string(*text);
}

void add_logprobs(const AnswerNames& names, const Piece& piece, json::object& choice) {
    if (names.logprobs)
        choice["logprobs"] = names.route == Route::kChat
                                 ? chat_logprobs(piece.tokens)
                                 : text_logprobs(piece.tokens, piece.offset);
}

}  // namespace

std::optional<std::string_view> finish_reason(Cause cause) {
    switch (cause) {
        case Cause::kNaturalEnd:
        case Cause::kStopString: return "stop";
        case Cause::kTokenLimit:
        case Cause::kContextLimit: return "length";
        default: return std::nullopt;
    }
}

ErrorWords error_words(const AnswerEnd& end) {
    switch (end.cause) {
        case Cause::kAdmissionRejected: return {503, "overloaded_error", "queue_full"};
        case Cause::kRequestRejected: return {400, "invalid_request_error", "request_rejected"};
        case Cause::kGenerationTimeLimit: return {504, "timeout_error", "deadline"};
        case Cause::kAbortedByServer:
            return {503, "server_error", std::string(answer::to_string(end.cause))};
        default: return {500, "server_error", std::string(answer::to_string(end.cause))};
    }
}

std::string text_event(const AnswerNames& names, const Piece& piece, bool first) {
    json::object event = frame(names, true);
    json::object choice = {{"index", 0}};
    if (names.route == Route::kChat) {
        json::object delta;
        if (first) delta["role"] = "assistant";
        delta["content"] = piece.text;
        choice["delta"] = std::move(delta);
    } else {
        choice["text"] = piece.text;
    }
    add_logprobs(names, piece, choice);
    choice["finish_reason"] = nullptr;
    event["choices"] = json::array{std::move(choice)};
    return json::serialize(event);
}

std::string finish_event(const AnswerNames& names, const AnswerEnd& end, bool usage_follows) {
    json::object event = frame(names, true);
    json::object choice = {{"index", 0}};
    if (names.route == Route::kChat)
        choice["delta"] = json::object();
    else
        choice["text"] = "";
    choice["finish_reason"] = word(finish_reason(end.cause));
    event["choices"] = json::array{std::move(choice)};
    if (!usage_follows) event["fullstop"] = fullstop_object(names, end);
    return json::serialize(event);
}

std::string usage_event(const AnswerNames& names, const AnswerEnd& end) {
    json::object event = frame(names, true);
    event["choices"] = json::array();
    event["usage"] = usage_object(end);
    event["fullstop"] = fullstop_object(names, end);
    return json::serialize(event);
}

namespace {

json::object with_choice(const AnswerNames& names, const AnswerEnd& end, const Piece& all) {
    json::object body = frame(names, false);
    json::object choice = {{"index", 0}};
    if (names.route == Route::kChat)
        choice["message"] = {{"role", "assistant"}, {"content", all.text}};
    else
        choice["text"] = all.text;
    add_logprobs(names, all, choice);
    choice["finish_reason"] = word(finish_reason(end.cause));
    body["choices"] = json::array{std::move(choice)};
    return body;
}

json::object error_object(const AnswerNames& names, const AnswerEnd& end, const ErrorWords& words) {
    // A full queue is the usual reason of its cause, but not of this code.
    const std::string_view meaning =
        words.code == kMissesTarget ? "not taken on" : answer::entry(end.cause).meaning;
    const std::string message = fmt::format("{}: {}", meaning, end.detail);
    return {{"message", serving::quotable(message)},
            {"type", words.type},
            {"code", words.code},
            {"fullstop", fullstop_object(names, end)}};
}

}  // namespace

std::string whole_body(const AnswerNames& names, const AnswerEnd& end, const Piece& all) {
    json::object body = with_choice(names, end, all);
    body["usage"] = usage_object(end);
    body["fullstop"] = fullstop_object(names, end);
    return json::serialize(body);
}

std::string error_body(const AnswerNames& names, const AnswerEnd& end, const ErrorWords& words) {
    return json::serialize(json::object{{"error", error_object(names, end, words)}});
}

std::string partial_body(const AnswerNames& names, const AnswerEnd& end, const ErrorWords& words,
                         const Piece& all) {
    json::object body = with_choice(names, end, all);
    body["error"] = error_object(names, end, words);
    return json::serialize(body);
}

}  // namespace fullstop::engine
