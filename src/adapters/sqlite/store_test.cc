// What the store promises when something goes wrong: killed processes, full disks, read-only
// folders, foreign files.
#include "adapters/sqlite/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace fullstop::adapters::sqlite {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

answer::Run run_named(const std::string& id) {
    answer::Run run;
    run.id = id;
    run.url = "http://127.0.0.1:8080";
    run.model = "small";
    return run;
}
answer::Record record_named(const std::string& id, std::size_t capture_bytes = 20'000) {
    answer::Record record;
    record.request.id = id;
    record.timeline.ended = std::chrono::seconds(3);
    record.capture.bytes = std::string(capture_bytes, 'x');
    return record;
}

class StoreTest : public testing::Test {
protected:
    StoreTest() {
        std::string name = (fs::path(testing::TempDir()) / "fullstop_store_XXXXXX").string();
        folder = mkdtemp(name.data());
        file = folder / "runs.sqlite";
    }
    ~StoreTest() override {
        fs::permissions(folder, fs::perms::owner_all);
        fs::remove_all(folder);
    }
    Store writing() {
        auto opened = Store::open(file, store::Access::kWrite);
        if (!opened) throw std::runtime_error(opened.error().message);
        return std::move(*opened);
    }
    Store reading() { return Store::open(file, store::Access::kRead).value(); }

    fs::path folder;
    fs::path file;
};

