// The run document as a value: a judged run reduced to what every rendering shows, each fact
// computed once. Built from a Run and its Judgement, or read back from a `fullstop.run/1` file
// (run_json.h); renderings cannot tell which. It leaves out texts, gaps and captures (they are in
// the store) and everything secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answer/run.h"
#include "judge/verdict.h"

namespace fullstop::report {

/// One answer. `record` is the recorded one without its texts, messages, gaps and capture.
struct Row {
    answer::Record record;
    judge::Finding finding;
    answer::Fact<std::string> finish_reason;  ///< the raw word
    answer::Fact<double> ttft_ms;             ///< sent to first token of any kind
    answer::Fact<double> ttft_answer_ms;      ///< sent to first token of the answer
    std::optional<judge::Quantiles>
        itl_ms;  ///< of the gaps between text events; absent below two events
    std::optional<double> started_ms, ended_ms, elapsed_ms;
    std::int64_t text_bytes = 0;
    std::string text_sha256;
};

struct Document {
    std::string id;
    base::WallTime started;
    base::Duration elapsed{};
    std::string fullstop_version, fullstop_build;
    std::string url, model;
    answer::Api api = answer::Api::kOpenAiChat;
    answer::ServerFacts server;     ///< of the deployed arm, before the load; without `raw`
    answer::Experiment experiment;  ///< without its prompts, of which `prompts` is the number
    std::int64_t prompts = 0;
    std::vector<answer::Arm> arms;
    judge::RunJudgement judgement;  ///< without findings: they are in the rows
    std::vector<Row> rows;
    std::vector<answer::Sample> timeline;
    bool interrupted = false;
    std::vector<std::string> notes;
};

Document make_document(const answer::Run& run, judge::RunJudgement judgement);

/// What sets the arm apart, for people; "" when nothing was said.
std::string arm_description(const Document& document, const std::string& arm);

/// The exit code of the contract (section 1): 1 when answers were shortened, 3 when it could not be
/// decided, else 0.
int exit_code(judge::Verdict verdict);

}  // namespace fullstop::report
