// connection_broken, silent_end: the body stopped without a word and no timer, arrival or departure
// explains it. connection_broken needs: RST, FIN inside a chunk or before content-length, a refused
// connection, or a close-delimited body without finish reason and terminator. silent_end needs:
// valid framing around an answer that never says why it ended; `[DONE]` without a reason is a
// natural end of servers that forget the label. Refuted by: any named cause above. Recommends:
// recording at the server's own port.
#include <fmt/format.h>

#include <algorithm>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/hop.h"
#include "judge/witnesses/ending.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;
using answer::Transport;

Claim broken(Confidence confidence, std::string text, const Record& record) {
    Claim claim{Cause::kConnectionBroken, confidence};
    claim.evidence.push_back({std::move(text),
                              {record.request.id},
                              static_cast<double>(record.disconnect.at_byte),
                              fmt::format("byte {}", record.disconnect.at_byte)});
    claim.next =
        "repeat against the server's own port: if it is whole there, a hop between cut it; with "
        "times recorded, the silence or elapsed time names its timer";
    if (const auto hop = gateway_of(record))
        claim.evidence.push_back(
            {"the response head is of " + hop->name, {record.request.id}, {}, hop->where});
    return claim;
}

/// Others of this server end without a reason too, and have an answer: it leaves the label out.
bool leaves_reason_out(const Record& record, const Context& context) {
    return std::ranges::any_of(context.baselines, [&](const Record* alone) {
        return alone != &record && end_kind(*alone) == EndKind::kNone && alone->end.terminator &&
               !alone->end.error && has_content(*alone);
    });
}

}  // namespace

MaybeClaim connection_broken(const Record& record, const Context&) {
    const bool whole = end_kind(record) != EndKind::kNone && record.end.terminator;
    if (whole || record.end.error) return std::nullopt;
    if (record.end.transport == Transport::kReset)
        return broken(Confidence::kProven, "the connection was reset inside the answer", record);
    if (record.end.transport == Transport::kRefused)
        return broken(Confidence::kProven, "no connection came about", record);
    if (record.end.transport == Transport::kTruncated && end_kind(record) == EndKind::kNone)
        return broken(Confidence::kProven,
                      "the connection was closed before the body was complete (no last chunk, or "
                      "fewer bytes than announced)",
                      record);
    if (record.end.transport == Transport::kClean &&
        record.framing == answer::Framing::kUntilClose && end_kind(record) == EndKind::kNone &&
        !record.end.terminator)
        return broken(Confidence::kStrong,
                      "a body that ends by closing, without finish reason and terminator: the "
                      "framing cannot tell a cut from an end, the missing words can",
                      record);
    return std::nullopt;
}

MaybeClaim silent_end(const Record& record, const Context& context) {
    if (end_kind(record) != EndKind::kNone || record.end.error) return std::nullopt;
    if (record.end.terminator) {
        Ending ending = ending_of(record.text);
        if (came_empty(record, context.baselines))
            ending = {.open = true, .structural = true, .what = "nothing was said"};
        else if (leaves_reason_out(record, context))
            ending = {};
        Claim claim{ending.open ? Cause::kUnexplained : Cause::kNaturalEnd,
                    ending.open ? Confidence::kUnresolved : Confidence::kWeak};
        if (ending.structural) claim.shortened = true;
        claim.evidence.push_back(
            {"the terminator came without a finish reason" +
                 (ending.open ? ", and " + ending.what
                              : std::string("; the text is closed: probably natural, unlabelled")),
             {record.request.id},
             {},
             "terminator"});
        claim.next = "update the server, or read [DONE] without a reason as its natural end";
        return claim;
    }
    Claim claim{Cause::kUnexplained, Confidence::kUnresolved};
    claim.shortened = true;
    const bool empty = !has_content(record);
    claim.evidence.push_back(
        {fmt::format("{} without finish reason and terminator, transport {}",
                     empty ? "nothing came, and the body ended" : "the text stops",
                     answer::to_string(record.end.transport)),
         {record.request.id},
         {},
         "end facts"});
    claim.next = empty ? "compare the prompt's tokens with the server's pool and window: a request "
                         "that fails in prefill ends so; read the server's log"
                       : "record the same request at the server's own port, and read the server's "
                         "log at this moment";
    if (const auto hop = gateway_of(record))
        claim.evidence.push_back(
            {hop->name +
                 " stands in between, and may have closed the body of an upstream that died",
             {record.request.id},
             {},
             hop->where});
    return claim;
}

}  // namespace fullstop::judge
