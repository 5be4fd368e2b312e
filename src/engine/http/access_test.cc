// Who may ask `serve`: holders of a key, and no page of another origin; the others are told before
// their body is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Access, OnlyHealthAnswersWithoutAKey) {
    Host host(TestBackend{}, 64,
              {.keys = serving::ApiKeys::parse("bob: builder\n", "keys.txt").value()});
    EXPECT_EQ(host.read(host.send("GET", "/health")).status, 200);
    const std::string body = R"({"messages":[{"role":"user","content":"hi"}]})";
    for (const auto& [method, path] :
         {std::pair("GET", "/v1/models"), std::pair("GET", "/metrics"),
          std::pair("GET", "/fullstop/status"), std::pair("POST", "/v1/chat/completions"),
          std::pair("GET", "/none")}) {
        for (const auto& headers :
             {std::map<std::string, std::string>{},
              std::map<std::string, std::string>{{"authorization", "Bearer guess"}}}) {
            const auto id = host.send(method, path, body, headers);
            const auto record = host.read(id);
            EXPECT_EQ(record.status, 401) << path;
            EXPECT_THAT(record.headers.at("www-authenticate"), HasSubstr("Bearer"));
            EXPECT_EQ(host.json_of(id).at("error").at("code"), "invalid_api_key");
            EXPECT_THAT(host.body(id), Not(HasSubstr("guess")));
        }
    }
    EXPECT_TRUE(host.commands.empty());
    EXPECT_EQ(
        host.read(host.send("GET", "/metrics", "", {{"authorization", "Bearer builder"}})).status,
        200);
    const auto asked =
        host.send("POST", "/v1/chat/completions", body, {{"authorization", "Bearer builder"}});
    ASSERT_EQ(host.commands.size(), 1U);
    EXPECT_EQ(std::get<Submission>(host.commands.front()).client, "bob");
    host.run();
    EXPECT_EQ(host.read(asked).status, 200);
}

TEST(Access, WithoutKeysEverybodyMayAskAndIsNobodyInParticular) {
    Host host;
    host.send("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})",
              {{"authorization", "Bearer anything"}});
    ASSERT_EQ(host.commands.size(), 1U);
    EXPECT_EQ(std::get<Submission>(host.commands.front()).client, "");
}

TEST(Access, AKeyIsLookedAtBeforeTheBodyIsRead) {
    Host host(TestBackend{}, 64,
              {.keys = serving::ApiKeys::parse("bob: builder\n", "keys.txt").value()});
    const auto head = [&](std::map<std::string, std::string> headers) {
        net::ServiceActions out;
        headers["content-length"] = "8388608";
        const bool wanted = host.service.head(host.now,
                                              {.id = 1,
                                               .method = "POST",
                                               .target = "/v1/completions",
                                               .headers = std::move(headers),
                                               .body = {}},
                                              out);
        return std::pair(wanted, out.size());
    };
    EXPECT_EQ(head({{"authorization", "Bearer builder"}}), std::pair(true, std::size_t{0}));
    EXPECT_EQ(head({{"authorization", "Bearer other"}}), std::pair(false, std::size_t{2}));
    EXPECT_EQ(head({}), std::pair(false, std::size_t{2}));
}

TEST(Access, APageOfAnotherOriginMayNotAsk) {
    Host host(TestBackend{}, 64,
              {.origins = serving::AllowedOrigins::parse({"https://chat.example"}).value()});
    const std::string body = R"({"messages":[{"role":"user","content":"hi"}]})";
    const std::map<std::string, std::string> foreign{{"host", "127.0.0.1:8080"},
                                                     {"origin", "https://evil.example"},
                                                     {"content-type", "text/plain"}};
    const auto refused = host.send("POST", "/v1/chat/completions", body, foreign);
    EXPECT_EQ(host.read(refused).status, 403);
    EXPECT_EQ(host.json_of(refused).at("error").at("code"), "foreign_page");
    EXPECT_TRUE(host.commands.empty());
    EXPECT_EQ(host.read(host.send("GET", "/health", "", foreign)).status, 200);
    host.send("POST", "/v1/chat/completions", body,
              {{"host", "127.0.0.1:8080"}, {"origin", "https://chat.example"}});
    EXPECT_EQ(host.commands.size(), 1U);
}

}  // namespace
}  // namespace fullstop::engine
