// From engine events to the JSON of OpenAI's interface, with the `fullstop` object of the contract.
// Bodies and event data only: framing is http_service's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/answer_end.h"
#include "engine/openai/openai_request.h"
#include "serving/reply.h"

namespace fullstop::engine {

using serving::error_body;

/// What stands in every event of one answer.
struct AnswerNames {
    Route route = Route::kChat;
    std::string request_id;
    std::string model;
    std::int64_t created = 0;  ///< seconds since 1970
    bool logprobs = false;     ///< choices carry them
};

/// HTTP status and the words of an error object.
struct ErrorWords {
    int status = 500;
    std::string_view type;
    std::string code;
};

/// `stop` for an end of the model's own or a stop string, `length` for a limit, absent for
/// everything else.
std::optional<std::string_view> finish_reason(answer::Cause cause);
ErrorWords error_words(const AnswerEnd& end);

/// What is shown at once: text, and the tokens that it completes when log-probabilities were asked
/// for.
struct Piece {
    std::string_view text;
    std::span<const ShownToken> tokens = {};
    std::int64_t offset = 0;  ///< characters of the answer before it
};

/// One streamed piece of text; `first` also names the role (chat).
std::string text_event(const AnswerNames& names, const Piece& piece, bool first);
/// The event with the finish reason; carries the `fullstop` object unless a usage event follows.
std::string finish_event(const AnswerNames& names, const AnswerEnd& end, bool usage_follows);
std::string usage_event(const AnswerNames& names, const AnswerEnd& end);
/// The whole answer as one body.
std::string whole_body(const AnswerNames& names, const AnswerEnd& end, const Piece& all);

/// The error object of an answer that began or could have.
std::string error_body(const AnswerNames& names, const AnswerEnd& end, const ErrorWords& words);
/// The same beside the text so far: `choices` without a finish reason.
std::string partial_body(const AnswerNames& names, const AnswerEnd& end, const ErrorWords& words,
                         const Piece& all);

}  // namespace fullstop::engine
