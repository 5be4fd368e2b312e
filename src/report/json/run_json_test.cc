// The document has what the contract promises, survives garbage, and refuses what it is not.
#include "report/json/run_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "base/random.h"
#include "report/csv.h"
#include "report/junit.h"
#include "report/test_document.h"

namespace fullstop::report {
namespace {

using testing::HasSubstr;

boost::json::value parsed(const Document& document) {
    return boost::json::parse(to_json(document));
}

TEST(RunJson, EveryRecordHasTheTwelveValuesOfTheMethod) {
    for (const Document& document : {sample::defect(), sample::undecided()})
        for (const auto& record : parsed(document).at("records").as_array())
            for (const char* name : {"requested_max_tokens",
                                     "output_tokens",
                                     "finish_reason",
                                     "end",
                                     "queue_ms",
                                     "ttft_ms",
                                     "itl_ms",
                                     "deadline",
                                     "disconnect",
                                     "preemptions",
                                     "kv_bytes",
                                     "memory_free_bytes",
                                     "server_errors",
                                     "id",
                                     "arm",
                                     "concurrency",
                                     "prompt",
                                     "seed",
                                     "repeat",
                                     "effective_max_tokens",
                                     "prompt_tokens",
                                     "reasoning_tokens",
                                     "counted_tokens",
                                     "ttft_answer_ms",
                                     "paused_ms",
                                     "started_ms",
                                     "ended_ms",
                                     "elapsed_ms",
                                     "text_bytes",
                                     "text_sha256",
                                     "coverage",
                                     "prefix_of_baseline",
                                     "cause",
                                     "layer",
                                     "confidence",
                                     "shortened"})
                EXPECT_TRUE(record.as_object().contains(name)) << name;
}

TEST(RunJson, AnUnknownValueIsNullWithItsReasonAndNeverZero) {
    const auto record = parsed(sample::undecided()).at("records").at(0);
    for (const char* name : {"requested_max_tokens", "output_tokens", "queue_ms", "ttft_ms",
                             "preemptions", "kv_bytes", "memory_free_bytes", "coverage"}) {
        EXPECT_TRUE(record.at(name).at("value").is_null()) << name;
        EXPECT_EQ(record.at(name).at("from").as_string(), "unavailable") << name;
        EXPECT_FALSE(record.at(name).at("how").as_string().empty()) << name;
    }
}

TEST(RunJson, TheVerdictStandsInThePlacesOfTheContract) {
    const auto document = parsed(sample::defect());
    EXPECT_EQ(document.at("schema").as_string(), "fullstop.run/1");
    EXPECT_EQ(document.at("started").as_string(), "2026-11-30T03:17:06.123Z");
    const auto& verdict = document.at("verdict");
    EXPECT_EQ(verdict.at("value").as_string(), "serving_defect");
    EXPECT_EQ(verdict.at("cause").as_string(), "kv_pool_exhausted");
    EXPECT_EQ(verdict.at("layer").as_string(), "memory");
    EXPECT_EQ(verdict.at("confidence").as_string(), "proven");
    EXPECT_EQ(verdict.at("from_concurrency").as_int64(), 4);
    EXPECT_EQ(verdict.at("remedies").at(0).at("number").to_number<double>(), 3328);
    const auto& level = document.at("arms").at(0).at("levels").at(2);
    EXPECT_EQ(level.at("completion_rate").at("value").to_number<double>(), 0.125);
    EXPECT_EQ(level.at("causes").at(0).at("count").as_int64(), 14);
    EXPECT_EQ(document.at("experiment").at("order").at(0), (boost::json::array{"deployed", 1}));
}

TEST(RunJson, NotANumberAndInfinityBecomeNull) {
    Document document = sample::defect();
    document.rows[0].ttft_ms =
        answer::Fact<double>::measured(std::numeric_limits<double>::quiet_NaN(), "a bug elsewhere");
    document.judgement.arms[0].levels[0].ttft_ms->p99 = std::numeric_limits<double>::infinity();
    const auto json = parsed(document);
    EXPECT_TRUE(json.at("records").at(0).at("ttft_ms").at("value").is_null());
    EXPECT_TRUE(json.at("arms").at(0).at("levels").at(0).at("ttft_ms").at("p99").is_null());
}

TEST(RunJson, OtherDocumentsAreRefusedByName) {
    const auto message = [](std::string_view text) {
        return read_run_document(text, "x.json").error().message;
    };
    EXPECT_THAT(message(""), HasSubstr("x.json is not a run document: it is no JSON"));
    EXPECT_THAT(message("{\"schema\": \"fullstop.run/1\""), HasSubstr("no JSON"));
    EXPECT_THAT(message("[1]"), HasSubstr("the document: expected an object"));
    EXPECT_THAT(message("{}"), HasSubstr("names no schema"));
    EXPECT_THAT(message(R"({"schema": "fullstop.explanation/1"})"),
                HasSubstr("its schema is fullstop.explanation/1"));
    EXPECT_THAT(read_run_document(R"({"schema": "fullstop.run/2"})", "x").error().hint,
                HasSubstr("newer"));
}

TEST(RunJson, AWrongFieldIsNamedWithItsPlace) {
    const auto message = [](std::string_view text) {
        return read_run_document(text, "x.json").error().message;
    };
    EXPECT_THAT(
        message(
            R"({"schema": "fullstop.run/1", "records": [{}, {"end": {"transport": "vanished"}}]})"),
        HasSubstr("records[1].end.transport: 'vanished' is not a word"));
    EXPECT_THAT(message(R"({"schema": "fullstop.run/1", "arms": {}})"),
                HasSubstr("arms: expected a list"));
    EXPECT_THAT(message(R"({"schema": "fullstop.run/1", "elapsed_s": 1e300})"),
                HasSubstr("elapsed_s: expected a number of seconds"));
    EXPECT_THAT(
        message(
            R"({"schema": "fullstop.run/1", "records": [{"queue_ms": {"value": 1, "from": "unavailable", "how": ""}}]})"),
        HasSubstr("records[0].queue_ms"));
}

TEST(RunJson, ADocumentWithFewFieldsIsReadForWhatItHas) {
    const auto document =
        read_run_document(
            R"({"schema": "fullstop.run/1", "id": "a", "later_addition": 1, "verdict": {"value": "policy"}})",
            "x")
            .value();
    EXPECT_EQ(document.id, "a");
    EXPECT_EQ(document.judgement.verdict.value, judge::Verdict::kPolicy);
}

TEST(RunJson, DamagedDocumentsGiveAnErrorOrADocumentButNeverMore) {
    const std::string good = to_json(sample::defect());
    base::Random random(7);
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        std::string bad = good;
        for (auto changes = 1 + random.below(3); changes > 0; --changes)
            bad[random.below(bad.size())] = static_cast<char>(random.below(256));
        if (random.chance(0.3)) bad.resize(random.below(bad.size()));
        const auto read = read_run_document(bad, "x");
        if (read) continue;
        ++refused;
        EXPECT_FALSE(read.error().message.empty());
    }
    EXPECT_GT(refused, 500);
}

TEST(Csv, HasOneLineAnAnswerAndAsManyCellsAsItsHead) {
    const std::string csv = to_csv(sample::defect());
    EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
    const auto cells = [&](std::size_t line) {
        std::size_t begin = 0;
        for (; line > 0; --line) begin = csv.find('\n', begin) + 1;
        return std::ranges::count(csv.substr(begin, csv.find('\n', begin) - begin), ',');
    };
    EXPECT_EQ(cells(0), cells(1));
    EXPECT_EQ(cells(0), cells(2));
}

TEST(JUnit, FailsShortenedLevelsAndSkipsUndecidedOnes) {
    const std::string defect = to_junit(sample::defect());
    EXPECT_THAT(defect, HasSubstr("<testsuites name=\"fullstop http://127.0.0.1:8080\" tests=\"5\" "
                                  "failures=\"3\" errors=\"0\" skipped=\"0\""));
    EXPECT_THAT(
        defect,
        HasSubstr(
            "<failure type=\"serving_defect\" message=\"14 of 16 answers were cut, none alone\">"));
    EXPECT_THAT(to_junit(sample::undecided()), HasSubstr("<skipped message=\"inconclusive: "));
    EXPECT_THAT(to_junit(sample::slower()), HasSubstr("tests=\"2\" failures=\"0\""));
}

}  // namespace
}  // namespace fullstop::report
