// What judge concludes of a run: one cause per answer, one verdict per arm and level, one for the
// run. Pure values; report renders them, and a stored run judged again gives the same ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/cause.h"
#include "answer/fact.h"
#include "answer/run.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {

enum class Verdict {
    kUnaffected,
    kLatencyOnly,
    kSamplingVariance,
    kInconclusive,
    kPolicy,
    kServingDefect
};  // mildest first

std::string_view to_string(Verdict);
std::optional<Verdict> parse_verdict(std::string_view);

struct Evidence {
    std::string text;
    std::vector<std::string> records;  ///< ids, possibly empty
    std::optional<double> value;
    std::string where;  ///< byte offset, event number, header or metric, when there is one
};

/// A cause considered and set aside.
struct Alternative {
    answer::Cause cause;
    std::string why_not;
};

/// What to change, with the number.
struct Remedy {
    std::string text;
    std::string setting;  ///< as the server's user writes it: "-c 4096"
    std::optional<double> number;
};

/// The cause of one answer.
struct Finding {
    answer::Cause cause = answer::Cause::kUnexplained;
    answer::Layer layer =
        answer::Layer::kUnknown;  ///< of the cause, unless evidence places it elsewhere
    answer::Confidence confidence = answer::Confidence::kUnresolved;
    std::optional<bool> shortened;  ///< absent: cannot be said
    std::vector<Evidence> evidence;
    std::vector<Alternative> alternatives;
    std::string next;  ///< what to measure or change
    answer::Fact<double> coverage = answer::Fact<double>::unavailable("the prompt has no check");
    std::optional<bool> prefix_of_baseline;
    bool open_ending = false;  ///< sentence, list, fence or JSON left open
};

/// A rate or mean with its exact or bootstrap interval (95 %).
struct Interval {
    double value = 0, low = 0, high = 0;
};

struct Quantiles {
    double p50 = 0, p95 = 0, p99 = 0, max = 0;
    std::int64_t count = 0;
};

/// Lengths at this level over lengths of the same (prompt, seed) alone.
struct PairedLength {
    double median_ratio = 1, low = 1, high = 1;
    double p =
        1;  ///< sign-flip permutation test on log ratios, two-sided, corrected over levels (Holm)
    std::int64_t pairs = 0;
};

struct CauseCount {
    answer::Cause cause;
    answer::Layer layer;
    std::int64_t count = 0;
    answer::Confidence confidence;
};

/// A test of one level: what it counted, and how much it says.
struct LevelTest {
    std::string name;
    stats::Count seen, alone;  ///< alone: none where each answer is compared with its own baseline
    std::optional<double> p;   ///< corrected over the levels
    std::optional<double> e;   ///< e-value, at its highest
    bool firm = false;         ///< it decides
};

/// One arm at one concurrency.
struct LevelJudgement {
    int concurrency = 1;
    Verdict verdict = Verdict::kInconclusive;
    std::string why;  ///< one sentence
    std::int64_t answers = 0, natural = 0, limited = 0, cut = 0, refused = 0, failed = 0;
    std::optional<Interval> completion_rate;  ///< (natural + limited) / answers, Clopper-Pearson
    std::optional<Interval> coverage;
    std::optional<double> output_tokens_p50, output_tokens_mean;
    std::optional<PairedLength> paired_length;
    std::optional<Quantiles> ttft_ms, itl_ms, queue_ms, elapsed_ms;
    answer::Fact<std::int64_t> preemptions = answer::Fact<std::int64_t>::unavailable("no counter");
    answer::Fact<base::Bytes> kv_bytes_peak =
        answer::Fact<base::Bytes>::unavailable("bytes per token unknown");
    answer::Fact<base::Bytes> memory_free_bytes_min =
        answer::Fact<base::Bytes>::unavailable("not sampled");
    std::vector<CauseCount> causes;  ///< most frequent first
    std::vector<LevelTest> tests;    ///< above one user
    std::optional<double> bound;     ///< 95 % upper bound of the share of events, always valid
    double p_cut = 1;  ///< Fisher's exact test against the baseline, one-sided, Holm-corrected
};

/// How sure it is that load brings what was seen. Proven: the cause's own mechanism needs others at
/// work and its words stood on the wire (a shared pool, a full queue), or the test is firm.
enum class LoadBrings { kOpen, kLikely, kProven };
std::string_view to_string(LoadBrings);
std::optional<LoadBrings> parse_load(std::string_view);

struct Load {
    LoadBrings value = LoadBrings::kOpen;
    std::string why;
    /// 95 % upper bound of the share of answers that load can still be cutting; absent: load cuts.
    std::optional<double> bound;
};

/// A verdict with its reasons: of one arm, or of the run.
struct Judgement {
    Verdict value = Verdict::kInconclusive;
    std::string headline;  ///< one sentence for people
    std::optional<answer::Cause> cause;
    std::optional<answer::Layer> layer;
    answer::Confidence confidence = answer::Confidence::kUnresolved;  ///< of the cause
    Load load;
    std::optional<int> from_concurrency;
    std::vector<Evidence> evidence;
    std::vector<Remedy> remedies;
    std::vector<std::string> missing;  ///< measurements that would decide
    std::string next;                  ///< the next experiment, when there is one
    bool firm = false;                 ///< the tests had the power to see a 10 % cut rate
};

struct ArmJudgement {
    std::string name;
    std::string url;
    Judgement verdict;
    std::vector<LevelJudgement> levels;
};

struct RunJudgement {
    Judgement verdict;
    std::vector<ArmJudgement> arms;
    std::map<std::string, Finding> findings;  ///< by record id
};

/// Judges a run. Pure: the same run gives the same judgement.
RunJudgement judge(const answer::Run& run);

/// Judges answers of one moment without an experiment (captures). Baselines, when given, are the
/// same prompts alone, in the same order.
struct TogetherJudgement {
    std::vector<Finding> findings;   ///< in the order given
    std::vector<Evidence> together;  ///< population tests that hold
    std::optional<Verdict> verdict;  ///< when baselines were given
    std::optional<answer::Cause> cause;
    std::string next;
};
TogetherJudgement judge_together(const std::vector<answer::Record>& records,
                                 const std::vector<answer::Record>& baselines = {});

/// How a run may spend what is left of its budget.
struct Aims {
    bool find_first = true;  ///< the first level that shows it, between two that were planned
    double bound = 0.10;     ///< of the share of cut answers, where none is cut
};

/// The answers that would decide most, in the deployed arm; absent when nothing more is to decide.
/// Pure: the same run gives the same batch.
std::optional<answer::Batch> next_batch(const answer::Run& run, const Aims& aims = {});

}  // namespace fullstop::judge
