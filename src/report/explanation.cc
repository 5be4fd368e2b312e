#include "report/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "base/utf8.h"
#include "report/text.h"
#include "report/words.h"

namespace fullstop::report {
namespace {

constexpr std::size_t kWidth = 80, kQuote = 120, kNeedle = 24;
/// Of one answer; the document has all.
constexpr std::size_t kAlternatives = 4;

/// The line around `offset`, shortened around it.
Place at(std::string_view file, std::size_t offset) {
    Place place{.offset = offset};
    place.line = static_cast<std::size_t>(std::count(
                     file.begin(), file.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) +
                 1;
    const std::size_t before = offset == 0 ? std::string_view::npos : file.rfind('\n', offset - 1);
    std::size_t from = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t to = std::min(file.find('\n', offset), file.size());
    if (offset - from > kQuote / 2) from = offset - kQuote / 2;
    const std::string_view quote = file.substr(from, std::min(to - from, kQuote));
    place.quote = base::valid_utf8(quote);
    return place;
}

/// The end of the file: what is missing would have stood behind it.
Place last_bytes(std::string_view file) {
    const std::size_t end = file.find_last_not_of(" \r\n\t");
    if (end == std::string_view::npos) return {};
    const std::size_t line = file.rfind('\n', end);
    return at(file, std::max(line == std::string_view::npos ? 0 : line + 1,
                             end > kQuote ? end - kQuote : 0));
}

std::string_view verdict_word(const judge::Finding& finding) {
    switch (answer::entry(finding.cause).effect) {
        case answer::Effect::kRefused: return "REFUSED";
        case answer::Effect::kAskedFor: return "LIMIT ASKED FOR";
        default: break;
    }
    if (!finding.shortened) return "OPEN";
    return *finding.shortened ? "CUT" : "WHOLE";
}

std::string_view colour_of(const judge::Finding& finding) {
    if (!finding.shortened) return "1;33";
    return *finding.shortened ? "1;31" : "1;32";
}

std::string end_line(const answer::Record& record) {
    const auto tokens = record.length_tokens();
    return fmt::format("{}: finish reason {}, {}, terminator {}, transport {}{}",
                       to_string(record.request.api), record.end.reason.value_or("none"),
                       record.end.error ? "an error" : "no error",
                       record.end.terminator ? "seen" : "not seen", to_string(record.end.transport),
                       tokens ? fmt::format(", {} tokens", *tokens) : "");
}

void add_answer(const Explanation& one, bool whole_screen, bool colour, std::string& out) {
    const judge::Finding& finding = one.finding;
    const std::string word =
        colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour_of(finding), verdict_word(finding))
               : std::string(verdict_word(finding));
    out += fmt::format("{}: {}: {}, {}\n", base::printable(one.file), word,
                       cause_line(finding.cause, finding.layer), to_string(finding.confidence));
    if (!one.place.quote.empty())
        out += wrap(
            fmt::format("line {}, byte {}: {}", one.place.line, one.place.offset, one.place.quote),
            kWidth, "  ", "    ");
    if (!whole_screen) return;
    out += wrap(end_line(one.record), kWidth, "  ", "    ");
    out += "\nEvidence\n";
    for (const judge::Evidence& evidence : finding.evidence)
        out += wrap(evidence.text, kWidth, "  - ", "    ");
    if (finding.open_ending) out += "  - the text stops in the middle\n";
    if (!finding.alternatives.empty()) out += "\nWhat else it could have been, and why not\n";
    for (std::size_t i = 0; i < std::min(finding.alternatives.size(), kAlternatives); ++i)
        out += wrap(fmt::format("{}: {}", to_string(finding.alternatives[i].cause),
                                finding.alternatives[i].why_not),
                    kWidth, "  - ", "    ");
    out += "\nHow sure\n" + wrap(std::string(meaning(finding.confidence)), kWidth, "  ", "  ");
    if (finding.confidence != answer::Confidence::kProven)
        out += wrap(
            "one answer alone can suggest this cause and not prove it; whether load brings "
            "it only an experiment shows: fullstop probe URL",
            kWidth, "  ", "  ");
    if (!finding.next.empty())
        out += "\nWhat to measure or change\n" + wrap(finding.next, kWidth, "  ", "  ");
}

}  // namespace

Place place_of(const answer::Record& record, std::string_view file) {
    const auto found = [&](std::string_view needle) {
        return needle.empty() ? std::string_view::npos : file.rfind(needle);
    };
    if (record.end.error) {
        const std::string_view words = base::front_characters(record.end.error->text, kNeedle);
        if (const auto offset = found(words); offset != std::string_view::npos)
            return at(file, offset);
    }
    if (record.end.reason && !record.end.error)
        for (const std::string& needle :
             {"\"finish_reason\":\"" + *record.end.reason + '"',
              "\"finish_reason\": \"" + *record.end.reason + '"',
              "\"stop_reason\":\"" + *record.end.reason + '"',
              "\"done_reason\":\"" + *record.end.reason + '"',
              "\"stop_type\":\"" + *record.end.reason + '"', '"' + *record.end.reason + '"',
              "\\\"" + *record.end.reason + "\\\""})
            if (const auto offset = found(needle); offset != std::string_view::npos)
                return at(file, offset);
    return last_bytes(file);
}

std::string to_terminal(const Explanations& explanations, bool colour) {
    std::string out;
    const auto& answers = explanations.answers;
    for (const Explanation& one : answers) add_answer(one, answers.size() == 1, colour, out);
    const auto& together = explanations.together;
    if (!together.together.empty()) out += "\nTogether\n";
    for (const judge::Evidence& evidence : together.together)
        out += wrap(evidence.text, kWidth, "  - ", "    ");
    if (answers.size() > 1) {
        std::map<std::string, int> next;
        for (const Explanation& one : answers)
            if (!one.finding.next.empty() && one.finding.shortened.value_or(true))
                ++next[one.finding.next];
        if (!next.empty()) out += "\nWhat to measure or change\n";
        for (const auto& [text, count] : next) out += wrap(text, kWidth, "  - ", "    ");
    }
    if (together.verdict)
        out += fmt::format("\nAgainst the baseline: {}{}\n", to_string(*together.verdict),
                           together.cause ? fmt::format(", {}", to_string(*together.cause)) : "");
    if (!together.next.empty()) out += wrap(together.next, kWidth, "  ", "  ");
    return out;
}

}  // namespace fullstop::report
