// Attribute values carry the one-sentence reason; the body of a failure carries what a developer
// needs next.
#include "report/junit.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "report/text.h"
#include "report/words.h"

namespace fullstop::report {
namespace {

/// Printable text has none of the characters that XML 1.0 forbids even when escaped.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : base::printable_lines(text)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\n': out += "&#10;"; break;
            default: out += c;
        }
    }
    return out;
}

std::string details(const judge::ArmJudgement& arm, const judge::LevelJudgement& level) {
    std::string text = fmt::format(
        "{} answers: {} ended by the model, {} at the limit asked for, {} cut, {} refused, {} "
        "failed\n",
        level.answers, level.natural, level.limited, level.cut, level.refused, level.failed);
    if (const std::string causes = causes_line(level); !causes.empty()) text += causes + '\n';
    for (const judge::Remedy& remedy : arm.verdict.remedies)
        text += fmt::format("change: {} {}\n", remedy.text, remedy.setting);
    return text;
}

std::string message(const judge::LevelJudgement& level) {
    return base::printable(level.why.empty() ? meaning(level.verdict, {level}) : level.why);
}

std::string test_case(const judge::ArmJudgement& arm, const judge::LevelJudgement& level) {
    std::string out =
        fmt::format("    <testcase classname=\"fullstop.{}\" name=\"{} at once\"",
                    escaped(base::printable(arm.name)), counted(level.concurrency, "user"));
    const int code = exit_code(level.verdict);
    if (code == 0) return out + "/>\n";
    out += ">\n";
    if (code == 1)
        out += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                           to_string(level.verdict), escaped(message(level)),
                           escaped(details(arm, level)));
    else
        out += fmt::format("      <skipped message=\"{}: {}\"/>\n", to_string(level.verdict),
                           escaped(message(level)));
    return out + "    </testcase>\n";
}

struct Counts {
    std::size_t tests = 0, failures = 0, skipped = 0;
    void add(const judge::ArmJudgement& arm) {
        for (const judge::LevelJudgement& level : arm.levels)
            ++tests, failures += exit_code(level.verdict) == 1,
                skipped += exit_code(level.verdict) == 3;
    }
    std::string attributes() const {
        return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", tests,
                           failures, skipped);
    }
};

}  // namespace

std::string to_junit(const Document& document) {
    Counts all;
    std::string suites;
    for (const judge::ArmJudgement& arm : document.judgement.arms) {
        Counts counts;
        counts.add(arm), all.add(arm);
        suites += fmt::format("  <testsuite name=\"{}\" {} timestamp=\"{}\">\n",
                              escaped(base::printable(arm.name)), counts.attributes(),
                              rfc3339(document.started).substr(0, 19));
        for (const judge::LevelJudgement& level : arm.levels) suites += test_case(arm, level);
        suites += "  </testsuite>\n";
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fullstop {}\" {} "
        "time=\"{:.3f}\">\n{}</testsuites>\n",
        escaped(base::printable(document.url)), all.attributes(),
        base::to_seconds(document.elapsed), suites);
}

}  // namespace fullstop::report