/// Runs `work` in a process of its own; what it returns is the exit code.
template <class Work>
pid_t in_child(Work work) {
    const pid_t child = fork();
    if (child != 0) return child;
    try {
        _exit(work());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in a process of its own: %s\n", error.what());
    }
    _exit(99);
}
int exit_code_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StoreTest, MakesItsFolderAndKeepsTheFilePrivate) {
    file = folder / "deep" / "er" / "runs.sqlite";
    writing();
    struct stat facts{};
    ASSERT_EQ(stat(file.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(StoreTest, AProcessKilledWhileWritingLosesNoAnswerThatWasStored) {
    int progress[2];
    ASSERT_EQ(pipe(progress), 0);
    const pid_t child = in_child([&] {
        Store store = writing();
        if (!store.begin_run(run_named("killed"))) return 1;
        for (int i = 0;; ++i) {
            if (!store.add_record("killed", record_named(std::to_string(i)))) return 2;
            if (write(progress[1], "x", 1) != 1) return 3;
        }
    });
    char byte = 0;
    constexpr std::size_t kStored = 25;
    for (std::size_t i = 0; i < kStored; ++i) ASSERT_EQ(read(progress[0], &byte, 1), 1);
    kill(child, SIGKILL);
    exit_code_of(child);
    close(progress[0]), close(progress[1]);

    const answer::Run run = reading().load("last").value();
    EXPECT_GE(run.records.size(), kStored);
    for (std::size_t i = 0; i < run.records.size(); ++i)
        EXPECT_EQ(run.records[i].request.id, std::to_string(i));
    EXPECT_TRUE(run.interrupted);
    EXPECT_EQ(run.elapsed, std::chrono::seconds(3));
    EXPECT_THAT(run.notes.back(), HasSubstr("ended before the run did"));
    EXPECT_FALSE(reading().list().value().front().finished);
}

TEST_F(StoreTest, AProcessThatLeavesWithoutClosingLosesNothing) {
    EXPECT_EQ(exit_code_of(in_child([&] {
                  Store store = writing();
                  return store.begin_run(run_named("left")) &&
                                 store.add_record("left", record_named("a")) &&
                                 store.finish_run(run_named("left"))
                             ? (_exit(0), 0)
                             : 1;
              })),
              0);
    EXPECT_EQ(reading().load("left").value().records.size(), 1U);
    EXPECT_TRUE(writing().begin_run(run_named("next")));
}

TEST_F(StoreTest, AtItsLimitTheStoreRefusesAndKeepsWhatItHas) {
    auto store = Store::open(file, store::Access::kWrite, base::Bytes{300'000}).value();
    ASSERT_TRUE(store.begin_run(run_named("large")));
    std::size_t stored = 0;
    base::Result<void> last;
    for (;
         stored < 1000 && (last = store.add_record("large", record_named(std::to_string(stored))));
         ++stored) {
    }
    ASSERT_FALSE(last);
    EXPECT_GT(stored, 5U);
    EXPECT_THAT(last.error().message, HasSubstr("no room left"));
    EXPECT_EQ(store.load("large").value().records.size(), stored);
    EXPECT_TRUE(writing().add_record("large", record_named("with more room")));
    EXPECT_EQ(store.load("large").value().records.size(), stored + 1);
}

TEST_F(StoreTest, WhereverTheDiskFillsUpWhatWasAcknowledgedIsThere) {
    for (rlim_t limit = 0; limit <= 400'000; limit += 20'000) {
        fs::remove_all(folder), fs::create_directory(folder);
        int counted[2];
        ASSERT_EQ(pipe(counted), 0);
        const int code = exit_code_of(in_child([&] {
            std::signal(SIGXFSZ, SIG_IGN);
            const rlimit files{limit, limit};
            if (setrlimit(RLIMIT_FSIZE, &files) != 0) return 9;
            auto store = Store::open(file, store::Access::kWrite);
            if (!store) return store.error().message.empty() ? 8 : 1;
            if (auto begun = store->begin_run(run_named("full")); !begun)
                return begun.error().message.empty() ? 8 : 2;
            for (int i = 0; i < 10; ++i) {
                const auto added = store->add_record("full", record_named(std::to_string(i)));
                if (!added) return added.error().message.empty() ? 8 : 3;
                if (write(counted[1], "x", 1) != 1) return 9;
            }
            return 0;
        }));
        close(counted[1]);
        std::size_t acknowledged = 0;
        for (char byte = 0; read(counted[0], &byte, 1) == 1;) ++acknowledged;
        close(counted[0]);
        ASSERT_LT(code, 8) << "at " << limit;
        if (code == 0 || code == 3)
            EXPECT_EQ(writing().load("full").value().records.size(), acknowledged)
                << "at " << limit;
        else
            EXPECT_EQ(acknowledged, 0U);
    }
}

TEST_F(StoreTest, AReadOnlyFolderIsNamedAndItsRunsCanStillBeRead) {
    {
        Store store = writing();
        ASSERT_TRUE(store.begin_run(run_named("kept")));
        ASSERT_TRUE(store.finish_run(run_named("kept")));
    }
    chmod(file.c_str(), 0444);
    chmod(folder.c_str(), 0555);
    EXPECT_EQ(
        exit_code_of(in_child([&] {
            if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
                return 9;  // root may write anywhere
            const auto refused = Store::open(file, store::Access::kWrite);
            if (refused || refused.error().message.find("read-only") == std::string::npos) return 1;
            const auto fresh = Store::open(folder / "other.sqlite", store::Access::kWrite);
            if (fresh || fresh.error().message.find("Permission denied") == std::string::npos)
                return 2;
            const auto deeper = Store::open(folder / "new" / "other.sqlite", store::Access::kWrite);
            if (deeper || deeper.error().message.find("Permission denied") == std::string::npos)
                return 3;
            const auto read = Store::open(file, store::Access::kRead);
            return read && read->load("kept") ? 0 : 4;
        })),
        0);
}

TEST_F(StoreTest, TwoProcessesWriteOneFileAtOnce) {
    const auto worker = [&](const std::string& id) {
        return in_child([&, id] {
            Store store = writing();
            if (!store.begin_run(run_named(id))) return 1;
            for (int i = 0; i < 100; ++i)
                if (!store.add_record(id, record_named(std::to_string(i), 2000))) return 2;
            return store.finish_run(run_named(id)) ? 0 : 3;
        });
    };
    const pid_t one = worker("one"), two = worker("two");
    EXPECT_EQ(exit_code_of(one), 0);
    EXPECT_EQ(exit_code_of(two), 0);
    EXPECT_EQ(reading().load("one").value().records.size(), 100U);
    EXPECT_EQ(reading().load("two").value().records.size(), 100U);
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsNamedAndLeftAlone) {
    const std::string garbage(5000, '#');
    std::ofstream(file) << garbage;
    for (const auto access : {store::Access::kWrite, store::Access::kRead}) {
        const auto refused = Store::open(file, access);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message, HasSubstr("no SQLite file"));
    }
    std::ifstream kept(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), garbage);
}

TEST_F(StoreTest, AnotherProgramsDatabaseIsLeftAlone) {
    SQLite::Database(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec("CREATE TABLE theirs (x)");
    const auto refused = Store::open(file, store::Access::kWrite);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("left alone"));
}

TEST_F(StoreTest, AFileOfANewerVersionIsRefusedWithBothNumbers) {
    writing();
    SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
    const auto refused = Store::open(file, store::Access::kRead);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                HasSubstr("newer fullstop (schema 99; this one reads up to 1)"));
}

TEST_F(StoreTest, ADamagedRowIsReportedAsDamageAndNotAsData) {
    {
        Store store = writing();
        ASSERT_TRUE(store.begin_run(run_named("torn")));
        ASSERT_TRUE(store.add_record("torn", record_named("a")));
    }
    SQLite::Database(file.string(), SQLite::OPEN_READWRITE)
        .exec("UPDATE records SET recorded = '{\"status\": \"no number\"}'");
    const auto loaded = reading().load("torn");
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr("damaged: status: expected a whole number"));
}

TEST_F(StoreTest, AWriterThatHoldsTheFileIsReportedAsLocked) {
    Store store = writing();
    ASSERT_TRUE(store.begin_run(run_named("waiting")));
    SQLite::Database other(file.string(), SQLite::OPEN_READWRITE);
    other.exec("BEGIN IMMEDIATE");
    const auto added = store.add_record("waiting", record_named("a"));
    ASSERT_FALSE(added);
    EXPECT_THAT(added.error().message, HasSubstr("locked by another process"));
    other.exec("ROLLBACK");
    EXPECT_TRUE(store.add_record("waiting", record_named("a")));
}

TEST_F(StoreTest, RunsAreFoundById_ByAUniqueBeginning_AndAsLast) {
    Store store = writing();
    answer::Run newer = run_named("abc-2"), older = run_named("abd-1");
    newer.started.unix_ns = 2, older.started.unix_ns = 1;
    ASSERT_TRUE(store.begin_run(newer));
    ASSERT_TRUE(store.begin_run(older));
    ASSERT_TRUE(store.begin_run(run_named("ab")));
    EXPECT_EQ(store.load("last").value().id, "abc-2");
    EXPECT_EQ(store.load("abd").value().id, "abd-1");
    EXPECT_EQ(store.load("ab").value().id, "ab");
    EXPECT_THAT(store.load("a").error().message, HasSubstr("several runs"));
    EXPECT_THAT(store.load("x").error().message, HasSubstr("no run 'x'"));
    EXPECT_EQ(store.list().value().front().id, "abc-2");
    EXPECT_EQ(store.list().value().size(), 3U);
}

TEST_F(StoreTest, AMissingOrEmptyStoreSaysSo) {
    EXPECT_THAT(Store::open(file, store::Access::kRead).error().message,
                HasSubstr("no store of runs"));
    EXPECT_THAT(writing().load("last").error().message, HasSubstr("holds no run yet"));
    EXPECT_THAT(Store::open(folder, store::Access::kWrite).error().message,
                HasSubstr("is a folder"));
    EXPECT_THAT(Store::open(folder / "runs.sqlite" / "x", store::Access::kWrite).error().message,
                HasSubstr("cannot be made"));
}

TEST_F(StoreTest, AnswersOfAnUnknownRunAndSecondRunsOfOneIdAreRefused) {
    Store store = writing();
    EXPECT_FALSE(store.add_record("nobody", record_named("a")));
    ASSERT_TRUE(store.begin_run(run_named("twice")));
    EXPECT_FALSE(store.begin_run(run_named("twice")));
}

}  // namespace
}  // namespace fullstop::adapters::sqlite
