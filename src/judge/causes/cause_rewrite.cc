// gateway_rewrite: a hop made a cut look like an end, or changed the text. Needs: the same request
// through and past the gateway (judged over the arms of a run), or bytes that only a hop makes: an
// SSE comment that came back as data, two answers' protocols mixed, characters destroyed at a chunk
// boundary. Refuted by: the same bytes at the server's own port. Recommends: the hop's fixed
// version, and recording on both sides.
#include <fmt/format.h>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/words.h"

namespace fullstop::judge {

MaybeClaim gateway_rewrite(const answer::Record& record, const Context&) {
    const bool comment_as_data = record.shape.comment_as_data;
    const bool destroyed =
        contains(record.text, "\xEF\xBF\xBD\xEF\xBF\xBD") || contains(record.text, "\xEF\xBF\xBD");
    if (!comment_as_data && !destroyed) return std::nullopt;
    Claim claim{answer::Cause::kGatewayRewrite, answer::Confidence::kWeak};
    claim.decisive = false;
    claim.why_not = comment_as_data ? "a keepalive comment came back as data: a hop re-wraps the "
                                      "stream; the end itself is not touched"
                                    : "replacement characters stand in the text: a hop may decode "
                                      "chunk by chunk, or the model wrote half a character";
    return claim;
}

}  // namespace fullstop::judge
