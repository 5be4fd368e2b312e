// What a hostile text looks like once it may be printed.
#include "base/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/utf8.h"

namespace fullstop::base {
namespace {

TEST(Printable, LeavesWordsOfEveryLanguageAsTheyAre) {
    EXPECT_EQ(printable("größer 漢字 🙂 e\u0301 a\\b"), "größer 漢字 🙂 e\u0301 a\\b");
}

TEST(Printable, ShowsWhatWouldDriveATerminal) {
    EXPECT_EQ(printable("\x1b[2Jx\a\x7f"), "\\x1b[2Jx\\x07\\x7f");
    EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, ShowsMarksThatReorderOrHideText) {
    EXPECT_EQ(printable("\u061c\u200e\u200f\u202a\u202e\u2066\u2069"),
              "\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069");
    EXPECT_EQ(printable("\u200b\ufeff\u2028\U000e0041"), "\\u200b\\ufeff\\u2028\\ue0041");
}

TEST(Printable, ReplacesBrokenBytes) {
    EXPECT_EQ(printable("a\xff"
                        "b\xc0\x80"),
              "a\uFFFDb\uFFFD\uFFFD");
    EXPECT_EQ(printable("cut \xe6\xbc"), "cut \uFFFD");
    EXPECT_EQ(printable("\x9b"
                        "31m"),
              "\uFFFD31m");
}

TEST(Printable, IsOneLineUnlessLinesAreWanted) {
    EXPECT_EQ(printable("a\nb\tc\r\n"), "a b c  ");
    EXPECT_EQ(printable_lines("a\x1b\r\nb\n"), "a\\x1b\nb\n");
    EXPECT_EQ(printable_lines("a\rb"), "a b");
}

TEST(Printable, OfAnyBytesIsStableAndHasNoControlCharacter) {
    EXPECT_TRUE(rc::check(
        "printable(x) is valid UTF-8 without control characters, and its own printable form",
        [](const std::string& bytes) {
            const std::string shown = printable(bytes);
            RC_ASSERT(!first_invalid_byte(shown));
            RC_ASSERT(printable(shown) == shown);
            for (const char c : shown)
                RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
        }));
}

}  // namespace
}  // namespace fullstop::base
