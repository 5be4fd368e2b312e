// Phrases by enumeration, and lines composed of facts.
#include "report/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "judge/levels/arm.h"
#include "report/text.h"

namespace fullstop::report {
namespace {

/// For a POSIX shell; plain words stay as they are.
std::string shell_word(const std::string& text) {
    std::string safe = base::printable(text);
    if (!safe.empty() &&
        safe.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@,+=%") ==
            std::string::npos)
        return safe;
    std::string quoted = "'";
    for (const char c : safe) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string seconds_option(const char* option, base::Duration time) {
    return fmt::format(" {} {}s", option, base::to_seconds(time));
}

}  // namespace

std::string_view title(judge::Verdict verdict) {
    switch (verdict) {
        case judge::Verdict::kUnaffected: return "UNAFFECTED";
        case judge::Verdict::kLatencyOnly: return "LATENCY ONLY";
        case judge::Verdict::kSamplingVariance: return "SAMPLING VARIANCE";
        case judge::Verdict::kInconclusive: return "INCONCLUSIVE";
        case judge::Verdict::kPolicy: return "POLICY";
        case judge::Verdict::kServingDefect: return "SERVING DEFECT";
    }
    return "";
}

std::string_view meaning(judge::Verdict verdict) {
    switch (verdict) {
        case judge::Verdict::kUnaffected: return "answers became neither shorter nor slower";
        case judge::Verdict::kLatencyOnly: return "answers became slower, not shorter";
        case judge::Verdict::kSamplingVariance:
            return "lengths differ, but load does not cut answers";
        case judge::Verdict::kInconclusive: return "a measurement is missing";
        case judge::Verdict::kPolicy: return "a limit that somebody set shortens answers";
        case judge::Verdict::kServingDefect: return "the serving path shortens answers";
    }
    return "";
}

namespace {

bool speed_is_known(const std::vector<judge::LevelJudgement>& levels) {
    if (levels.empty() || levels.back().concurrency == 1) return true;
    const auto& lengths = levels.back().paired_length;
    return lengths && lengths->pairs >= judge::kLeastPairs;
}

}  // namespace

std::string meaning(judge::Verdict verdict, const std::vector<judge::LevelJudgement>& levels) {
    std::int64_t cut = 0, refused = 0;
    for (const judge::LevelJudgement& level : levels)
        if (level.verdict == verdict) cut += level.cut, refused += level.refused;
    if (verdict == judge::Verdict::kUnaffected && !speed_is_known(levels))
        return "no answer became shorter";
    if (exit_code(verdict) != 1 || refused == 0) return std::string(meaning(verdict));
    return fmt::format(
        "{} {} answers",
        verdict == judge::Verdict::kPolicy ? "a limit that somebody set" : "the serving path",
        cut > 0 ? "shortens or refuses" : "refuses");
}

std::string meaning(const Document& document) {
    const auto& arms = document.judgement.arms;
    return meaning(document.judgement.verdict.value,
                   arms.empty() ? std::vector<judge::LevelJudgement>{} : arms.front().levels);
}

std::string_view meaning(answer::Confidence confidence) {
    switch (confidence) {
        case answer::Confidence::kUnresolved: return "unresolved: the next experiment must decide";
        case answer::Confidence::kWeak:
            return "weak: the numbers fit, but nothing says it outright";
        case answer::Confidence::kStrong: return "strong: two independent signs agree";
        case answer::Confidence::kProven:
            return "proven: the bytes or the server's own words say it";
    }
    return "";
}

std::string firmness(const judge::Judgement& judgement) {
    const auto& bound = judgement.load.bound;
    if (!bound)  // documents of before 0.2 hold none
        return judgement.firm ? "firm: cuts in one answer of ten would have been seen"
                              : "not firm: cuts in one answer of ten could have gone unseen";
    return fmt::format(
        "at most {:.0f} % of the answers are cut one by one at the highest level (95 "
        "%){}",
        std::ceil(*bound * 100), judgement.firm ? "" : "; more repeats would lower that bound");
}

std::string load_line(const judge::Load& load) {
    switch (load.value) {
        case judge::LoadBrings::kProven: return "yes, proven: " + load.why;
        case judge::LoadBrings::kLikely: return "likely: " + load.why;
        case judge::LoadBrings::kOpen: break;
    }
    return "open: " + load.why;
}

std::string cause_line(answer::Cause cause, answer::Layer layer) {
    return fmt::format("{} ({}): {}", to_string(cause), to_string(layer),
                       answer::entry(cause).meaning);
}

std::string causes_line(const judge::LevelJudgement& level) {
    std::vector<std::string> parts;
    for (const judge::CauseCount& count : level.causes)
        parts.push_back(fmt::format("{} of {} {} ({}, {})", count.count, level.answers,
                                    to_string(count.cause), to_string(count.layer),
                                    to_string(count.confidence)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string losses_line(const judge::LevelJudgement& level) {
    std::vector<judge::CauseCount> losses;
    for (const judge::CauseCount& count : level.causes)
        if (count.cause != answer::Cause::kNaturalEnd && count.cause != answer::Cause::kTokenLimit)
            losses.push_back(count);
    std::vector<std::string> parts;
    for (const judge::CauseCount& loss : losses)
        parts.push_back(
            fmt::format("{}{} ({}, {})", losses.size() > 1 ? fmt::format("{} ", loss.count) : "",
                        to_string(loss.cause), to_string(loss.layer), to_string(loss.confidence)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string memory_line(const judge::LevelJudgement& level) {
    std::vector<std::string> parts;
    if (level.preemptions) parts.push_back(fmt::format("preemptions {}", *level.preemptions));
    if (level.kv_bytes_peak)
        parts.push_back("KV peak " +
                        short_bytes(static_cast<double>((*level.kv_bytes_peak).count)));
    if (level.memory_free_bytes_min)
        parts.push_back("least free memory " +
                        short_bytes(static_cast<double>((*level.memory_free_bytes_min).count)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string server_line(const Document& document) {
    const answer::ServerFacts& server = document.server;
    if (server.name.empty() || server.name == "unknown") return "unrecognised server";
    return base::printable(server.version.empty() ? server.name
                                                  : server.name + " " + server.version);
}

std::string repeat_command(const Document& document) {
    const answer::Experiment& plan = document.experiment;
    std::string command = "fullstop probe " + shell_word(document.url);
    bool control = false;
    for (const answer::Arm& arm : document.arms) {
        if (arm.name != "control") continue;
        control = true;
        if (arm.url != document.url) command += " --control " + shell_word(arm.url);
    }
    if (!control) command += " --no-control";
    if (!document.model.empty()) command += " --model " + shell_word(document.model);
    command += fmt::format(" --api {} --levels {} --repeat {}", to_string(document.api),
                           fmt::join(plan.levels, ","), plan.repeat);
    command += plan.max_tokens ? fmt::format(" --max-tokens {}", plan.max_tokens->count)
                               : std::string(" --max-tokens omit");
    if (plan.temperature) command += fmt::format(" --temperature {}", *plan.temperature);
    if (plan.top_p) command += fmt::format(" --top-p {}", *plan.top_p);
    command += fmt::format(" --seed {}", plan.seed);
    if (plan.client_deadline) command += seconds_option("--client-deadline", *plan.client_deadline);
    if (plan.client_idle) command += seconds_option("--client-idle", *plan.client_idle);
    if (plan.stagger > base::Duration{})
        command += fmt::format(" --start staggered:{}", base::to_seconds(plan.stagger));
    return command;
}

std::vector<std::string> prompt_ids(const Document& document) {
    std::vector<std::string> ids;
    for (const Row& row : document.rows)
        if (std::ranges::find(ids, row.record.request.prompt_id) == ids.end())
            ids.push_back(row.record.request.prompt_id);
    return ids;
}

}  // namespace fullstop::report
