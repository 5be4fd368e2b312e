// What an error message means: the words of the servers in the catalogue, sorted into causes.
// Matching is by substring without case, because gateways and wrappers put their own words around
// the server's (LiteLLM renames everything).
#pragma once

#include <optional>
#include <string_view>

#include "answer/cause.h"
#include "answer/record.h"

namespace fullstop::judge {

struct ErrorClass {
    answer::Cause cause;
    std::string_view sign;  ///< the words that decided
    std::string_view reading;
};

/// The first class in the table whose words occur in the error's code, type or text.
std::optional<ErrorClass> classify(const answer::ServerError& error);

/// The error that ended the answer: in band, or the HTTP status; nothing else is guessed.
const answer::ServerError* decisive_error(const answer::Record& record);

/// The status of the answer or inside its error, whichever names a failure.
int failing_status(const answer::Record& record);

}  // namespace fullstop::judge
