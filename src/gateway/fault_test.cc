// A fault planted in the gateway's own work for one request: it ends that request, is told, counted
// and reported, and gives back what the request held; everybody else goes on.
#include "gateway/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "gateway/test_crowd.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Planted : public ::testing::Test {
protected:
    GatewayOptions options() {
        GatewayOptions out{.policy = Crowd::policy_of(2, 1), .version = "test"};
        out.policy.budgets.overall = TokenWindow{.tokens = 1000, .window = std::chrono::minutes(1)};
        out.fault = [this](const Fault& fault) { faults.push_back(fault); };
        out.plant = [this] {
            if (planted && --*planted < 0) throw std::runtime_error("planted");
        };
        return out;
    }
    /// The step after so many others fails, and every one behind it.
    void plant(int after = 0) { planted = after; }
    void expect_given_back() {
        planted.reset();
        EXPECT_THAT(
            crowd.page("/metrics"),
            AllOf(HasSubstr("fullstop_gateway_faults_total 1\n"),
                  HasSubstr("fullstop_gateway_exchanges 0\n"),
                  HasSubstr("fullstop_gateway_requests_running{upstream=\"127.0.0.1:9001\"} 0\n"),
                  HasSubstr("fullstop_gateway_tokens_held{upstream=\"127.0.0.1:9001\"} 0\n")));
        EXPECT_EQ(crowd.gateway.running(), 0U);
        EXPECT_EQ(crowd.timers(), 0U);
        ASSERT_EQ(faults.size(), 1U);
        const auto next = crowd.ask();
        ASSERT_TRUE(crowd.passed_on(next)) << "the place is free again";
        crowd.answer(next);
        EXPECT_THAT(crowd[next].seen.raw, AllOf(HasSubstr("[DONE]"), EndsWith("0\r\n\r\n")));
    }

    std::optional<int> planted;
    std::vector<Fault> faults;
    Crowd crowd{options()};
};

TEST_F(Planted, BeforeAHeadItIsA500) {
    plant();
    const auto id = crowd.ask(R"({"stream":true,"max_tokens":10,"x":"\u0007"})");
    ASSERT_TRUE(crowd.over(id));
    EXPECT_THAT(crowd[id].seen.raw, AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("\"error\""),
                                          HasSubstr("a fault of this gateway")));
    EXPECT_FALSE(crowd[id].seen.kept);
    expect_given_back();
    EXPECT_THAT(faults.front().bytes, StartsWith("{\"stream\":true"));
}

TEST_F(Planted, WhileItWaitsForItsConnectionItIsA500) {
    const auto id = crowd.ask();
    plant();
    crowd.connect(id);
    ASSERT_TRUE(crowd.over(id));
    EXPECT_THAT(crowd[id].seen.raw,
                AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("a fault of this gateway: planted"),
                      HasSubstr("\"by\":\"gateway\"")));
    EXPECT_EQ(crowd.closed.size(), 1U) << "the connection to the upstream";
    expect_given_back();
}

TEST_F(Planted, InTheMiddleOfAStreamItIsAnErrorObjectWithoutALastChunk) {
    const auto id = crowd.ask();
    crowd.connect(id);
    crowd.receive(id, Crowd::stream_head() + Crowd::piece("one"));
    plant();
    crowd.receive(id, Crowd::piece("two"));
    ASSERT_TRUE(crowd.over(id));
    EXPECT_THAT(crowd[id].seen.body(),
                AllOf(HasSubstr("one"), HasSubstr("two"),
                      HasSubstr("\"cause\":\"gateway_rejected\",\"by\":\"gateway\"")));
    EXPECT_THAT(crowd[id].seen.raw, Not(EndsWith("\r\n0\r\n\r\n")));
    EXPECT_FALSE(crowd[id].seen.kept);
    EXPECT_EQ(crowd.closed.size(), 1U);
    expect_given_back();
    EXPECT_EQ(faults.front().method, "POST");
    EXPECT_EQ(faults.front().path, "/v1/chat/completions");
    EXPECT_THAT(faults.front().bytes, HasSubstr("two"));
}

TEST_F(Planted, OthersGoOn) {
    const auto one = crowd.ask(), two = crowd.ask(), waiting = crowd.ask();
    for (const auto id : {one, two}) {
        crowd.connect(id);
        crowd.receive(id, Crowd::stream_head() + Crowd::piece());
    }
    ASSERT_FALSE(crowd.passed_on(waiting));
    plant();
    crowd.receive(one, Crowd::piece());
    planted.reset();
    EXPECT_TRUE(crowd.over(one));
    EXPECT_TRUE(crowd.passed_on(waiting)) << "who waited has its place";
    crowd.receive(two, Crowd::ending());
    EXPECT_THAT(crowd[two].seen.raw, EndsWith("0\r\n\r\n"));
}

TEST_F(Planted, ThatEveryStepFailsEndsEveryRequestAndNothingElse) {
    for (int after = 0; after < 6; ++after) {
        plant(after);
        const auto id = crowd.ask();
        if (crowd.passed_on(id) && !crowd.over(id)) crowd.connect(id);
        if (!crowd.over(id)) crowd.receive(id, Crowd::stream_head());
        if (!crowd.over(id)) crowd.receive(id, Crowd::piece());
        if (!crowd.over(id)) crowd.receive(id, Crowd::ending());
        EXPECT_TRUE(crowd.over(id)) << after;
        EXPECT_EQ(crowd.gateway.running(), 0U) << after;
    }
    planted.reset();
}

TEST(FaultLine, IsOneLineWhateverTheBytesAre) {
    const std::string line = fault_line({.what = "no\nsense",
                                         .bytes = std::string("a\0\r\xFF", 4),
                                         .method = "POST",
                                         .path = "/v1/\x1B[31m"});
    EXPECT_EQ(std::ranges::count(line, '\n'), 1);
    EXPECT_TRUE(line.ends_with('\n'));
    EXPECT_EQ(line.find_first_of(std::string_view("\0\r\x1B\xFF", 4)), std::string::npos) << line;
}

}  // namespace
}  // namespace fullstop::gateway
