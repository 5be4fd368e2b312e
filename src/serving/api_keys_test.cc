// Who holds a key is known by its name; nobody else learns anything but that.
#include "serving/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullstop::serving {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFile =
    "# clients of the lab\n\nalice:wonder-land:7\r\n  s3cret-without-name  \nbob: builder\n";

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
    for (const char* other :
         {"", "Bearer", "Bearer ", "builder", "Basic builder", "Bearer builde", "Bearer builder2",
          "Bearer alice:wonder-land:7", "Bearer alice", "Bearer builder, Bearer builder"})
        EXPECT_EQ(keys.client(other), std::nullopt) << other;
    EXPECT_EQ(keys.names(), (std::vector<std::string>{"alice", "key 4", "bob"}));
    EXPECT_FALSE(keys.open());
    EXPECT_TRUE(ApiKeys().open());
}

TEST(ApiKeys, FaultsAreNamedByLineAndNoKeyIsRepeated) {
    EXPECT_THAT(wrong("a:1\nb:two words\n"), AllOf(HasSubstr("keys.txt:2"), Not(HasSubstr("two"))));
    EXPECT_THAT(wrong("a:1\nb:1\n"), HasSubstr("keys.txt:2: this key stands in line 1 already"));
    EXPECT_THAT(wrong("a:1\na:2\n"),
                HasSubstr("keys.txt:2: the name 'a' stands in line 1 already"));
    EXPECT_THAT(wrong(":key\n"), HasSubstr("keys.txt:1: a name"));
    EXPECT_THAT(wrong("a:\n"), HasSubstr("keys.txt:1: a key"));
    EXPECT_THAT(wrong("a:" + std::string(600, 'x')), HasSubstr("keys.txt:1: a key"));
    EXPECT_THAT(wrong("# nobody\n"), HasSubstr("keys.txt holds no key"));
}

}  // namespace
}  // namespace fullstop::serving
