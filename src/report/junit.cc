// Attribute values carry the one-sentence reason; the body of a failure carries what a developer needs next.
#include "report/junit.h"

#include <fmt/format.h>

#include "report/text.h"
#include "report/words.h"

namespace fullstop::report {
namespace {

/// XML 1.0 forbids most control characters even when escaped, and two non-characters; they become U+FFFD.
std::string escaped(std::string_view text) {
    const std::string valid = valid_utf8(text);
    std::string out;
    for (std::size_t i = 0; i < valid.size(); ++i) {
        const char c = valid[i];
        const std::string_view rest = std::string_view(valid).substr(i, 3);
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\n': out += "&#10;"; break;
            case '\r': out += "&#13;"; break;
            case '\t': out += "&#9;"; break;
            default:
                if (rest == "\xEF\xBF\xBE" || rest == "\xEF\xBF\xBF")
                    out += "\xEF\xBF\xBD", i += 2;
                else if (static_cast<unsigned char>(c) < 0x20)
                    out += "\xEF\xBF\xBD";
                else
                    out += c;
        }
    }
    return out;
}

std::string details(const judge::ArmJudgement& arm, const judge::LevelJudgement& level) {
    std::string text = fmt::format("{} answers: {} ended by the model, {} at the limit asked for, {} cut, {} refused, {} failed\n", level.answers,
                                   level.natural, level.limited, level.cut, level.refused, level.failed);
    if (const std::string causes = causes_line(level); !causes.empty()) text += causes + '\n';
    for (const judge::Remedy& remedy : arm.verdict.remedies) text += fmt::format("change: {} {}\n", remedy.text, remedy.setting);
    return text;
}

std::string message(const judge::LevelJudgement& level) { return one_line(level.why.empty() ? std::string(meaning(level.verdict)) : level.why); }

std::string test_case(const judge::ArmJudgement& arm, const judge::LevelJudgement& level) {
    std::string out =
        fmt::format("    <testcase classname=\"fullstop.{}\" name=\"{} at once\"", escaped(one_line(arm.name)), counted(level.concurrency, "user"));
    const int code = exit_code(level.verdict);
    if (code == 0) return out + "/>\n";
    out += ">\n";
    if (code == 1)
        out += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n", to_string(level.verdict), escaped(message(level)),
                           escaped(details(arm, level)));
    else
        out += fmt::format("      <skipped message=\"{}: {}\"/>\n", to_string(level.verdict), escaped(message(level)));
    return out + "    </testcase>\n";
}

struct Counts {
    std::size_t tests = 0, failures = 0, skipped = 0;
    void add(const judge::ArmJudgement& arm) {
        for (const judge::LevelJudgement& level : arm.levels) ++tests, failures += exit_code(level.verdict) == 1, skipped += exit_code(level.verdict) == 3;
    }
    std::string attributes() const { return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", tests, failures, skipped); }
};

}  // namespace

std::string to_junit(const Document& document) {
    Counts all;
    std::string suites;
    for (const judge::ArmJudgement& arm : document.judgement.arms) {
        Counts counts;
        counts.add(arm), all.add(arm);
        suites += fmt::format("  <testsuite name=\"{}\" {} timestamp=\"{}\">\n", escaped(one_line(arm.name)), counts.attributes(),
                              rfc3339(document.started).substr(0, 19));
        for (const judge::LevelJudgement& level : arm.levels) suites += test_case(arm, level);
        suites += "  </testsuite>\n";
    }
    return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fullstop {}\" {} time=\"{:.3f}\">\n{}</testsuites>\n",
                       escaped(one_line(document.url)), all.attributes(), base::to_seconds(document.elapsed), suites);
}

}  // namespace fullstop::report
