// Was this answer whole? The one place where the gateway decides whether an end may look like an
// end towards the client.
//
// Witnesses are the upstream's framing, the dialect's own end facts and what the gateway did
// itself. A whole answer needs the framing and the facts; where the framing says nothing (a
// close-delimited body) the facts must say more. Nothing is ever invented: an answer that is not
// whole ends with an error object, or with what the upstream itself said last.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answer/cause.h"
#include "answer/record.h"
#include "base/time.h"
#include "gateway/exchange/response_head.h"

namespace fullstop::gateway {

enum class By { kUpstream, kGateway, kClient };
std::string_view to_string(By);

/// What stopped the exchange.
enum class Stop {
    kFramed,     ///< the body is over by the upstream's own framing
    kFin,        ///< the upstream closed
    kRst,        ///< the upstream reset, or its connection broke
    kIdle,       ///< our limit on silence
    kDeadline,   ///< another of our clocks (deadlines.h)
    kShutdown,   ///< our drain limit
    kRefused,    ///< by us, before it was sent anywhere
    kMalformed,  ///< bytes that are no HTTP response
    kTooLarge,   ///< a head or an event beyond the limits of wire
    kEncoded,    ///< an answer in a coding that nobody asked for: its end cannot be read
    kFault,      ///< ours
};

/// All that is known of a response that has stopped. The record's reader was told of the end.
struct Facts {
    const answer::Record& record;
    std::optional<answer::Api> dialect;
    bool answer_expected = false;  ///< a POST to a path that answers come from
    bool success = true;           ///< status 2xx
    bool close_delimited = false;
    BodyForm form = BodyForm::kOther;
    bool inside_event =
        false;             ///< the body stopped before the end of an event, a line or a JSON text
    bool own_end = false;  ///< of a dialect in which no whole answer goes without its own end
                           ///< (Messages, Responses)
    Stop stop = Stop::kFramed;
    std::string detail;  ///< of `stop`, with the numbers
    /// The limit this gateway set instead of the one asked for, and whether it moves with load.
    std::optional<std::int64_t> our_max_tokens = {};
    bool ours_by_load = false;
};

/// Which of our limits ended the answer, and how long it took.
struct CutBy {
    std::string limit;
    base::Duration allowed{}, elapsed{};
};

struct End {
    bool whole = false;  ///< the client may see an orderly end: last chunk, kept connection
    bool say = false;    ///< an in-band error object is due
    bool finished =
        false;  ///< the answer's own end came, whatever its framing did: what says so may go on
    bool answer = false;  ///< an answer of a model, or the failure of one: counted by cause
    answer::Cause cause = answer::Cause::kUnexplained;
    By by = By::kUpstream;
    std::string detail = {};
    std::optional<CutBy> cut_by = {};
};

End judge_end(const Facts& facts);

/// Of a failure before the upstream's head: what it is called, and the status for the client.
End end_before_head(Stop stop, std::string detail);
int status_before_head(const End& end, Stop stop);

}  // namespace fullstop::gateway
