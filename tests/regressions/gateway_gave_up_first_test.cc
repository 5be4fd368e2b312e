// Reported: a gateway gives up before the first byte while the server is working.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(GatewayGaveUpFirst, AnHtmlPageOfCloudflareIsItsDeadline) {
    const judge::Finding finding = judged(
        Exchange()
            .whole(524, "<!DOCTYPE html><title>example.org | 524: A timeout occurred</title>",
                   "text/html", {{"server", "cloudflare"}}, 100'400)
            .ends());
    EXPECT_EQ(finding.cause, Cause::kGatewayDeadline) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kGateway);
}

TEST(GatewayGaveUpFirst, SoIsNginxs504) {
    const judge::Finding finding =
        judged(Exchange()
                   .whole(504, "<html><head><title>504 Gateway Time-out</title></head></html>",
                          "text/html", {{"Server", "nginx/1.22.1"}}, 60'010)
                   .ends());
    EXPECT_EQ(finding.cause, Cause::kGatewayDeadline) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
