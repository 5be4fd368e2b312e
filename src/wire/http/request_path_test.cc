// Spellings that a server reads as one path are one here; what servers read differently is refused.
#include "wire/http/request_path.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace fullstop::wire {
namespace {

std::string target_of(std::string_view target) {
    const auto normal = normal_path(target);
    return normal ? normal->target() : "error: " + normal.error();
}

TEST(RequestPath, EverySpellingOfAPathIsOne) {
    for (const auto* spelling : {"/v1/chat/completions",         "/v1/chat/completion%73",
                                 "/v1/chat/%63ompletions",       "/v1/chat/completions/",
                                 "/v1/chat/completions//",       "/v1/chat/completions;x",
                                 "/v1/chat;x=1/completions;",    "/v1/chat/completions#",
                                 "/v1/chat/completions#?x=1",    "//v1///chat/completions",
                                 "/v1/./chat/completions/.",     "/v1/x/../chat/completions",
                                 "/../v1/chat/completions",      "/v1/%2e%2e/v1/chat/completions",
                                 "/v1%2Fchat%2fcompletions",     "/v1/chat/completions%3Bx",
                                 "/v1/x/..;y/chat/completions",  "/v1/chat/completions?",
                                 "http://x/v1/chat/completions", "HTTPS://x:1/v1/chat/completions"})
        EXPECT_EQ(target_of(spelling), "/v1/chat/completions") << spelling;
}

TEST(RequestPath, TheQueryIsKeptAsItWasSent) {
    const auto normal = normal_path("/v1/models/?a=%73&b=/../x;y#z");
    ASSERT_TRUE(normal);
    EXPECT_EQ(normal->path, "/v1/models");
    EXPECT_EQ(normal->query, "a=%73&b=/../x;y");
    EXPECT_EQ(target_of("http://x?a"), "/?a");
}

TEST(RequestPath, TheRootIsAPathToo) {
    for (const auto* root : {"/", "//", "/.", "/..", "/;x", "http://x", "http://x/", "http://x#y"})
        EXPECT_EQ(target_of(root), "/") << root;
    EXPECT_EQ(target_of("*"), "*");
}

TEST(RequestPath, WhatNeedsAnEscapeKeepsOne) {
    EXPECT_EQ(target_of("/m/%20%e2%82%AC\xE2\x82\xAC\xFF\"<"), "/m/%20%E2%82%AC%E2%82%AC%FF%22%3C");
    EXPECT_EQ(target_of("/v1/models/a:b@c+d=e,f"), "/v1/models/a:b@c+d=e,f");
}

TEST(RequestPath, WhatServersReadDifferentlyIsRefused) {
    for (const std::string target :
         {"/v1/completion%2573", "/a%3Fb", "/a%23b", "/a%", "/a%7", "/a%zz", "/a%+1", "/a%0a",
          "/a%00", "/a\\b", "/a%5Cb", "", "?a", "v1/models", "ftp://x/", "x:443"})
        EXPECT_FALSE(normal_path(target)) << target;
    EXPECT_FALSE(normal_path(std::string_view("/a\0b", 4)));
}

TEST(RequestPath, ANormalFormIsItsOwn) {
    constexpr std::string_view kPieces[] = {"/", ".",    "..", ";", "%2e",    "%2F",
                                            "%", "25",   "73", "a", "%e2",    "?",
                                            "#", "\xFF", "//", " ", "http://"};
    base::Random random(1);
    for (int run = 0; run < 20'000; ++run) {
        std::string target = "/";
        for (int piece = 0; piece < 8; ++piece) target += kPieces[random.below(std::size(kPieces))];
        const auto once = normal_path(target);
        if (!once) continue;
        EXPECT_EQ(target_of(once->target()), once->target()) << target;
        EXPECT_EQ(once->path.find("//"), std::string::npos) << target;
    }
}

}  // namespace
}  // namespace fullstop::wire
