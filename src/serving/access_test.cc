// The decision on a head: who has no key has no body read, whatever the path.
#include "serving/access.h"

#include <gtest/gtest.h>

namespace fullstop::serving {
namespace {

int refused(const std::string& target, std::map<std::string, std::string> headers) {
    const Access access{.keys = ApiKeys::parse("bob: builder\n", "keys").value()};
    const auto no = refusal(
        {.id = 1, .method = "POST", .target = target, .headers = std::move(headers), .body = {}},
        access);
    return no ? no->status : 0;
}

TEST(Access, HealthIsForEverybodyAndABodyIsNot) {
    for (const char* target : {"/health", "/health?x=1"}) {
        EXPECT_EQ(refused(target, {}), 0) << target;
        EXPECT_EQ(refused(target, {{"content-length", "0"}, {"origin", "https://evil.example"}}), 0)
            << target;
        EXPECT_EQ(refused(target, {{"content-length", "8388608"}}), 401) << target;
        EXPECT_EQ(refused(target, {{"transfer-encoding", "chunked"}}), 401) << target;
    }
    for (const char* target : {"/health/", "/healthy", "/v1/health", "/health;x", "/%68ealth",
                               "//health", "/x?/health", "http://x/health", ""})
        EXPECT_EQ(refused(target, {}), 401) << target;
}

TEST(Access, AKeyOpensAnythingAndNoPageOfAnother) {
    EXPECT_EQ(refused("/metrics", {{"authorization", "Bearer builder"}}), 0);
    EXPECT_EQ(refused("/metrics", {{"x-api-key", "builder"}}), 401);
    EXPECT_EQ(refused("/metrics", {{"authorization", "Bearer builder"},
                                   {"host", "127.0.0.1"},
                                   {"origin", "https://evil.example"}}),
              403);
}

}  // namespace
}  // namespace fullstop::serving
