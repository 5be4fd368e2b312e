// A run that was stored in PostgreSQL comes back exactly; what that means stands in
// store/round_trip.h.
#include "store/test_round_trip.h"

#include "adapters/postgres/store.h"
#include "adapters/postgres/test_database.h"
#include "adapters/postgres/text_escape.h"
#include "store/encoding.h"

namespace fullstop::adapters::postgres {
namespace {

class PostgresRoundTrip : public testing::Test {
protected:
    TestDatabase database;
    std::unique_ptr<Store> writing = Store::open(database.url(), store::Access::kWrite).value();
};

TEST_F(PostgresRoundTrip, AnyRunComesBackExactlyAsItWasStored) {
    store::any_run_comes_back_exactly_as_it_was_stored(
        *writing, *Store::open(database.url(), store::Access::kRead).value());
}

TEST_F(PostgresRoundTrip, WhatChangesDuringARunIsUpdated) {
    store::what_changes_during_a_run_is_updated(*writing);
}

TEST(TextEscape, OrdinaryTextStaysAsItIsAndAnyBytesComeBack) {
    for (const std::string text : {"", "plain\\text", "größer 漢字 🙂", "tab\tand\nline"})
        EXPECT_EQ(escaped(text), text);
    EXPECT_EQ(escaped(std::string("a\0\xff\x10", 4)),
              "a\x10"
              "00\x10"
              "ff\x10"
              "10");
    EXPECT_EQ(escaped("\xed\xa0\x80"),
              "\x10"
              "ed\x10"
              "a0\x10"
              "80");  // half a surrogate pair, which PostgreSQL refuses
    const bool held =
        rc::check("unescaped(escaped(x)) == x", [](const std::vector<unsigned char>& bytes) {
            const std::string text(bytes.begin(), bytes.end());
            RC_ASSERT(unescaped(escaped(text)) == text);
        });
    EXPECT_TRUE(held);
    for (const char* torn : {"\x10",
                             "a\x10"
                             "0",
                             "\x10"
                             "0g"})
        EXPECT_THROW(unescaped(torn), store::Unreadable) << torn;
}

TEST_F(PostgresRoundTrip, TextsOfEveryFirstAndSecondByteAreTakenByTheDatabase) {
    std::string text;
    for (unsigned first = 0x80; first <= 0xFF; ++first)
        for (unsigned second : {0x7FU, 0x80U, 0x8FU, 0x90U, 0x9FU, 0xA0U, 0xBFU, 0xC0U})
            text.append({static_cast<char>(first), static_cast<char>(second), '\x80', '\x80', '.'});
    answer::Run run;
    run.id = "bytes", run.model = text;
    ASSERT_TRUE(writing->begin_run(run));
    EXPECT_EQ(writing->load("bytes").value().model, text);
}

}  // namespace
}  // namespace fullstop::adapters::postgres
