#include "judge/levels/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/hop.h"
#include "stats/tests_of_rates.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Layer;

bool nameless(const Finding& finding) {
    return finding.cause == Cause::kConnectionBroken || finding.cause == Cause::kUnexplained;
}

std::int64_t nameless_count(const Level& level) {
    return std::ranges::count_if(
        level.answers, [](const Judged& answer) { return nameless(answer.conclusion.finding); });
}

void place_at_gateway(Judged& answer, const Level& control) {
    Finding& finding = answer.conclusion.finding;
    if (!nameless(finding)) return;
    finding.evidence.push_back({fmt::format("in the control arm none of {} answers at {} users "
                                            "ends so: it is made between client and server",
                                            control.answers.size(), control.concurrency),
                                {},
                                {},
                                "control arm"});
    finding.layer = Layer::kGateway;
    if (looks_natural(*answer.record)) {
        finding.cause = Cause::kGatewayRewrite;
        finding.confidence = Confidence::kStrong;
        finding.shortened = true;
    }
}

const Level* level_of(const ArmAnswers& arm, int concurrency) {
    const auto found = std::ranges::find(arm.levels, concurrency, &Level::concurrency);
    return found == arm.levels.end() ? nullptr : &*found;
}

std::string users(const Judgement& judgement) {
    return judgement.from_concurrency ? fmt::format(" from {} on", *judgement.from_concurrency)
                                      : std::string();
}

/// Alone the server breaks off where this path says that it finished: the words are the gateway's.
void find_rewriting(Level& level, const Level& control) {
    const auto broken = std::ranges::count_if(control.answers, [](const Judged& answer) {
        return answer.conclusion.finding.cause == Cause::kConnectionBroken;
    });
    if (broken < kLeastVictims) return;
    for (Judged& answer : level.answers) {
        Finding& finding = answer.conclusion.finding;
        if (finding.cause != Cause::kUnexplained || !looks_natural(*answer.record)) continue;
        finding.evidence.push_back(
            {fmt::format("past the gateway {} of {} answers at {} users break "
                         "off; here they are called finished",
                         broken, control.answers.size(), control.concurrency),
             {},
             {},
             "control arm"});
        finding.cause = Cause::kGatewayRewrite;
        finding.layer = Layer::kGateway;
        finding.confidence = Confidence::kStrong;
        finding.shortened = true;
    }
}

bool hop_timeout(const Judged& answer) {
    const Finding& finding = answer.conclusion.finding;
    return finding.confidence != Confidence::kProven &&
           (finding.cause == Cause::kGatewayIdleTimeout ||
            finding.cause == Cause::kGatewayDeadline);
}

/// The control arm has no gateway: a silence that ended an answer there was the server's.
void name_without_gateway(Level& control) {
    for (Judged& answer : control.answers) {
        if (!hop_timeout(answer) || gateway_of(*answer.record)) continue;
        Finding& finding = answer.conclusion.finding;
        const bool silent = finding.cause == Cause::kGatewayIdleTimeout;
        finding.cause = silent ? Cause::kServerStall : Cause::kConnectionBroken;
        finding.layer = answer::entry(finding.cause).layer;
        finding.evidence.push_back(
            {"no gateway stands before this arm", {answer.record->request.id}, {}, "control arm"});
        answer.conclusion.remedies.clear();
    }
}

