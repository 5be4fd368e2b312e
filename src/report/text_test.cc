// Measuring and wrapping it, and numbers for people.
#include "report/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/printable.h"

namespace fullstop::report {
namespace {

TEST(Columns, CountsWideAndCombiningCharacters) {
    EXPECT_EQ(columns("abc"), 3U);
    EXPECT_EQ(columns("漢字"), 4U);
    EXPECT_EQ(columns("e\u0301"), 1U);
    EXPECT_EQ(pad_left("漢", 4), "  漢");
    EXPECT_EQ(pad_right("ab", 4), "ab  ");
}

TEST(Wrap, NeverExceedsTheWidthAndLosesNoWord) {
    EXPECT_EQ(wrap("one two three", 9, "- ", "  "), "- one two\n  three\n");
    EXPECT_EQ(wrap("abcdefghij", 6, "", ""), "abcdef\nghij\n");
    EXPECT_EQ(wrap("", 10, "- ", "  "), "- \n");
    EXPECT_TRUE(rc::check("lines fit, letters stay", [](const std::string& text) {
        const std::string lines = wrap(text, 12, "> ", "  ");
        std::string letters, wanted;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = lines.find('\n', begin)) != std::string::npos;
             begin = end + 1) {
            RC_ASSERT(columns(lines.substr(begin, end - begin)) <= 12);
            for (const char c : lines.substr(begin + 2, end - begin - 2))
                if (c != ' ') letters += c;
        }
        for (const char c : base::printable(text))
            if (c != ' ') wanted += c;
        RC_ASSERT(letters == wanted);
    }));
}

TEST(Numbers, HaveTheDigitsAReaderNeeds) {
    EXPECT_EQ(short_number(0), "0");
    EXPECT_EQ(short_number(0.0123), "0.012");
    EXPECT_EQ(short_number(1.239), "1.24");
    EXPECT_EQ(short_number(0.25), "0.25");
    EXPECT_EQ(short_number(12.34), "12.3");
    EXPECT_EQ(short_number(12345), "12345");
    EXPECT_EQ(short_bytes(1.5e9), "1.5 GB");
    EXPECT_EQ(short_bytes(999), "999 B");
    EXPECT_EQ(short_time(std::chrono::milliseconds(340)), "340 ms");
    EXPECT_EQ(short_time(std::chrono::seconds(125)), "2 min 5 s");
    EXPECT_EQ(short_time(std::chrono::seconds(7260)), "2 h 1 min");
    EXPECT_EQ(counted(1, "user"), "1 user");
    EXPECT_EQ(counted(8, "user"), "8 users");
}

TEST(Rfc3339, GoesThereAndBack) {
    EXPECT_EQ(rfc3339({1'796'008'626'123'456'789}), "2026-11-30T03:17:06.123Z");
    EXPECT_EQ(parse_rfc3339("2026-11-30T03:17:06.123Z")->unix_ns, 1'796'008'626'123'000'000);
    EXPECT_EQ(parse_rfc3339("2026-11-30T03:17:06Z")->unix_ns, 1'796'008'626'000'000'000);
    for (const char* bad : {"", "yesterday", "2026-13-30T03:17:06Z", "2026-11-30T03:17:06.Z",
                            "2026-11-30 03:17:06Z", "2026-11-30T03:17:06"})
        EXPECT_FALSE(parse_rfc3339(bad)) << bad;
}

}  // namespace
}  // namespace fullstop::report
