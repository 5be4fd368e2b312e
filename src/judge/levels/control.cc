#include "judge/levels/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
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

}  // namespace

void compare_with_control(std::vector<ArmAnswers>& arms) {
    if (arms.size() < 2 || arms[0].name != "deployed" || arms[1].url == arms[0].url) return;
    for (Level& level : arms[0].levels) {
        const Level* control = level_of(arms[1], level.concurrency);
        if (control != nullptr && std::ssize(control->answers) >= kLeastPairs) {
            find_rewriting(level, *control);
            place_refusals(level, *control);
        }
        if (control == nullptr ||
            static_cast<std::int64_t>(control->answers.size()) < kLeastPairs ||
            nameless_count(*control) > 0)
            continue;
        const stats::Count here{nameless_count(level),
                                static_cast<std::int64_t>(level.answers.size())};
        if (here.events < kLeastVictims ||
            stats::fisher_greater(here, {0, static_cast<std::int64_t>(control->answers.size())}) >=
                kAlpha)
            continue;
        for (Judged& answer : level.answers) place_at_gateway(answer, *control);
    }
}

void add_control(RunJudgement& run) {
    if (run.arms.size() < 2 || run.arms.front().name != "deployed") {
        if (!run.arms.empty() && run.verdict.value >= Verdict::kPolicy)
            run.verdict.missing.push_back(
                "a control arm: what a gateway does cannot be told from what the server does");
        return;
    }
    const ArmJudgement &deployed = run.arms[0], &control = run.arms[1];
    const bool separate = deployed.url != control.url;
    Judgement& verdict = run.verdict;
    if (verdict.value < Verdict::kPolicy) {
        if (control.verdict.value >= Verdict::kPolicy)
            verdict.headline += fmt::format(" The control arm alone is cut{}: {}",
                                            users(control.verdict), control.verdict.headline);
        return;
    }
    if (!separate) {
        verdict.headline += control.verdict.value >= Verdict::kPolicy
                                ? " The control arm on the same URL shows it too; gateway and "
                                  "server cannot be told apart without --control."
                                : " The control arm on the same URL does not show it.";
        return;
    }
    if (control.verdict.value >= Verdict::kPolicy && control.verdict.cause == verdict.cause)
        verdict.headline += " It stays without the gateway: the server does it.";
    else if (control.verdict.value >= Verdict::kPolicy)
        verdict.headline += fmt::format(
            " Without the gateway answers are cut for another reason: {}.",
            control.verdict.cause ? answer::to_string(*control.verdict.cause) : "unexplained");
    else if (control.verdict.value == Verdict::kInconclusive)
        verdict.headline += " The control arm is not decided.";
    else
        verdict.headline +=
            " It disappears without the gateway: a gateway or a policy makes it, not the server.";
    verdict.evidence.push_back({"control arm: " + control.verdict.headline, {}, {}, control.url});
}

}  // namespace fullstop::judge
