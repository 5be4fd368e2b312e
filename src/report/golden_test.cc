// The whole text of every rendering, held against files in tests/golden/report. After a wanted
// change the failure names the new text's file: read it, then copy it over the old one with the
// command it prints.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/printable.h"
#include "base/utf8.h"
#include "report/csv.h"
#include "report/json/run_json.h"
#include "report/junit.h"
#include "report/markdown.h"
#include "report/terminal.h"
#include "report/test_document.h"
#include "report/text.h"
#include "report/words.h"
#include "tests/support/source_dir.h"

namespace fullstop::report {
namespace {

namespace fs = std::filesystem;

void expect_golden(const std::string& name, const std::string& text) {
    const fs::path golden = tests::source_dir() / "tests" / "golden" / "report" / name;
    std::ifstream file(golden, std::ios::binary);
    const std::string wanted(std::istreambuf_iterator<char>(file), {});
    if (wanted == text) return;
    const fs::path actual = fs::path(testing::TempDir()) / ("actual_" + name);
    std::ofstream(actual, std::ios::binary) << text;
    ADD_FAILURE() << "the text differs from the golden one: diff " << golden << ' ' << actual
                  << "\nwanted? cp " << actual << ' ' << golden;
}

void expect_all_golden(const std::string& name, const Document& document) {
    expect_golden(
        name + ".txt",
        to_terminal(document,
                    {.colour = false, .stored = "/home/user/.local/state/fullstop/runs.sqlite"}));
    expect_golden(name + ".md", to_markdown(document));
    expect_golden(name + ".csv", to_csv(document));
    expect_golden(name + ".junit.xml", to_junit(document));
    expect_golden(name + ".json", to_json(document));
}

TEST(GoldenReport, ARunThatWasCut) { expect_all_golden("defect", sample::defect()); }
TEST(GoldenReport, ARunThatOnlySlowedDown) { expect_all_golden("slower", sample::slower()); }
TEST(GoldenReport, ARunThatCouldNotBeDecidedWithAHostileServer) {
    expect_all_golden("undecided", sample::undecided());
}

class EveryDocument : public testing::TestWithParam<Document (*)()> {};
INSTANTIATE_TEST_SUITE_P(, EveryDocument,
                         testing::Values(&sample::defect, &sample::slower, &sample::undecided));

TEST_P(EveryDocument, FitsInEightyColumnsAndSendsNoControlCharacterToTheTerminal) {
    const std::string text =
        to_terminal(GetParam()(), {.colour = false,
                                   .stored = "/a/path/without/any/space/that/is/longer/than/one/"
                                             "line/of/a/terminal/can/hold/by/far/runs.sqlite"});
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        const std::string line = text.substr(begin, end - begin);
        EXPECT_LE(columns(line), 80U) << line;
        EXPECT_EQ(base::printable(line), line);
    }
    EXPECT_EQ(begin, text.size());
}

TEST_P(EveryDocument, WithColourDiffersOnlyByColour) {
    std::string coloured = to_terminal(GetParam()(), {.colour = true, .stored = ""});
    for (std::size_t at = 0; (at = coloured.find("\x1b[")) != std::string::npos;)
        coloured.erase(at, coloured.find('m', at) + 1 - at);
    EXPECT_EQ(coloured, to_terminal(GetParam()(), {.colour = false, .stored = ""}));
}

TEST_P(EveryDocument, IsTheSameInEveryRenderingAfterItWasReadBack) {
    const Document document = GetParam()();
    const std::string json = to_json(document);
    const auto back = read_run_document(json, "run.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
    // Broken bytes were replaced in the document, so the other renderings are compared with those
    // of the valid text.
    const Document twice = read_run_document(to_json(*back), "run.json").value();
    EXPECT_EQ(to_terminal(*back, {}), to_terminal(document, {}));
    EXPECT_EQ(to_markdown(*back), to_markdown(document));
    EXPECT_EQ(to_csv(*back), to_csv(document));
    EXPECT_EQ(to_junit(*back), to_junit(document));
    EXPECT_EQ(to_csv(twice), to_csv(*back));
}

TEST_P(EveryDocument, IsValidUtf8InEveryRendering) {
    const Document document = GetParam()();
    for (const std::string& text : {to_terminal(document, {}), to_markdown(document),
                                    to_csv(document), to_junit(document), to_json(document)})
        EXPECT_EQ(base::valid_utf8(text), text);
}

TEST(Terminal, LeadsWithVerdictAndRemedy) {
    const std::string text = to_terminal(sample::defect(), {});
    EXPECT_TRUE(
        text.starts_with("SERVING DEFECT: the serving path shortens answers, from 4 users on\n"))
        << text;
    EXPECT_LT(text.find("-c 3328"), text.find("Deployed arm"));
    EXPECT_LT(text.find("Deployed arm"), text.find("Evidence"));
    EXPECT_LT(text.find("Evidence"), text.find("How sure"));
    EXPECT_LT(text.find("How sure"), text.find("Next experiment"));
}

/// The same run with its losses refused at the door: all of them, or all but one of each level.
Document refused(std::int64_t still_cut) {
    Document document = sample::defect();
    for (judge::ArmJudgement& arm : document.judgement.arms)
        for (judge::LevelJudgement& level : arm.levels) {
            if (level.cut == 0) continue;
            level.refused = level.cut - still_cut, level.cut = still_cut, level.why.clear();
        }
    return document;
}

TEST(Words, SpeedThatIsNotKnownIsNotCalledUnchanged) {
    std::vector<judge::LevelJudgement> levels(2);
    levels[1].concurrency = 8;
    levels[1].paired_length = judge::PairedLength{.pairs = 4};
    EXPECT_EQ(meaning(judge::Verdict::kUnaffected, levels), "no answer became shorter");
    levels[1].paired_length->pairs = 8;
    EXPECT_EQ(meaning(judge::Verdict::kUnaffected, levels),
              "answers became neither shorter nor slower");
}

TEST(Words, RefusedAnswersAreNotCalledShortened) {
    for (const std::string& text : {to_terminal(refused(0), {}), to_markdown(refused(0))}) {
        EXPECT_NE(text.find("SERVING DEFECT: the serving path refuses answers"), std::string::npos)
            << text;
        EXPECT_EQ(text.find("shortens"), std::string::npos) << text;
    }
    EXPECT_NE(to_junit(refused(0)).find("message=\"the serving path refuses answers\""),
              std::string::npos);
}

TEST(Words, CutAndRefusedAnswersAreBothNamed) {
    EXPECT_TRUE(to_terminal(refused(1), {})
                    .starts_with("SERVING DEFECT: the serving path shortens or refuses answers, "));
}

TEST(Terminal, ReasonsOfALevelStandOnceAndItsCountsOnlyInTheTable) {
    Document document = sample::defect();
    judge::LevelJudgement& level = document.judgement.arms[0].levels[2];
    document.judgement.verdict.load.why = level.why = "14 of 16 answers were lost at 8 users";
    std::string text = to_terminal(document, {});
    EXPECT_EQ(text.find(level.why), text.rfind(level.why)) << text;
    EXPECT_NE(text.find("Does load do it? yes, proven: " + level.why), std::string::npos) << text;
    EXPECT_NE(text.find("deployed, 8 users: kv_pool_exhausted (memory, proven); KV peak"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("of 16 natural_end"), std::string::npos) << text;
    // Several causes: their shares are in no column.
    level.causes[0].count = 9;
    level.causes.push_back({answer::Cause::kConnectionBroken, answer::Layer::kGateway, 5,
                            answer::Confidence::kProven});
    text = to_terminal(document, {});
    EXPECT_NE(text.find("8 users: 9 kv_pool_exhausted (memory, proven), 5"), std::string::npos)
        << text;
}

TEST(ExitCode, IsThatOfTheContract) {
    using judge::Verdict;
    EXPECT_EQ(exit_code(Verdict::kUnaffected), 0);
    EXPECT_EQ(exit_code(Verdict::kLatencyOnly), 0);
    EXPECT_EQ(exit_code(Verdict::kSamplingVariance), 0);
    EXPECT_EQ(exit_code(Verdict::kServingDefect), 1);
    EXPECT_EQ(exit_code(Verdict::kPolicy), 1);
    EXPECT_EQ(exit_code(Verdict::kInconclusive), 3);
}

}  // namespace
}  // namespace fullstop::report
