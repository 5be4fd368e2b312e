// Answers of real servers, with the truth beside them (tests/golden/captures/index.json): every one
// must get a right cause and layer, and must not be proven where its bytes cannot prove it.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "judge/verdict.h"
#include "tests/support/source_dir.h"
#include "wire/captures/capture.h"

namespace fullstop::judge {
namespace {

std::string folder() { return tests::source_dir() / "tests/golden/captures/"; }

std::string file(const std::string& name) {
    std::ifstream in(folder() + name, std::ios::binary);
    EXPECT_TRUE(in) << name;
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<answer::Record> read(const boost::json::array& names) {
    std::vector<answer::Record> records;
    for (const auto& name : names) {
        auto read = wire::read_capture(file(std::string(name.as_string())));
        EXPECT_TRUE(read) << name;
        for (answer::Record& record : *read) {
            record.request.id = std::string(name.as_string());
            records.push_back(std::move(record));
        }
    }
    return records;
}

boost::json::array cases() { return boost::json::parse(file("index.json")).at("cases").as_array(); }

boost::json::array files_starting_with(std::string_view prefix) {
    for (const auto& one : cases())
        if (std::string_view(one.at("files").at(0).as_string()).starts_with(prefix))
            return one.at("files").as_array();
    ADD_FAILURE() << "no case for " << prefix;
    return {};
}

void expect_right(const boost::json::value& truth, const Finding& finding,
                  const std::string& name) {
    std::vector<std::string> right;
    for (const auto& cause : truth.at("cause").as_array()) right.emplace_back(cause.as_string());
    const std::string cause(answer::to_string(finding.cause)),
        layer(answer::to_string(finding.layer));
    EXPECT_NE(std::ranges::find(right, cause), right.end())
        << name << ": " << cause << ", right is " << truth.at("cause");
    // A second-best cause has a layer of its own.
    const bool right_layer = layer == truth.at("layer").as_string() ||
                             finding.layer == answer::entry(finding.cause).layer;
    EXPECT_TRUE(right_layer) << name << ": " << layer;
    if (cause == right.front() && truth.at("layer").as_string() != "unknown") {
        const bool listed = layer == truth.at("layer").as_string() || right.size() > 1;
        EXPECT_TRUE(listed) << name << ": " << layer;
    }
    if (right.front() == "unexplained")
        EXPECT_NE(finding.confidence, answer::Confidence::kProven) << name;
    EXPECT_FALSE(finding.evidence.empty()) << name;
}

TEST(Golden, EveryRealAnswerGetsItsCauseAloneAndTogether) {
    int files = 0;
    for (const auto& truth : cases()) {
        const auto& names = truth.at("files").as_array();
        const std::vector<answer::Record> records = read(names);
        ASSERT_EQ(records.size(), names.size());
        const TogetherJudgement together = judge_together(records);
        for (std::size_t i = 0; i < records.size(); ++i) {
            expect_right(truth, judge_together({records[i]}).findings.at(0),
                         records[i].request.id + " alone");
            expect_right(truth, together.findings.at(i), records[i].request.id + " together");
            ++files;
        }
    }
    EXPECT_GE(files, 60);
}

/// A running probe drops an answer's bytes once they are stored. What the record kept must be
/// enough for the same cause; only a file without moments (never the case in a probe) is timed by
/// the stamps inside its bytes.
TEST(Golden, ACauseNeedsNoBytesOnceTheRecordIsRead) {
    for (const auto& truth : cases())
        for (const answer::Record& record : read(truth.at("files").as_array())) {
            if (record.request.id.starts_with("envoy_default15s_rerun_n8")) continue;
            answer::Record dropped = record;
            dropped.capture = {};
            const Finding with = judge_together({record}).findings.at(0),
                          without = judge_together({dropped}).findings.at(0);
            EXPECT_EQ(answer::to_string(without.cause), answer::to_string(with.cause))
                << record.request.id;
            EXPECT_EQ(answer::to_string(without.confidence), answer::to_string(with.confidence))
                << record.request.id;
        }
}

TEST(Golden, AFullPoolIsProvenByTheServersOwnWords) {
    for (const auto* prefix : {"direct_stream_n8", "direct_nostream_n8", "litellm_stream_n8"})
        for (const Finding& finding : judge_together(read(files_starting_with(prefix))).findings) {
            EXPECT_EQ(finding.confidence, answer::Confidence::kProven) << prefix;
            EXPECT_EQ(finding.shortened, true) << prefix;
        }
}

TEST(Golden, EnvoysDefaultLimitIsNamedWhenEightAnswersShareIt) {
    for (const Finding& finding :
         judge_together(read(files_starting_with("envoy_default15s_rerun_n8"))).findings) {
        EXPECT_EQ(finding.cause, answer::Cause::kGatewayDeadline);
        EXPECT_EQ(finding.confidence, answer::Confidence::kStrong);
    }
}

bool says(const std::vector<Evidence>& together, std::string_view part) {
    return std::ranges::any_of(together, [&](const Evidence& evidence) {
        return evidence.text.find(part) != std::string::npos;
    });
}

TEST(Golden, PreemptionIsAPauseAndTheIdleLimitThatWouldHaveCutIsNamed) {
    const TogetherJudgement together =
        judge_together(read(files_starting_with("vllm-cpu-preempted-n8")));
    for (const Finding& finding : together.findings) {
        EXPECT_EQ(finding.cause, answer::Cause::kTokenLimit);
        EXPECT_EQ(finding.shortened, false);
    }
    EXPECT_TRUE(says(together.together, "preempted: 4 answers"));
    EXPECT_TRUE(says(together.together, "10 s: 4 of 8"));
    EXPECT_FALSE(says(together.together, "30 s"));
}

TEST(Golden, OtherArithmeticIsVarianceAndNeverADefect) {
    const TogetherJudgement together =
        judge_together(read(files_starting_with("vllm-cpu-bf16-n8")),
                       read(files_starting_with("vllm-cpu-bf16-n1")));
    ASSERT_TRUE(together.verdict);
    EXPECT_EQ(*together.verdict, Verdict::kSamplingVariance);
    EXPECT_EQ(together.cause, answer::Cause::kNumericDivergence);
    EXPECT_NE(together.next.find("fp32"), std::string::npos);
    for (const Finding& finding : together.findings) EXPECT_NE(finding.shortened, true);
}

}  // namespace
}  // namespace fullstop::judge