/// A timer seen here is nobody's but the server's where answers past the gateway end as often.
void take_back_timers(Level& level, const Level& control) {
    const auto here = std::ranges::count_if(level.answers, hop_timeout);
    std::vector<const Judged*> losses;
    for (const Judged& answer : control.answers)
        if (is_loss(answer)) losses.push_back(&answer);
    const auto there = std::ssize(losses);
    if (here == 0 || there < kLeastVictims ||
        stats::fisher_greater({here, static_cast<std::int64_t>(telling_answers(level))},
                              {there, static_cast<std::int64_t>(telling_answers(control))}) <
            kAlpha)
        return;
    const CauseCount main = causes_of(losses).front();
    for (Judged& answer : level.answers) {
        if (!hop_timeout(answer)) continue;
        Finding& finding = answer.conclusion.finding;
        finding.alternatives.push_back(
            {finding.cause, "past the gateway answers are lost as often"});
        finding.cause = main.cause;
        finding.layer = main.layer;
        finding.confidence = std::min(main.confidence, Confidence::kStrong);
        finding.evidence.push_back(
            {fmt::format("past the gateway {} of {} answers at {} users are "
                         "lost as well: the server does it",
                         there, telling_answers(control), control.concurrency),
             {},
             {},
             "control arm"});
        answer.conclusion.remedies.clear();
    }
}

bool refused_with_error(const Judged& answer) {
    return answer.conclusion.finding.cause == Cause::kServerError && !has_content(*answer.record) &&
           failing_status(*answer.record) != 0;
}

/// An error before any text that never comes past the gateway is the gateway's refusal.
void place_refusals(Level& level, const Level& control) {
    if (std::ranges::any_of(control.answers, refused_with_error)) return;
    const auto here = std::ranges::count_if(level.answers, refused_with_error);
    if (here < kLeastVictims || stats::fisher_greater({here, std::ssize(level.answers)},
                                                      {0, std::ssize(control.answers)}) >= kAlpha)
        return;
    for (Judged& answer : level.answers) {
        if (!refused_with_error(answer)) continue;
        Finding& finding = answer.conclusion.finding;
        finding.cause = Cause::kGatewayRejected;
        finding.layer = Layer::kGateway;
        finding.confidence = Confidence::kStrong;
        finding.evidence.push_back({fmt::format("in the control arm none of {} answers at {} users "
                                                "is refused so: the gateway does it",
                                                control.answers.size(), control.concurrency),
                                    {},
                                    {},
                                    "control arm"});
    }
}

/// Ends that name no maker and never come past the gateway are made on the way.
void place_breaks(Level& level, const Level& control) {
    const std::int64_t here = nameless_count(level);
    if (here < kLeastVictims || nameless_count(control) > 0 ||
        stats::fisher_greater({here, std::ssize(level.answers)},
                              {0, std::ssize(control.answers)}) >= kAlpha)
        return;
    for (Judged& answer : level.answers) place_at_gateway(answer, control);
}

}  // namespace

void compare_with_control(std::vector<ArmAnswers>& arms) {
    if (arms.size() < 2 || arms[0].name != "deployed" || arms[1].url == arms[0].url) return;
    for (Level& control : arms[1].levels) name_without_gateway(control);
    for (Level& level : arms[0].levels) {
        const Level* control = level_of(arms[1], level.concurrency);
        if (control == nullptr) continue;
        take_back_timers(level, *control);
        if (std::ssize(control->answers) < kLeastPairs) continue;
        find_rewriting(level, *control);
        place_refusals(level, *control);
        place_breaks(level, *control);
    }
}

