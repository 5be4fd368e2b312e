// Pages of others may not ask; who is no browser is never asked where it comes from.
#include "serving/browser_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullstop::serving {
namespace {

using Headers = std::map<std::string, std::string>;
const std::string kBrowser = "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0";

bool refused(Headers headers, const std::vector<std::string>& allowed = {}) {
    const net::ServiceRequest request{.id = 1,
                                      .method = "POST",
                                      .target = "/v1/chat/completions",
                                      .headers = std::move(headers),
                                      .body = {}};
    return foreign_page(request, AllowedOrigins::parse(allowed).value()).has_value();
}

TEST(BrowserGuard, WhoIsNoBrowserMayUseAnyName) {
    for (const char* host :
         {"127.0.0.1:8080", "gateway:8081", "evil.example", "", "no host at all", "[::1"})
        for (const char* agent : {"curl/8.5.0", "OpenAI/Python 1.50.0", ""})
            EXPECT_FALSE(refused({{"host", host}, {"user-agent", agent}})) << host << agent;
    EXPECT_FALSE(refused({}));
}

TEST(BrowserGuard, APageMayAskWhereItComesFrom) {
    EXPECT_FALSE(refused({{"host", "127.0.0.1:8080"},
                          {"origin", "http://127.0.0.1:8080"},
                          {"sec-fetch-site", "same-origin"}}));
    EXPECT_FALSE(refused({{"host", "[::1]:8080"}, {"origin", "http://[::1]:8080"}}));
    EXPECT_FALSE(refused({{"host", "LocalHost"}, {"origin", "http://localhost:80"}}));
    EXPECT_FALSE(refused({{"host", "localhost:443"}, {"origin", "https://localhost"}}));
    for (const char* origin :
         {"http://127.0.0.1:8081", "http://localhost:8080", "https://127.0.0.1:8080x",
          "https://127.0.0.1", "https://evil.example", "null", "", "http://user@127.0.0.1:8080",
          "http://127.0.0.1:8080/x", "127.0.0.1:8080", "file://"})
        EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"origin", origin}})) << origin;
    EXPECT_TRUE(refused({{"origin", "http://127.0.0.1:8080"}})) << "without a Host";
}

TEST(BrowserGuard, ARequestForAnotherSiteIsRefusedWithoutAnOriginToo) {
    EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"sec-fetch-site", "cross-site"}}));
    for (const char* site : {"same-origin", "same-site", "none"})
        EXPECT_FALSE(refused({{"host", "127.0.0.1:8080"}, {"sec-fetch-site", site}})) << site;
}

TEST(BrowserGuard, ANameThatAnybodyCanPointHereIsRefusedToBrowsers) {
    for (const char* name : {"evil.example", "evil.example:8080", "localhost.evil.example",
                             "127.0.0.1.evil.example", "gpu-box", "not a host"}) {
        EXPECT_TRUE(refused({{"host", name}, {"user-agent", kBrowser}})) << name;
        EXPECT_TRUE(refused({{"host", name}, {"sec-fetch-site", "same-origin"}})) << name;
        EXPECT_TRUE(refused({{"host", name}, {"sec-fetch-mode", "cors"}})) << name;
        EXPECT_TRUE(refused({{"host", name}, {"origin", std::string("http://") + name}})) << name;
    }
    for (const char* name : {"localhost", "localhost:8080", "chat.localhost:8080", "127.0.0.1",
                             "192.168.1.7:8080", "[::1]:8080", "[fd00::1]"})
        EXPECT_FALSE(refused({{"host", name}, {"user-agent", kBrowser}})) << name;
}

TEST(BrowserGuard, AllowedOriginsMayAskAndTheirNamesAreOurs) {
    const std::vector<std::string> allowed{"https://Chat.Example", "http://gpu-box:3000",
                                           "tauri://localhost"};
    EXPECT_FALSE(refused({{"host", "127.0.0.1:8080"},
                          {"origin", "https://chat.example"},
                          {"sec-fetch-site", "cross-site"}},
                         allowed));
    EXPECT_FALSE(
        refused({{"host", "127.0.0.1:8080"}, {"origin", "https://chat.example:443"}}, allowed));
    EXPECT_FALSE(refused({{"host", "127.0.0.1:8080"}, {"origin", "tauri://localhost"}}, allowed));
    EXPECT_FALSE(refused({{"host", "gpu-box:8080"}, {"origin", "http://gpu-box:8080"}}, allowed));
    EXPECT_FALSE(refused({{"host", "gpu-box:8080"}, {"user-agent", kBrowser}}, allowed));
    EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"origin", "http://chat.example"}}, allowed));
    EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"origin", "http://gpu-box"}}, allowed));
    EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"sec-fetch-site", "cross-site"}}, allowed));
    EXPECT_TRUE(refused({{"host", "127.0.0.1:8080"}, {"origin", "null"}}, allowed));
}

TEST(BrowserGuard, WhatIsNoOriginIsAUsageError) {
    for (const char* word :
         {"null", "*", "", "chat.example", "https://", "https://chat.example/path",
          "https://a@chat.example", "https://chat example"}) {
        const auto origins = AllowedOrigins::parse({word});
        ASSERT_FALSE(origins) << word;
        EXPECT_EQ(origins.error().kind, base::ErrorKind::kUsage);
        EXPECT_THAT(origins.error().message, testing::HasSubstr("--allow-origin"));
    }
}

TEST(BrowserGuard, OnlyThisMachineReachesALoopbackAddress) {
    for (const char* host :
         {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost", "Localhost"})
        EXPECT_TRUE(is_loopback(host)) << host;
    for (const char* host : {"0.0.0.0", "::", "192.168.1.7", "gpu-box", "::ffff:10.0.0.1",
                             "127.0.0.1.evil.example", "localhost.example", ""})
        EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace fullstop::serving
