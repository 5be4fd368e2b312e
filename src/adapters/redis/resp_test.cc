// Replies come whole out of any pieces, and garbage costs neither memory nor a crash.
#include "adapters/redis/resp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "adapters/redis/limits.h"

namespace fullstop::adapters::redis {
namespace {

/// All replies in `bytes`, fed in pieces that end where `cuts` says; "!" and the words when it is
/// broken.
std::string read_all(const std::string& bytes, const std::vector<std::size_t>& cuts) {
    ReplyReader reader;
    std::string out;
    std::size_t from = 0;
    const std::function<void(const Reply&)> say = [&](const Reply& reply) {
        out += std::to_string(static_cast<int>(reply.kind)) + ":" + std::to_string(reply.integer) +
               reply.text + "[";
        for (const Reply& each : reply.elements) say(each);
        out += "]";
    };
    const auto feed = [&](std::size_t to) {
        if (const auto fed = reader.feed(std::string_view(bytes).substr(from, to - from)); !fed)
            return out += "!", false;
        from = to;
        while (true) {
            const auto reply = reader.next();
            if (!reply) return out += "!", false;
            if (!*reply) return true;
            say(**reply);
        }
    };
    for (const std::size_t cut : cuts)
        if (cut > from && cut < bytes.size() && !feed(cut)) return out;
    feed(bytes.size());
    return out;
}

constexpr auto kAllKinds =
    "+OK\r\n:42\r\n$5\r\nhe\r\no\r\n$-1\r\n*-1\r\n-ERR "
    "no\r\n*4\r\n:0\r\n:1\r\n:-7\r\n*1\r\n$0\r\n\r\n*0\r\n";

TEST(Resp, EveryKindIsRead) {
    EXPECT_EQ(read_all(kAllKinds, {}),
              "1:0OK[]3:42[]1:0he\r\no[]0:0[]0:0[]2:0ERR no[]4:0[3:0[]3:1[]3:-7[]4:0[1:0[]]]4:0[]");
}

RC_GTEST_PROP(RespProperty, AnyCutOfTheSameBytesGivesTheSameReplies, ()) {
    auto cuts = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 80));
    std::ranges::sort(cuts);
    RC_ASSERT(read_all(kAllKinds, cuts) == read_all(kAllKinds, {}));
}

/// Whatever comes, reading ends: with replies, an error, or the wish for more.
RC_GTEST_PROP(RespProperty, GarbageIsEndured, ()) {
    std::string bytes = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("+-:$*0123456789\r\n\n xOK")));
    if (*rc::gen::arbitrary<bool>())
        bytes = std::string(kAllKinds).substr(0, *rc::gen::inRange<std::size_t>(0, 70)) + bytes;
    auto cuts = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 80));
    std::ranges::sort(cuts);
    read_all(bytes, cuts);
}

TEST(Resp, WhatIsNoReplyIsAnError) {
    EXPECT_EQ(read_all("HTTP/1.1 400 Bad Request\r\n\r\n", {}), "!");
    EXPECT_EQ(read_all(":12x\r\n", {}), "!");
    EXPECT_EQ(read_all("*2147483647\r\n", {}), "!")
        << "no memory is taken for what is only announced";
    EXPECT_EQ(read_all("*1\r\n*2000000\r\n", {}), "!");
    EXPECT_EQ(read_all("$1000000000\r\n" + std::string(kMaxReplyBytes + 1, 'x'), {}), "!");
    std::string deep;
    for (int i = 0; i < 50; ++i) deep += "*1\r\n";
    EXPECT_EQ(read_all(deep, {}), "!");
}

TEST(Resp, ACommandIsItsWordsWithTheirLengths) {
    EXPECT_EQ(command({"SET", "a b", ""}), "*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace fullstop::adapters::redis
