// Around answers: clients that leave, identities, the gateway's own pages, draining.
#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";

TEST(Gateway, AClientThatLeavesFreesTheUpstreamWhateverItWasDoing) {
    const std::vector<std::function<void(Bench&)>> stages = {
        [](Bench&) {},
        [](Bench& b) { b.connected(); },
        [](Bench& b) { b.connected(), b.receive(kStreamHead + kPiece); },
    };
    for (const auto& stage : stages) {
        Bench bench;
        bench.request(bench.post(kChat));
        stage(bench);
        bench.leave();
        EXPECT_TRUE(bench.upstream_closed);
        EXPECT_FALSE(bench.timer);
        EXPECT_EQ(bench.gateway.running(), 0U);
        bench.receive(kPiece);  // what was on its way is for nobody
        EXPECT_THAT(
            bench.metrics(),
            HasSubstr(
                "cause=\"client_cancelled\",layer=\"client\",upstream=\"127.0.0.1:9000\"} 1"));
    }
}

TEST(Gateway, AnIdentityThatCannotStandInALogIsRefused) {
    Bench bench;
    auto request = bench.post(kChat);
    request.headers["x-request-id"] = std::string(200, 'x');
    bench.request(request);
    EXPECT_EQ(bench.seen.record().status, 400);
    EXPECT_EQ(bench.connects, 0);
}

TEST(Gateway, ItsOwnPagesAskNobody) {
    for (const auto* path : {"/health", "/metrics", "/fullstop/status"}) {
        Bench bench;
        bench.request(bench.get(path));
        EXPECT_EQ(bench.seen.record().status, 200) << path;
        EXPECT_EQ(bench.connects, 0);
        bench.seen = {};
        bench.request(bench.post(path));
        EXPECT_EQ(bench.seen.record().status, 405) << path;
    }
}

TEST(Gateway, DrainingLetsAnswersFinishAndEndsTheRestWithAReason) {
    Bench bench;
    bench.request(bench.post(kChat));
    bench.connected();
    bench.receive(kStreamHead + kPiece);
    const Seen running = bench.seen;
    Actions out;
    bench.gateway.drain(bench.now, out);
    ASSERT_EQ(out.upstream.size(), 1U);
    EXPECT_EQ(std::get<net::SetTimer>(out.upstream.front()).at,
              bench.now + std::chrono::seconds(5));
    bench.seen = {};
    bench.request(bench.post(kChat));
    EXPECT_EQ(bench.seen.record().status, 503);
    EXPECT_THAT(bench.seen.raw,
                AllOf(HasSubstr("Retry-After: 5\r\n"), HasSubstr("gateway_rejected")));
    EXPECT_FALSE(bench.gateway.drained());
    bench.seen = running;
    bench.now += std::chrono::seconds(5);
    bench.tell(net::TimerFired{0});
    EXPECT_TRUE(bench.gateway.drained());
    EXPECT_THAT(
        bench.seen.body(),
        AllOf(HasSubstr("\"cause\":\"gateway_deadline\",\"by\":\"gateway\""),
              HasSubstr("drain limit of 5 s"), HasSubstr("\"limit\":\"drain\",\"limit_ms\":5E3")));
    EXPECT_FALSE(bench.seen.kept);
}

}  // namespace
}  // namespace fullstop::gateway
