// What requests under way may hold together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_crowd.h"
#include "net/memory_budget.h"

namespace fullstop::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kMiB = 1024 * 1024;

std::string body_of(std::size_t bytes) {
    return R"({"messages":[{"role":"user","content":")" + std::string(bytes, 'a') + R"("}]})";
}

TEST(Memory, ABodyUnderWayIsHeldOnceAndUntilItsResponseBegins) {
    net::MemoryBudget memory(16 * kMiB);
    Crowd crowd(
        GatewayOptions{.policy = Crowd::policy_of(2), .version = "test", .memory = &memory});
    const auto a = crowd.ask(body_of(2 * kMiB));
    crowd.connect(a);
    EXPECT_GT(memory.held(), 2 * kMiB);
    EXPECT_THAT(
        crowd[a].sent,
        AllOf(HasSubstr("content-length: " + std::to_string(body_of(2 * kMiB).size()) + "\r\n"),
              testing::EndsWith("aaa\"}]}")));
    crowd.receive(a, Crowd::stream_head());
    EXPECT_EQ(memory.held(), 0U);
}

TEST(Memory, WhenItIsUsedUpLargeRequestsAreRefusedAndSmallOnesGoOn) {
    net::MemoryBudget memory(8 * kMiB);
    Crowd crowd(
        GatewayOptions{.policy = Crowd::policy_of(4), .version = "test", .memory = &memory});
    const auto a = crowd.ask(body_of(3 * kMiB)), b = crowd.ask(body_of(3 * kMiB - 1000)),
               c = crowd.ask(body_of(3 * kMiB)), d = crowd.ask();
    EXPECT_TRUE(crowd.passed_on(a) && crowd.passed_on(b) && crowd.passed_on(d));
    EXPECT_THAT(crowd[c].seen.raw,
                AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 5\r\n"),
                      HasSubstr("hold too much memory")));
    EXPECT_THAT(crowd.page("/metrics"), HasSubstr("fullstop_memory_refused_total 1\n"));
    crowd.answer(a);
    const auto e = crowd.ask(body_of(3 * kMiB));
    EXPECT_TRUE(crowd.passed_on(e));
    crowd.leave(e);
    crowd.answer(b);
    crowd.answer(d);
    EXPECT_EQ(memory.held(), 0U);
}

TEST(Memory, WhatIsKeptOfALargeAnswerIsCountedAndBounded) {
    net::MemoryBudget memory(4 * kMiB);
    Crowd crowd(
        GatewayOptions{.policy = Crowd::policy_of(2), .version = "test", .memory = &memory});
    const auto a = crowd.ask(), b = crowd.ask();
    for (const auto id : {a, b}) {
        crowd.connect(id);
        crowd.receive(id,
                      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                      "8000000\r\n\r\n{\"choices\":[");
        crowd.receive(id, std::string(2 * kMiB, ' '));
    }
    EXPECT_FALSE(crowd.over(a));
    EXPECT_TRUE(crowd.over(b)) << "both do not fit";
    EXPECT_GE(memory.held(), 2 * kMiB);
    crowd.leave(a);
    EXPECT_EQ(memory.held(), 0U);
}

TEST(Memory, ALargeBodyIsSentAgainElsewhereAsItWas) {
    net::MemoryBudget memory(8 * kMiB);
    Crowd crowd(
        GatewayOptions{.policy = Crowd::policy_of(2), .version = "test", .memory = &memory});
    const auto a = crowd.ask(body_of(kMiB));
    crowd.connect(a);
    const std::string first = crowd[a].sent;
    crowd.receive(a, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(crowd[a].attempts, 2);
    crowd.connect(a);
    EXPECT_EQ(crowd[a].sent.substr(crowd[a].sent.find("\r\n\r\n")),
              first.substr(first.find("\r\n\r\n")));
}

}  // namespace
}  // namespace fullstop::gateway
