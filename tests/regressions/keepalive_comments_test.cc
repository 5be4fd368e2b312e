// Reported: keepalive comments, id and retry lines.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

Exchange with(const std::string& extra) {
    Exchange exchange;
    exchange.stream()
        .chunk(extra)
        .event(delta("All done."))
        .chunk(extra)
        .event(finish("stop"))
        .event(usage(5, 3))
        .done()
        .last_chunk();
    return exchange;
}

TEST(KeepaliveComments, CommentsAndControlLinesAreLifeAndNotContent) {
    for (const char* extra :
         {":\n\n:\n\n", "id: 7\n\n: ping\n\n", "retry: 3000\n\n", ": preempted\n\n: resumed\n\n"}) {
        const answer::Record record = with(extra).ends();
        EXPECT_EQ(record.text, "All done.") << extra;
        EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << extra << word(judged(record));
        EXPECT_EQ(judged(record).shortened, false);
    }
}

TEST(KeepaliveComments, ACommentThatComesBackAsDataIsAHopsFault) {
    const judge::Finding finding = judged(with("data: : PROCESSING\n\n").ends());
    EXPECT_EQ(finding.cause, Cause::kNaturalEnd) << word(finding);
    bool rewrite = false;
    for (const judge::Alternative& other : finding.alternatives)
        rewrite = rewrite || other.cause == Cause::kGatewayRewrite;
    EXPECT_TRUE(rewrite);
}

}  // namespace
}  // namespace fullstop::regressions
