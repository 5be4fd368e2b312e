// The store against a real PostgreSQL: what it finds when it is opened, and what becomes of records
// while the database is away.
#include "adapters/postgres/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "adapters/postgres/schema.h"
#include "adapters/postgres/test_database.h"

namespace fullstop::adapters::postgres {
namespace {

using testing::AllOf;
using testing::HasSubstr;

answer::Run run_named(const std::string& id) {
    answer::Run run;
    run.id = id;
    run.url = "http://127.0.0.1:8080";
    return run;
}
answer::Record record_named(const std::string& id, std::size_t capture_bytes = 2000) {
    answer::Record record;
    record.request.id = id;
    record.timeline.ended = std::chrono::seconds(3);
    record.capture.bytes = std::string(capture_bytes, 'x');
    return record;
}
template <class Condition>
bool soon(Condition condition) {
    for (int i = 0; i < 200 && !condition(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return condition();
}

class PostgresStore : public testing::Test {
protected:
    std::unique_ptr<Store> writing(OutboxLimits limits = {}) {
        return Store::open(database.url(), store::Access::kWrite, limits).value();
    }
    std::unique_ptr<Store> reading() {
        return Store::open(database.url(), store::Access::kRead).value();
    }
    base::Error refused(store::Access access = store::Access::kWrite) {
        auto opened = Store::open(database.url(), access);
        return opened ? base::Error{base::ErrorKind::kInternal, "it was opened", ""}
                      : opened.error();
    }
    TestDatabase database;
};

TEST_F(PostgresStore, ManyThatStartAtOnceMakeTheTablesOnce) {
    std::vector<std::thread> starting;
    std::atomic<int> opened = 0;
    for (int i = 0; i < 8; ++i)
        starting.emplace_back([&, i] {
            auto store = Store::open(database.url(), store::Access::kWrite);
            if (store && (*store)->begin_run(run_named(std::to_string(i)))) ++opened;
        });
    for (std::thread& thread : starting) thread.join();
    EXPECT_EQ(opened, 8);
    EXPECT_EQ(reading()->list().value().size(), 8U);
    EXPECT_EQ(database.number("SELECT count(*) FROM fullstop.schema_version"), 1);
}

TEST_F(PostgresStore, AnswersGoToRunsByIdByAUniqueBeginningAndAsLast) {
    auto store = writing();
    answer::Run newer = run_named("abc-2");
    newer.started.unix_ns = 2;
    ASSERT_TRUE(store->begin_run(newer));
    ASSERT_TRUE(store->begin_run(run_named("abd-1")));
    ASSERT_TRUE(store->add_record("abd-1", record_named("a")));
    ASSERT_TRUE(store->finish_run(run_named("abd-1")));
    EXPECT_EQ(store->load("last").value().id, "abc-2");
    EXPECT_EQ(store->load("abd").value().records.size(), 1U);
    EXPECT_THAT(store->load("ab").error().message, HasSubstr("several runs"));
    EXPECT_THAT(store->load("x").error().message, HasSubstr("no run 'x'"));
    EXPECT_EQ(store->list().value().back().answers, 1);
    EXPECT_TRUE(store->load("abc-2").value().interrupted) << "never finished";
    EXPECT_FALSE(store->begin_run(run_named("abd-1")));
    EXPECT_THAT(store->add_record("nobody", record_named("a")).error().message,
                HasSubstr("not begun"));
}

TEST_F(PostgresStore, WhatIsNotAStoreOfThisVersionIsRefusedAndLeftAlone) {
    EXPECT_THAT(refused(store::Access::kRead).message, HasSubstr("no store of runs"));
    database.run("CREATE SCHEMA fullstop; CREATE TABLE fullstop.theirs (x int)");
    EXPECT_THAT(refused().message, HasSubstr("left alone"));
    database.run("DROP TABLE fullstop.theirs");
    writing();
    database.run("UPDATE fullstop.schema_version SET version = 99");
    EXPECT_THAT(refused().message, HasSubstr("newer fullstop (schema 99; this one reads 1)"));
    database.run("UPDATE fullstop.schema_version SET version = 0");
    EXPECT_THAT(refused().message, HasSubstr("another fullstop (schema 0; this one reads 1)"));
}

TEST_F(PostgresStore, ADatabaseThatCannotBeWrittenOrReadSaysSoWhenItIsOpened) {
    database.run("CREATE ROLE guest LOGIN PASSWORD 'a:secret/with@marks'");
    const auto as_guest = [&](store::Access access) {
        return Store::open(database.url("guest"), access);
    };
    EXPECT_THAT(as_guest(store::Access::kWrite).error().message,
                HasSubstr("permission denied for database"));
    EXPECT_THAT(as_guest(store::Access::kWrite).error().hint,
                HasSubstr("GRANT CREATE ON DATABASE " + database.name + " TO guest"));
    {
        ASSERT_TRUE(writing()->begin_run(run_named("kept")));
    }
    EXPECT_FALSE(as_guest(store::Access::kRead));
    database.run(
        "GRANT USAGE ON SCHEMA fullstop TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA fullstop TO "
        "guest");
    EXPECT_TRUE(as_guest(store::Access::kRead).value()->load("kept"));
    EXPECT_THAT(as_guest(store::Access::kWrite).error().message, HasSubstr("no right to write"));
    database.run("GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA fullstop TO guest");
    EXPECT_TRUE(as_guest(store::Access::kWrite).value()->begin_run(run_named("guest's")));
    database.run("DROP OWNED BY guest; DROP ROLE guest; ALTER DATABASE " + database.name +
                 " SET default_transaction_read_only = on");
    EXPECT_THAT(refused().message, HasSubstr("read-only"));
    EXPECT_TRUE(reading()->load("kept"));
}

TEST(PostgresEncoding, ADatabaseOfAnotherEncodingIsRefused) {
    const TestDatabase old("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    const auto opened = Store::open(old.url(), store::Access::kWrite);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, HasSubstr("LATIN1"));
}

TEST_F(PostgresStore, NobodyThereIsUnreachableAndAWrongNameIsUsage) {
    const auto nobody = Store::open("postgresql://me@127.0.0.1:1/runs", store::Access::kWrite);
    EXPECT_EQ(nobody.error().kind, base::ErrorKind::kUnreachable);
    EXPECT_THAT(nobody.error().message,
                AllOf(HasSubstr("postgresql://me@127.0.0.1:1/runs"), HasSubstr("refused")));
    const auto unknown = Store::open(database.url() + "x", store::Access::kWrite);
    EXPECT_EQ(unknown.error().kind, base::ErrorKind::kUsage);
    EXPECT_THAT(unknown.error().hint, HasSubstr("createdb"));
}

TEST_F(PostgresStore, WhileTheDatabaseIsAwayRecordsWaitAndEachIsWrittenOnce) {
    auto store = writing();
    ASSERT_TRUE(store->begin_run(run_named("long")));
    for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(store->add_record("long", record_named(std::to_string(i))));
        if (i % 50 == 10) database.throw_everybody_out(false);
    }
    database.throw_everybody_out(true);
    for (int i = 300; i < 400; ++i)
        ASSERT_TRUE(store->add_record("long", record_named(std::to_string(i))));
    EXPECT_TRUE(soon([&] { return store->backlog().trouble.has_value(); }));
    EXPECT_GE(store->backlog().waiting, 100);
    EXPECT_THAT(store->backlog().trouble->message, HasSubstr(database.name));
    database.open();
    ASSERT_TRUE(store->finish_run(run_named("long")));
    const answer::Run run = reading()->load("long").value();
    ASSERT_EQ(run.records.size(), 400U);
    for (std::size_t i = 0; i < 400; ++i) EXPECT_EQ(run.records[i].request.id, std::to_string(i));
    EXPECT_FALSE(run.interrupted);
    EXPECT_EQ(store->backlog().lost, 0);
    EXPECT_FALSE(store->backlog().trouble);
}

TEST_F(PostgresStore, AtTheBoundRecordsAreRefusedAndAtTheEndWhatIsMissingIsToldWithTheReason) {
    auto store = writing({.waiting_bytes = 100'000, .flush = std::chrono::milliseconds(300)});
    ASSERT_TRUE(store->begin_run(run_named("lost")));
    ASSERT_TRUE(store->add_record("lost", record_named("first")));
    ASSERT_TRUE(soon([&] { return store->backlog().waiting == 0; }));
    database.throw_everybody_out(true);
    int taken = 0;
    base::Result<void> last;
    while (taken < 1000 &&
           (last = store->add_record("lost", record_named(std::to_string(taken), 10'000))))
        ++taken;
    EXPECT_GT(taken, 4);
    EXPECT_LT(taken, 10);
    EXPECT_THAT(last.error().message, HasSubstr("no more than 100000 bytes may wait"));
    const auto finished = store->finish_run(run_named("lost"));
    ASSERT_FALSE(finished);
    EXPECT_THAT(finished.error().message,
                AllOf(HasSubstr(std::to_string(taken) + " records and readings may be missing"),
                      HasSubstr("not currently accepting")));
    EXPECT_EQ(store->backlog().lost, taken);
    database.open();
    EXPECT_EQ(reading()->load("lost").value().records.size(), 1U);
    EXPECT_TRUE(reading()->load("lost").value().interrupted);
}

TEST_F(PostgresStore, ARecordThatTheDatabaseRefusesIsCountedAndKeepsNoOtherBack) {
    auto store = writing();
    database.run("ALTER TABLE fullstop.records ADD CHECK (id <> 'bad')");
    ASSERT_TRUE(store->begin_run(run_named("mixed")));
    for (const char* id : {"a", "bad", "b", "bad", "c"})
        ASSERT_TRUE(store->add_record("mixed", record_named(id)));
    const auto finished = store->finish_run(run_named("mixed"));
    ASSERT_FALSE(finished);
    EXPECT_THAT(finished.error().message,
                AllOf(HasSubstr("2 records"), HasSubstr("records_id_check")));
    EXPECT_THAT(store->backlog().refusal->message, HasSubstr("records_id_check"));
    EXPECT_EQ(store->load("mixed").value().records.size(), 3U);
}

TEST_F(PostgresStore, TablesThatAreTakenAwayForAWhileCostNothing) {
    auto store = writing();
    ASSERT_TRUE(store->begin_run(run_named("moved")));
    database.run("ALTER TABLE fullstop.records RENAME TO elsewhere");
    ASSERT_TRUE(store->add_record("moved", record_named("a")));
    EXPECT_TRUE(soon([&] { return store->backlog().trouble.has_value(); }));
    database.run("ALTER TABLE fullstop.elsewhere RENAME TO records");
    EXPECT_TRUE(store->finish_run(run_named("moved")));
    EXPECT_EQ(store->load("moved").value().records.size(), 1U);
}

TEST_F(PostgresStore, TheEndOfARunWaitsForASilentDatabaseNoLongerThanItMay) {
    auto store = writing({.flush = std::chrono::milliseconds(200)});
    ASSERT_TRUE(store->begin_run(run_named("silent")));
    Connection other(parse_url(database.url()).value(), database.never);
    other.run("BEGIN; LOCK TABLE fullstop.runs IN ACCESS EXCLUSIVE MODE");
    const auto began = std::chrono::steady_clock::now();
    EXPECT_THAT(store->finish_run(run_named("silent")).error().message,
                HasSubstr("no reply within 0.2 s"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST_F(PostgresStore, ADamagedRowIsReportedAsDamage) {
    auto store = writing();
    ASSERT_TRUE(store->begin_run(run_named("torn")));
    ASSERT_TRUE(store->add_record("torn", record_named("a")));
    ASSERT_TRUE(store->finish_run(run_named("torn")));
    database.run("UPDATE fullstop.records SET recorded = '{\"status\": \"no number\"}'");
    EXPECT_THAT(store->load("torn").error().message,
                HasSubstr("damaged: status: expected a whole number"));
    EXPECT_EQ(store->list().value().size(), 1U) << "the connection can still be used";
}

}  // namespace
}  // namespace fullstop::adapters::postgres
