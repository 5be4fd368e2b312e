// `fullstop report` and the writing of documents, driven through the command line as a user would.
#include "cli/probe/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "adapters/sqlite/store.h"
#include "cli/output.h"
#include "cli/world.h"
#include "report/json/run_json.h"
#include "report/test_document.h"

namespace fullstop::cli {
namespace {

namespace fs = std::filesystem;
using adapters::sqlite::Store;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class StillClock final : public base::Clock {
public:
    base::Instant now() const override { return {}; }
    base::WallTime wall() const override { return {1'796'008'626'000'000'000}; }
};

class ReportCommand : public testing::Test {
protected:
    ReportCommand() {
        std::string name = (fs::path(testing::TempDir()) / "fullstop_report_XXXXXX").string();
        folder = mkdtemp(name.data());
        env["XDG_STATE_HOME"] = folder / "state";
    }
    ~ReportCommand() override { fs::remove_all(folder); }

    int report(std::vector<std::string> flags) {
        out.str(""), err.str("");
        CLI::App root("test", "fullstop");
        const Command command = add_report(root, world);
        flags.insert(flags.begin(), "report");
        std::ranges::reverse(flags);
        root.parse(flags);
        return command.run();
    }
    void store_run(const std::string& id) {
        auto store =
            Store::open(folder / "state" / "fullstop" / "runs.sqlite", store::Access::kWrite)
                .value();
        answer::Run run = report::sample::plain_run();
        run.id = id;
        ASSERT_TRUE(store.begin_run(run));
        for (int i = 0; i < 10; ++i)
            ASSERT_TRUE(store.add_record(
                run.id, report::sample::cut_answer(1, "a" + std::to_string(i), false)));
        ASSERT_TRUE(store.finish_run(run));
    }
    std::string file(const std::string& name) const { return (folder / name).string(); }
    std::string content(const std::string& name) const {
        std::ifstream stream(folder / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    fs::path folder;
    std::map<std::string, std::string> env;
    std::ostringstream out, err;
    StillClock clock;
    World world{.out = out,
                .err = err,
                .env =
                    [this](const std::string& name) {
                        return env.contains(name) ? std::optional(env.at(name)) : std::nullopt;
                    },
                .out_is_terminal = false,
                .err_is_terminal = false,
                .columns = 80,
                .executable = {},
                .clock = clock};
};

TEST_F(ReportCommand, JudgesTheLastRunAgainAndSaysWhereItIsKept) {
    store_run("run-a");
    const int code = report({});
    EXPECT_THAT(err.str(), "");
    EXPECT_THAT(out.str(), HasSubstr("run-a"));
    EXPECT_THAT(out.str(), HasSubstr("runs.sqlite"));
    ASSERT_EQ(report({"--json", "-"}), code);
    const auto document = report::read_run_document(out.str(), "-").value();
    EXPECT_EQ(report::exit_code(document.judgement.verdict.value), code);
    EXPECT_EQ(document.rows.size(), 10U);
}

TEST_F(ReportCommand, RendersARunDocumentWithTheExitCodeOfItsVerdict) {
    std::ofstream(file("run.json")) << report::to_json(report::sample::defect());
    EXPECT_EQ(report({file("run.json")}), kExitShortened);
    EXPECT_THAT(out.str(), StartsWith("SERVING DEFECT"));
    std::ofstream(file("slow.json")) << report::to_json(report::sample::slower());
    EXPECT_EQ(report({file("slow.json")}), kExitNotShortened);
    std::ofstream(file("open.json")) << report::to_json(report::sample::undecided());
    EXPECT_EQ(report({file("open.json")}), kExitInconclusive);
}

TEST_F(ReportCommand, WritesEveryDocumentAndNothingElseToStandardOutput) {
    std::ofstream(file("run.json")) << report::to_json(report::sample::defect());
    EXPECT_EQ(report({file("run.json"), "--json", "-", "--csv", file("a.csv"), "--junit",
                      file("a.xml"), "--markdown", file("a.md")}),
              kExitShortened);
    EXPECT_EQ(out.str(), report::to_json(report::sample::defect()));
    EXPECT_THAT(content("a.csv"), StartsWith("run,id,arm,"));
    EXPECT_THAT(content("a.xml"), StartsWith("<?xml"));
    EXPECT_THAT(content("a.md"), StartsWith("## SERVING DEFECT"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4);  // no partial file stays
}

TEST_F(ReportCommand, ListsTheRunsNewestFirst) {
    store_run("run-a");
    store_run("run-b");
    EXPECT_EQ(report({"--list"}), kExitNotShortened);
    EXPECT_THAT(out.str(),
                testing::ContainsRegex("run-b .*10 answers\nrun-a .*2026-11-30T03:17:06"));
}

TEST_F(ReportCommand, WhatCannotBeReadIsAUsageErrorWithTheNextStep) {
    EXPECT_EQ(report({}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("no store of runs"));
    store_run("run-a");
    EXPECT_EQ(report({"nobody"}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("no run 'nobody'"));
    EXPECT_THAT(err.str(), HasSubstr("report --list"));
    EXPECT_EQ(report({file("missing.json")}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("No such file"));
    std::ofstream(file("other.json")) << R"({"schema": "fullstop.explanation/1"})";
    EXPECT_EQ(report({file("other.json")}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("fullstop.explanation/1"));
    EXPECT_EQ(report({folder.string()}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("Is a directory"));
    env.clear();
    EXPECT_EQ(report({}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("--store FILE"));
    EXPECT_EQ(out.str(), "");
}

TEST_F(ReportCommand, AFullDiskIsReportedAndImpossibleTargetsAreFoundBeforeAnythingIsWritten) {
    std::ofstream(file("run.json")) << report::to_json(report::sample::defect());
    EXPECT_EQ(report({file("run.json"), "--csv", "/dev/full"}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("cannot write /dev/full: No space left on device"));
    EXPECT_EQ(report({file("run.json"), "--csv", file("no/such/folder.csv")}), kExitUsage);
    EXPECT_THAT(err.str(), HasSubstr("does not exist"));
    EXPECT_EQ(report({file("run.json"), "--csv", folder.string()}), kExitUsage);
    EXPECT_EQ(report({file("run.json"), "--csv", "-", "--json", "-"}), kExitUsage);
    EXPECT_EQ(out.str(), "");
}

TEST_F(ReportCommand, AFailureDoesNotKeepTheOtherDocumentsFromBeingWritten) {
    const Documents documents{
        .json = "/dev/full", .csv = file("a.csv"), .junit = "", .markdown = ""};
    EXPECT_FALSE(write_documents(world, documents, report::sample::defect()));
    EXPECT_THAT(content("a.csv"), StartsWith("run,id"));
}

TEST_F(ReportCommand, ALinkStaysALinkAndItsTargetIsReplaced) {
    std::ofstream(file("real.csv")) << "old";
    fs::create_symlink("real.csv", file("link.csv"));
    ASSERT_TRUE(write_document(world, file("link.csv"), "new"));
    EXPECT_TRUE(fs::is_symlink(file("link.csv")));
    EXPECT_EQ(content("real.csv"), "new");
}

TEST_F(ReportCommand, ColourIsForTerminalsWithoutNoColor) {
    std::ofstream(file("run.json")) << report::to_json(report::sample::defect());
    world.out_is_terminal = true;
    report({file("run.json")});
    EXPECT_THAT(out.str(), HasSubstr("\x1b["));
    report({file("run.json"), "--quiet"});
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b[")));
    env["NO_COLOR"] = "1";
    report({file("run.json")});
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b[")));
}

}  // namespace
}  // namespace fullstop::cli
