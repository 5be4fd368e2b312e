// Children, workers and memory readings, with real processes.
#include "adapters/asio/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>

#include "adapters/asio/memory.h"
#include "adapters/asio/worker.h"

namespace fullstop::adapters::asio {
namespace {

using ::testing::HasSubstr;

constexpr base::Duration kLong = std::chrono::seconds(20);

std::unique_ptr<Child> shell(const std::string& script) {
    auto child = Child::start({.program = "sh", .arguments = {"-c", script}});
    EXPECT_TRUE(child.has_value());
    return std::move(*child);
}

std::optional<std::string> line_of(Child& child) {
    const auto line = child.read_line(kLong);
    EXPECT_TRUE(line.has_value()) << line.error().message;
    return line.value_or(std::nullopt);
}

TEST(ChildTest, ItsOutputComesLineByLineAndThenEnds) {
    const auto child = shell("echo one; echo; printf 'no newline'; echo oops >&2; exit 3");
    EXPECT_EQ(line_of(*child), "one");
    EXPECT_EQ(line_of(*child), "");
    EXPECT_EQ(line_of(*child), "no newline");
    EXPECT_EQ(line_of(*child), std::nullopt);
    ASSERT_TRUE(child->ended().has_value());
    EXPECT_EQ(child->ended()->words(), "exited with code 3");
    EXPECT_EQ(child->error_tail(), "oops\n");
}

TEST(ChildTest, SilenceIsAnErrorThatCarriesItsLastWords) {
    const auto child = shell("echo 'loading model' >&2; echo ready; exec sleep 100");
    EXPECT_EQ(line_of(*child), "ready");
    const auto line = child->read_line(std::chrono::milliseconds(20));
    ASSERT_FALSE(line.has_value());
    EXPECT_EQ(line.error().kind, base::ErrorKind::kUnreachable);
    EXPECT_THAT(line.error().hint, HasSubstr("loading model"));
}

TEST(ChildTest, AProgramThatIsNotThereIsAUsageError) {
    const auto child = Child::start({.program = "no-such-program-here", .arguments = {}});
    ASSERT_FALSE(child.has_value());
    EXPECT_EQ(child.error().kind, base::ErrorKind::kUsage);
    EXPECT_EQ(child.error().message,
              "cannot start no-such-program-here: No such file or directory");
}

TEST(ChildTest, EndIsSigtermFirst) {
    const auto child =
        shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    EXPECT_EQ(line_of(*child), "ready");
    EXPECT_EQ(child->end().words(), "exited with code 0");
    EXPECT_EQ(line_of(*child), "bye");
}

TEST(ChildTest, AChildThatIgnoresSigtermIsKilled) {
    const auto child = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    EXPECT_EQ(line_of(*child), "ready");
    EXPECT_EQ(child->end(std::chrono::milliseconds(30)).signal, SIGKILL);
}

TEST(ChildTest, ItsDeathIsTold) {
    const auto child = shell("echo ready; exec sleep 100");
    EXPECT_EQ(line_of(*child), "ready");
    std::promise<ChildEnd> told;
    child->when_ended([&](ChildEnd how) { told.set_value(how); });
    EXPECT_FALSE(child->ended().has_value());
    ASSERT_EQ(::kill(child->pid(), SIGKILL), 0);
    EXPECT_THAT(told.get_future().get().words(), HasSubstr("signal 9"));
}

TEST(ChildTest, ALongErrorOutputKeepsItsEndAndBlocksNobody) {
    const auto child = shell(
        "i=0; while [ $i -lt 3000 ]; do echo \"$i "
        "..............................................................\" >&2; i=$((i+1)); done; "
        "echo done");
    EXPECT_EQ(line_of(*child), "done");
    EXPECT_EQ(line_of(*child), std::nullopt);
    EXPECT_LE(child->error_tail().size(), kChildErrorBytes);
    EXPECT_THAT(child->error_tail(), HasSubstr("2999 ..."));
}

TEST(ChildTest, AGrandchildThatKeepsThePipeDoesNotHideTheEnd) {
    const auto child = shell("sleep 100 & echo $!; exit 0");
    const auto grandchild = line_of(*child);
    EXPECT_EQ(line_of(*child), std::nullopt);
    EXPECT_TRUE(child->ended().has_value());
    ASSERT_TRUE(grandchild.has_value());
    ::kill(std::stoi(*grandchild), SIGKILL);
}

TEST(ChildTest, WhicheverDescriptorIsMissingTheStartFailsAndLeaksNothing) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    int failures = 0;
    bool started = false;
    for (int spare = 0; !started && spare < 12; ++spare) {
        const int next = ::dup(0);
        ASSERT_GE(next, 0);
        ::close(next);
        rlimit tight = before;
        tight.rlim_cur = static_cast<rlim_t>(next + spare);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        auto child = Child::start({.program = "true", .arguments = {}});
        setrlimit(RLIMIT_NOFILE, &before);
        started = child.has_value();
        if (started) continue;
        ++failures;
        EXPECT_THAT(child.error().message, HasSubstr("Too many open files"));
        const int after = ::dup(0);
        EXPECT_EQ(after, next) << "a failed start closes what it opened";
        ::close(after);
    }
    EXPECT_TRUE(started);
    EXPECT_GE(failures, 6);
}

TEST(MemoryTest, OurOwnProcessAndTheMachineCanBeRead) {
    const auto own = resident_memory(::getpid());
    ASSERT_TRUE(own.has_value());
    EXPECT_GT(own->count, 1 << 20);
    const auto free = available_memory();
    ASSERT_TRUE(free.has_value());
    EXPECT_GT(free->count, 1 << 20);
}

TEST(MemoryTest, AProcessThatIsGoneHasNone) {
    const auto child = shell("exit 0");
    child->end();
    EXPECT_EQ(resident_memory(child->pid()), std::nullopt);
}

TEST(MemoryTest, TextThatIsNotWhatItShouldBeGivesNothing) {
    for (const char* text : {"", " ", "12", "12 ", "12 x", "MemAvailable:", "MemAvailable: kB"}) {
        EXPECT_EQ(read_statm(text, 4096), std::nullopt) << text;
        EXPECT_EQ(read_meminfo(text), std::nullopt) << text;
    }
    EXPECT_EQ(read_statm("100 25 3 1 0 9 0\n", 4096)->count, 25 * 4096);
    EXPECT_EQ(read_meminfo("MemTotal: 9 kB\nMemAvailable:    1234 kB\n")->count, 1234 * 1024);
}

TEST(WorkerTest, StepsRunInOrderElsewhereAndResultsComeBackHere) {
    Loop loop;
    Worker worker(loop);
    const auto here = std::this_thread::get_id();
    std::string order;
    for (int i = 0; i < 3; ++i)
        worker.run(
            [&, i] {
                order += std::to_string(i) + (std::this_thread::get_id() == here ? "!" : "");
            },
            [&, i] {
                EXPECT_TRUE(std::this_thread::get_id() == here);
                if (i == 2) loop.stop();
            });
    loop.run();
    EXPECT_EQ(order, "012");
}

TEST(WorkerTest, AWorkerThatGoesAwayFinishesItsStepAndTellsNothing) {
    Loop loop;
    bool told = false;
    int steps = 0;
    {
        std::promise<void> running;
        std::promise<void> go_on;
        Worker worker(loop);  // last, so that it goes first: its step uses the promises
        worker.run(
            [&] {
                running.set_value();
                go_on.get_future().wait();
                ++steps;
            },
            [&] { told = true; });
        worker.run([&] { ++steps; }, [&] { told = true; });
        running.get_future().wait();
        go_on.set_value();
    }
    EXPECT_GE(steps, 1);
    loop.post([&] { loop.stop(); });
    loop.run();
    EXPECT_FALSE(told);
}

}  // namespace
}  // namespace fullstop::adapters::asio
