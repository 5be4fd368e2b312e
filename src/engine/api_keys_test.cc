// Who holds a key may ask, and is known by its name; nobody else learns anything but that.
#include "engine/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFile = "# clients of the lab\n\nalice:wonder-land:7\r\n  s3cret-without-name  \nbob: builder\n";

std::string wrong(const std::string& text) {
    const auto keys = ApiKeys::parse(text, "keys.txt");
    if (keys) return "accepted";
    EXPECT_EQ(keys.error().kind, base::ErrorKind::kUsage);
    return keys.error().message;
}

TEST(ApiKeys, EachLineIsAClientWithItsName) {
    const auto keys = ApiKeys::parse(kFile, "keys.txt").value();
    EXPECT_EQ(keys.client("Bearer wonder-land:7"), "alice");
    EXPECT_EQ(keys.client("bearer   builder"), "bob");
    EXPECT_EQ(keys.client("Bearer s3cret-without-name"), "key 4");
    for (const char* other : {"", "Bearer", "Bearer ", "builder", "Basic builder", "Bearer builde", "Bearer builder2", "Bearer alice:wonder-land:7",
                              "Bearer alice", "Bearer builder, Bearer builder"})
        EXPECT_EQ(keys.client(other), std::nullopt) << other;
    EXPECT_FALSE(keys.open());
    EXPECT_TRUE(ApiKeys().open());
}

TEST(ApiKeys, FaultsAreNamedByLineAndNoKeyIsRepeated) {
    EXPECT_THAT(wrong("a:1\nb:two words\n"), AllOf(HasSubstr("keys.txt:2"), Not(HasSubstr("two"))));
    EXPECT_THAT(wrong("a:1\nb:1\n"), HasSubstr("keys.txt:2: this key stands in line 1 already"));
    EXPECT_THAT(wrong("a:1\na:2\n"), HasSubstr("keys.txt:2: the name 'a' stands in line 1 already"));
    EXPECT_THAT(wrong(":key\n"), HasSubstr("keys.txt:1: a name"));
    EXPECT_THAT(wrong("a:\n"), HasSubstr("keys.txt:1: a key"));
    EXPECT_THAT(wrong("a:" + std::string(600, 'x')), HasSubstr("keys.txt:1: a key"));
    EXPECT_THAT(wrong("# nobody\n"), HasSubstr("keys.txt holds no key"));
}

TEST(ApiKeys, OnlyHealthAnswersWithoutAKey) {
    Host host(TestBackend{}, 64, ApiKeys::parse(kFile, "keys.txt").value());
    EXPECT_EQ(host.read(host.send("GET", "/health")).status, 200);
    const std::string body = R"({"messages":[{"role":"user","content":"hi"}]})";
    for (const auto& [method, path] : {std::pair("GET", "/v1/models"), std::pair("GET", "/metrics"), std::pair("GET", "/fullstop/status"),
                                       std::pair("POST", "/v1/chat/completions"), std::pair("GET", "/none")}) {
        for (const auto& headers : {std::map<std::string, std::string>{}, std::map<std::string, std::string>{{"authorization", "Bearer guess"}}}) {
            const auto id = host.send(method, path, body, headers);
            const auto record = host.read(id);
            EXPECT_EQ(record.status, 401) << path;
            EXPECT_THAT(record.headers.at("www-authenticate"), HasSubstr("Bearer"));
            EXPECT_EQ(host.json_of(id).at("error").at("code"), "invalid_api_key");
            EXPECT_THAT(host.body(id), Not(HasSubstr("guess")));
        }
    }
    EXPECT_TRUE(host.commands.empty());
    EXPECT_EQ(host.read(host.send("GET", "/metrics", "", {{"authorization", "Bearer builder"}})).status, 200);
    const auto asked = host.send("POST", "/v1/chat/completions", body, {{"authorization", "Bearer builder"}});
    ASSERT_EQ(host.commands.size(), 1U);
    EXPECT_EQ(std::get<Submission>(host.commands.front()).client, "bob");
    host.run();
    EXPECT_EQ(host.read(asked).status, 200);
}

TEST(ApiKeys, WithoutKeysEverybodyMayAskAndIsNobodyInParticular) {
    Host host;
    host.send("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})", {{"authorization", "Bearer anything"}});
    ASSERT_EQ(host.commands.size(), 1U);
    EXPECT_EQ(std::get<Submission>(host.commands.front()).client, "");
}

}  // namespace
}  // namespace fullstop::engine
