// judge(): every answer gets its cause in its surroundings, every arm its verdict, and the run the
// worst of its deployed arm, with what the control arm adds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "judge/causes/claim.h"
#include "judge/levels/arm.h"
#include "judge/levels/control.h"
#include "judge/levels/next_batch.h"
#include "judge/levels/quiet_cuts.h"
#include "judge/population/readings.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/own_end.h"
#include "judge/verdict.h"

namespace fullstop::judge {
namespace {

using answer::Record;

PromptTokens prompt_tokens(const answer::Run& run) {
    PromptTokens result;
    for (const Record& record : run.records)
        if (record.prompt_tokens && !record.request.prompt_id.empty()) {
            auto& known = result[record.request.prompt_id];
            known = std::max(known, (*record.prompt_tokens).count);
        }
    return result;
}

const answer::ServerFacts* facts(const std::map<std::string, answer::ServerFacts>& all,
                                 const std::string& arm) {
    const auto found = all.find(arm);
    return found == all.end() ? nullptr : &found->second;
}

const answer::Prompt* prompt_of(const answer::Run& run, const std::string& id) {
    const auto found = std::ranges::find(run.experiment.prompts, id, &answer::Prompt::id);
    return found == run.experiment.prompts.end() ? nullptr : &*found;
}

using Pair = std::pair<std::string, std::int64_t>;

const Finding* finding_of(const ArmAnswers& arm, const Record* record) {
    for (const Level& level : arm.levels)
        for (const Judged& answer : level.answers)
            if (answer.record == record) return &answer.conclusion.finding;
    return nullptr;
}

/// What a dead server turns away has the cause of its death, where that has a name.
void name_after_death(ArmAnswers& arm, const Outages& outages) {
    for (Level& level : arm.levels)
        for (Judged& answer : level.answers) {
            const auto outage = outages.find(answer.record);
            if (outage == outages.end() || outage->second.death == answer.record) continue;
            const Finding* death = finding_of(arm, outage->second.death);
            if (death == nullptr || !outage->second.death->end.error ||
                death->cause == answer::Cause::kServerError)
                continue;
            Finding& finding = answer.conclusion.finding;
            finding.cause = death->cause;
            finding.layer = death->layer;
            finding.confidence = answer::Confidence::kStrong;
            finding.evidence.push_back({"the server had died of it and had not come back",
                                        {outage->second.death->request.id},
                                        {},
                                        "outage"});
        }
}

class Bench {
public:
    explicit Bench(const answer::Run& run) : run_(run), prompts_(prompt_tokens(run)) {
        for (const Record& record : run.records) {
            if (arms_.insert(record.request.arm).second) order_.push_back(record.request.arm);
            groups_[{record.request.arm, record.request.concurrency}].push_back(&record);
            if (closed_by_probe(record, run)) continue;
            whole_[record.request.arm].push_back(&record);
            everything_.push_back(&record);
            if (record.request.concurrency == 1)
                alone_[record.request.arm][{record.request.prompt_id, record.request.seed}]
                    .push_back(&record);
        }
    }

    const std::vector<std::string>& arms() const { return order_; }

    ArmAnswers answers(const std::string& arm) const {
        const auto found_whole = whole_.find(arm);
        const auto whole =
            found_whole == whole_.end() ? std::vector<const Record*>{} : found_whole->second;
        const Population population = examine(whole, prompts_);
        const Outages outages = outages_of(whole);
        Context context;
        context.arm_population = &population;
        context.run = &everything_;
        context.outages = &outages;
        context.server = facts(run_.server_before, arm);
        context.server_after = facts(run_.server_after, arm);
        context.prompt_tokens = &prompts_;
        context.interrupted = run_.interrupted;
        if (const auto found = groups_.find({arm, 1}); found != groups_.end())
            context.alone = telling(found->second);
        for (const auto& [key, records] : groups_)
            if (key.first == arm)
                if (const auto limit = usual_limit(telling(records)))
                    context.limits[key.second] = *limit;
        ArmAnswers result{.name = arm, .url = run_.url, .levels = {}};
        for (const answer::Arm& known : run_.arms)
            if (known.name == arm) result.url = known.url;
        for (const auto& [key, records] : groups_)
            if (key.first == arm) result.levels.push_back(level(arm, key.second, records, context));
        name_after_death(result, outages);
        find_cuts_alone(result);
        find_quiet_cuts(result);
        return result;
    }

private:
    Level level(const std::string& arm, int concurrency, const std::vector<const Record*>& records,
                Context context) const {
        const Population population = examine(telling(records), prompts_);
        context.siblings = records;
        context.population = &population;
        context.preemptions = readings_of(run_, arm, concurrency).preemptions;
        Level result{.concurrency = concurrency, .answers = {}};
        for (const Record* record : records) {
            context.baselines = baselines(arm, *record);
            context.prompt = prompt_of(run_, record->request.prompt_id);
            context.closed_by_probe = closed_by_probe(*record, run_);
            context.fell_silent = fell_silent(*record, run_);
            const auto outage = context.outages->find(record);
            result.answers.push_back(
                {record, conclude(*record, context), context.baselines, context.prompt,
                 outage == context.outages->end() ? concurrency : outage->second.concurrency});
        }
        return result;
    }

    std::vector<const Record*> telling(std::vector<const Record*> records) const {
        std::erase_if(records,
                      [&](const Record* record) { return closed_by_probe(*record, run_); });
        return records;
    }

    std::vector<const Record*> baselines(const std::string& arm, const Record& record) const {
        const auto of_arm = alone_.find(arm);
        if (of_arm == alone_.end()) return {};
        const auto found = of_arm->second.find({record.request.prompt_id, record.request.seed});
        return found == of_arm->second.end() ? std::vector<const Record*>{} : found->second;
    }

    const answer::Run& run_;
    PromptTokens prompts_;
    std::set<std::string> arms_;
    std::vector<std::string> order_;
    std::vector<const Record*> everything_;  ///< of all arms, without what the probe closed
    std::map<std::pair<std::string, int>, std::vector<const Record*>> groups_;
    std::map<std::string, std::vector<const Record*>>
        whole_;  ///< by arm, without what the probe closed
    std::map<std::string, std::map<Pair, std::vector<const Record*>>> alone_;
};

}  // namespace

RunJudgement judge(const answer::Run& run) {
    const Bench bench(run);
    RunJudgement result;
    std::vector<ArmAnswers> answers;
    for (const std::string& arm : bench.arms()) answers.push_back(bench.answers(arm));
    std::ranges::sort(answers, [](const ArmAnswers& a, const ArmAnswers& b) {
        return (a.name == "deployed") > (b.name == "deployed");
    });
    compare_with_control(answers);
    for (const ArmAnswers& arm : answers) {
        result.arms.push_back(judge_arm(arm, run));
        for (const Level& level : arm.levels)
            for (const Judged& answer : level.answers)
                result.findings[answer.record->request.id] = answer.conclusion.finding;
    }
    if (result.arms.empty()) {
        result.verdict.headline = "Not decided: no answer was measured.";
        result.verdict.missing.push_back("answers");
        return result;
    }
    result.verdict = result.arms.front().verdict;
    add_control(result, run);
    return result;
}

std::optional<answer::Batch> next_batch(const answer::Run& run, const Aims& aims) {
    const Bench bench(run);
    if (std::ranges::find(bench.arms(), "deployed") == bench.arms().end()) return std::nullopt;
    return next_batch(judge_arm(bench.answers("deployed"), run), run, aims);
}

}  // namespace fullstop::judge