namespace {

struct Lost {
    stats::Count here, there;
    int users = 0;     ///< the level that is compared
    int admitted = 0;  ///< requests of the control arm in flight, where fewer than users
};

stats::Count lost_at(const LevelJudgement& level) {
    return {level.cut + level.refused, level.answers - level.failed};
}

/// The highest level of the verdict's kind that both arms have.
std::optional<Lost> lost_in_both(const ArmJudgement& deployed, const ArmJudgement& control) {
    for (auto level = deployed.levels.rbegin(); level != deployed.levels.rend(); ++level) {
        const auto same =
            std::ranges::find(control.levels, level->concurrency, &LevelJudgement::concurrency);
        if (level->verdict != deployed.verdict.value || same == control.levels.end()) continue;
        return Lost{lost_at(*level), lost_at(*same), level->concurrency, 0};
    }
    return std::nullopt;
}

int admitted_at(const answer::Run& run, int users) {
    for (const answer::Experiment::Step& step : run.experiment.order)
        if (step.arm == "control" && step.concurrency == users) return step.admitted;
    return 0;
}

std::string counts(const Lost& lost) {
    return fmt::format("{} of {} answers were lost there at {} users, {} of {} here",
                       lost.there.events, lost.there.total, lost.users, lost.here.events,
                       lost.here.total);
}

/// One look at two arms that were planned alike.
constexpr double kArmsDiffer = 0.05;

bool fewer_there(const Lost& lost) {
    return stats::fisher_greater(lost.here, lost.there) < kArmsDiffer;
}

bool as_many_there(const Lost& lost) {
    return lost.there.events >= kLeastVictims && !fewer_there(lost) &&
           2 * lost.there.events * lost.here.total >= lost.here.events * lost.there.total;
}

std::string with_admission(const Lost& lost, Judgement& verdict) {
    const auto admitted = fmt::format("at most {} {} in flight", lost.admitted,
                                      lost.admitted == 1 ? "request" : "requests");
    if (fewer_there(lost)) {
        if (verdict.load.value == LoadBrings::kOpen)
            verdict.load = {LoadBrings::kLikely, "it does not happen with " + admitted, {}};
        return fmt::format(" With {} it does not happen ({}): load does it.", admitted,
                           counts(lost));
    }
    if (as_many_there(lost))
        return fmt::format(" With {} it happens all the same ({}).", admitted, counts(lost));
    return fmt::format(" The control arm, with {}, does not decide: {}.", admitted, counts(lost));
}

std::string of_one_url(const Lost& lost) {
    if (as_many_there(lost))
        return " The control arm on the same URL shows it too; gateway and server cannot be told "
               "apart without --control.";
    if (fewer_there(lost))
        return fmt::format(" The control arm on the same URL does not show it ({}).", counts(lost));
    return fmt::format(" The control arm on the same URL does not decide: {}.", counts(lost));
}

std::string past_the_gateway(const Lost& lost, const Judgement& deployed,
                             const Judgement& control) {
    if (fewer_there(lost))
        return " It disappears without the gateway: a gateway or a policy makes it, not the "
               "server.";
    if (!as_many_there(lost))
        return fmt::format(" The control arm does not decide: {}.", counts(lost));
    if (control.cause && deployed.cause && control.cause != deployed.cause &&
        control.value >= Verdict::kPolicy)
        return fmt::format(" Without the gateway answers are cut for another reason: {}.",
                           answer::to_string(*control.cause));
    return " It stays without the gateway: the server does it.";
}

}  // namespace

void add_control(RunJudgement& result, const answer::Run& run) {
    if (result.arms.size() < 2 || result.arms.front().name != "deployed") {
        if (!result.arms.empty() && result.verdict.value >= Verdict::kPolicy)
            result.verdict.missing.push_back(
                "a control arm: what a gateway does cannot be told from what the server does");
        return;
    }
    const ArmJudgement &deployed = result.arms[0], &control = result.arms[1];
    Judgement& verdict = result.verdict;
    if (verdict.value < Verdict::kPolicy) {
        if (control.verdict.value >= Verdict::kPolicy)
            verdict.headline += fmt::format(" The control arm alone is cut{}: {}",
                                            users(control.verdict), control.verdict.headline);
        return;
    }
    auto lost = lost_in_both(deployed, control);
    if (!lost) return;
    lost->admitted = admitted_at(run, lost->users);
    if (deployed.url != control.url) {
        verdict.headline += past_the_gateway(*lost, verdict, control.verdict);
        verdict.evidence.push_back(
            {"control arm: " + control.verdict.headline, {}, {}, control.url});
    } else if (lost->admitted > 0) {
        verdict.headline += with_admission(*lost, verdict);
    } else {
        verdict.headline += of_one_url(*lost);
    }
}

}  // namespace fullstop::judge
