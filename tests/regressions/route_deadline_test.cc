// Reported: a route deadline cuts healthy streams at a constant time.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

answer::Record cut_at(double ms, double every_ms, const std::string& id) {
    Exchange exchange(id);
    exchange.stream("text/event-stream", {{"server", "envoy"}});
    const int count = static_cast<int>((ms - 5) / every_ms);
    exchange.events(count, "x", every_ms);
    return exchange.ends(End::kFin, ms - 5 - count * every_ms);
}

TEST(RouteDeadline, AConstantTimeWithTokensStillFlowingIsADeadlineOfTheGateway) {
    std::vector<answer::Record> records;
    for (int i = 0; i < 3; ++i)
        records.push_back(cut_at(60'900 + 50 * i, 100 + 13 * i, "a" + std::to_string(i)));
    for (const judge::Finding& finding : judge::judge_together(records).findings) {
        EXPECT_EQ(finding.cause, Cause::kGatewayDeadline) << word(finding);
        EXPECT_EQ(finding.layer, Layer::kGateway);
        EXPECT_NE(finding.confidence, Confidence::kWeak);
    }
}

TEST(RouteDeadline, SilenceBeforeTheEndIsAnIdleLimitInstead) {
    Exchange exchange;
    exchange.stream().events(20, "x");
    const judge::Finding finding = judged(exchange.ends(End::kFin, 60'000));
    EXPECT_EQ(finding.cause, Cause::kGatewayIdleTimeout) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
