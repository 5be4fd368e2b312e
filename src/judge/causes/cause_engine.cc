// out_of_memory, engine_death, server_error: the server said that something failed, or stopped
// being there. Needs: the words of an error; for a silent death: an event without a model name
// (Ollama swallows its runner's death so), or connections refused after answers broke (outage.h).
// Refuted by: a server that goes on answering in between. Recommends: the server's log, and less
// memory per user.
#include <fmt/format.h>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/hop.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

std::string place(const answer::ServerError& error) {
    return error.where == answer::ErrorPlace::kHttp ? "HTTP body" : "error event";
}

/// Ollama's /v1 layer decodes its runner's error line as a chat line: empty content, empty model
/// name, no reason.
bool swallowed_runner_error(const Record& record) {
    return end_kind(record) == EndKind::kNone && !record.end.terminator &&
           !record.response_id.empty() && record.response_model.empty() &&
           record.stop_details.contains("model");
}

}  // namespace

MaybeClaim out_of_memory(const Record& record, const Context&) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    if (!kind || kind->cause != Cause::kOutOfMemory) return std::nullopt;
    Claim claim{Cause::kOutOfMemory, Confidence::kProven};
    claim.evidence.push_back({fmt::format("\"{}\": {}", one_line(error->text, 160), kind->reading),
                              {record.request.id},
                              {},
                              place(*error)});
    claim.remedies.push_back(
        {"lower the context, the number of parallel requests or the cache type (q8_0), until the "
         "peak under load fits",
         "-c, -np, --cache-type-k q8_0",
         {}});
    return claim;
}

MaybeClaim engine_death(const Record& record, const Context& context) {
    const auto* error = decisive_error(record);
    if (const auto kind = error != nullptr ? classify(*error) : std::nullopt;
        kind && kind->cause == Cause::kEngineDeath) {
        Claim claim{Cause::kEngineDeath, Confidence::kProven};
        claim.evidence.push_back(
            {fmt::format("\"{}\": {}", one_line(error->text, 160), kind->reading),
             {record.request.id},
             {},
             place(*error)});
        claim.next =
            "read the server's log at this moment; lower context and parallel requests if it "
            "speaks of memory";
        return claim;
    }
    if (swallowed_runner_error(record)) {
        Claim claim{Cause::kEngineDeath, Confidence::kStrong};
        claim.evidence.push_back(
            {"the last event has an empty model name and no finish reason, and no terminator "
             "follows: Ollama's /v1 layer makes this of an error of its runner",
             {record.request.id},
             {},
             "last event"});
        claim.next =
            "read Ollama's log at this moment; the same request on /api/chat shows the error's "
            "words";
        return claim;
    }
    if (context.outages == nullptr) return std::nullopt;
    const auto outage = context.outages->find(&record);
    if (outage == context.outages->end() || record.end.error) return std::nullopt;
    const int users = outage->second.concurrency;
    Claim claim{Cause::kEngineDeath, Confidence::kStrong};
    claim.evidence.push_back({fmt::format("answers broke at {} users, and what was tried after "
                                          "that was refused: the server process was gone",
                                          users),
                              {record.request.id},
                              static_cast<double>(users),
                              "transport"});
    claim.next = "look for its end in the system journal (memory killer?) and in the server's log";
    return claim;
}

MaybeClaim server_error(const Record& record, const Context&) {
    const auto* error = decisive_error(record);
    const bool worded = end_kind(record) == EndKind::kError;
    const bool refused = failing_status(record) != 0 && !has_content(record);
    if (error == nullptr && !worded && !refused) return std::nullopt;
    // A line of text without a head may be anybody's.
    const bool anybodys = !record.status && record.unread_events > 0 && error != nullptr &&
                          error->where == answer::ErrorPlace::kHttp;
    Claim claim{Cause::kServerError, anybodys ? Confidence::kWeak : Confidence::kProven};
    claim.evidence.push_back({error != nullptr ? fmt::format("\"{}\"", one_line(error->text, 200))
                              : worded
                                  ? std::string("finish reason \"error\"")
                                  : fmt::format("status {} without a word", failing_status(record)),
                              {record.request.id},
                              {},
                              error != nullptr ? place(*error)
                              : worded         ? "finish_reason"
                                               : "status"});
    claim.next = "read the server's log at this moment";
    return claim;
}

}  // namespace fullstop::judge
