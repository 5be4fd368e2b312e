// The error object of contract section 6, as a body before the answer began and in the dialect's
// framing inside a stream.
#pragma once

#include <string>
#include <string_view>

#include "gateway/ending/truth.h"
#include "gateway/exchange/response_head.h"
#include "serving/answer_object.h"
#include "serving/reply.h"

namespace fullstop::gateway {

using serving::AnswerNumbers, serving::error_body;

/// Where the dialect of a request looks for an error.
enum class ErrorShape {
    kPlain,      ///< {"error": ...}, also in a stream
    kMessages,   ///< event `error` with its type beside it
    kResponses,  ///< event `response.failed`
};
/// By the path of the request, without its query.
ErrorShape error_shape(std::string_view path);

std::string error_body(const End& end, const AnswerNumbers& numbers, ErrorShape shape);

/// Whether a body that ends with `tail` ends inside an event (of a stream) or a line (of lines).
bool inside_event(BodyForm form, std::string_view tail);

std::string error_event(const End& end, const AnswerNumbers& numbers, ErrorShape shape);
/// The error in a stream of this form. `tail`: the last bytes of the body so far; what is left open
/// there is closed first, so that the event stands alone.
std::string in_band(const End& end, const AnswerNumbers& numbers, ErrorShape shape, BodyForm form,
                    std::string_view tail);

}  // namespace fullstop::gateway
