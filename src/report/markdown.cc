// CommonMark with tables. The same facts as the terminal report, in the order an author of a server
// asks for them.
#include "report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/printable.h"
#include "report/levels_table.h"
#include "report/text.h"
#include "report/words.h"

namespace fullstop::report {
namespace {

/// Plain text that stays plain: the characters of CommonMark, of HTML and of mentions are escaped.
std::string plain(std::string_view text) {
    std::string out;
    for (const char c : base::printable(text)) {
        if (std::string_view("\\`*_{}[]<>#|~!").find(c) != std::string_view::npos) out += '\\';
        out += c;
        if (c == '@') out += "\u200B";  // no mention of whoever has that name
    }
    return out;
}

/// A code span that holds any text: its fence is longer than any run of backticks inside.
std::string code(std::string_view text) {
    std::string safe = base::printable(text);
    std::replace(safe.begin(), safe.end(), '|',
                 '/');  // a table would end its cell there, even in code
    std::size_t longest = 0, run = 0;
    for (const char c : safe) run = c == '`' ? run + 1 : 0, longest = std::max(longest, run);
    const std::string fence(longest + 1, '`');
    const std::string space = safe.empty() || safe.front() == '`' || safe.back() == '`' ? " " : "";
    return fence + space + safe + space + fence;
}

void add_list(std::string_view heading, const std::vector<std::string>& items, std::string& out) {
    if (items.empty()) return;
    out += fmt::format("\n### {}\n\n", heading);
    for (const std::string& item : items) out += fmt::format("- {}\n", plain(item));
}

void add_verdict(const Document& document, std::string& out) {
    const judge::Judgement& verdict = document.judgement.verdict;
    out += fmt::format("## {}: {}\n\n{}\n\n", title(verdict.value), meaning(document),
                       plain(verdict.headline));
    out += fmt::format("- verdict: {}{}\n", code(to_string(verdict.value)),
                       verdict.from_concurrency
                           ? fmt::format(", from {} on", counted(*verdict.from_concurrency, "user"))
                           : "");
    if (verdict.cause)
        out +=
            fmt::format("- cause: {} ({}), {}\n", code(to_string(*verdict.cause)),
                        plain(answer::entry(*verdict.cause).meaning), meaning(verdict.confidence));
    if (exit_code(verdict.value) == 1 && !verdict.load.why.empty())
        out += fmt::format("- does load do it? {}\n", plain(load_line(verdict.load)));
    if (exit_code(verdict.value) == 0) out += fmt::format("- {}\n", firmness(verdict));
    out +=
        fmt::format("- server: {}, model {}\n", plain(server_line(document)), code(document.model));
    out += fmt::format("- run: {}, {}, {}{}\n", code(document.id), rfc3339(document.started),
                       short_time(document.elapsed), document.interrupted ? ", interrupted" : "");
    if (verdict.remedies.empty()) return;
    out += "\n### What to change\n\n";
    for (const judge::Remedy& remedy : verdict.remedies)
        out += fmt::format("- {}{}\n", plain(remedy.text),
                           remedy.setting.empty() ? "" : ": " + code(remedy.setting));
}

void add_arm(const Document& document, const judge::ArmJudgement& arm, std::string& out) {
    out += fmt::format("\n### Levels, {} arm: {}\n\n", plain(arm.name),
                       code(to_string(arm.verdict.value)));
    out += fmt::format("{}{}\n\n", code(arm.url), [&] {
        const std::string how = arm_description(document, arm.name);
        return how.empty() ? std::string() : ": " + plain(how);
    }());
    std::string head, rule;
    for (const LevelColumn& column : kLevelColumns)
        head += fmt::format("| {} ", column.full), rule += "|---:";
    out += head + "|\n" + rule + "|\n";
    for (const judge::LevelJudgement& level : arm.levels) {
        for (const std::string& cell : level_cells(level)) out += fmt::format("| {} ", cell);
        out += "|\n";
    }
}

void add_evidence(const Document& document, std::string& out) {
    out += "\n### Evidence\n\n";
    for (const judge::Evidence& evidence : document.judgement.verdict.evidence) {
        out += "- " + plain(evidence.text);
        if (!evidence.where.empty()) out += fmt::format(" ({})", code(evidence.where));
        out += '\n';
    }
    for (const judge::ArmJudgement& arm : document.judgement.arms)
        for (const judge::LevelJudgement& level : arm.levels) {
            const std::string causes = causes_line(level), memory = memory_line(level);
            if (!causes.empty())
                out += fmt::format("- {}, {}: {}\n", plain(arm.name),
                                   counted(level.concurrency, "user"), plain(causes));
            if (!memory.empty())
                out += fmt::format("- {}, {}: {}\n", plain(arm.name),
                                   counted(level.concurrency, "user"), plain(memory));
            if (!level.why.empty())
                out += fmt::format("- {}, {}: {}: {}\n", plain(arm.name),
                                   counted(level.concurrency, "user"),
                                   code(to_string(level.verdict)), plain(level.why));
        }
}

void add_repeat(const Document& document, std::string& out) {
    out += fmt::format("\n### How to repeat\n\n    {}\n\n", repeat_command(document));
    std::vector<std::string> prompts;
    for (const std::string& id : prompt_ids(document)) prompts.push_back(code(id));
    out += fmt::format("{} of fullstop {}{}", counted(document.prompts, "prompt"),
                       plain(document.fullstop_version), prompts.empty() ? "" : ": ");
    out +=
        fmt::format("{}. Each (prompt, seed) was sent at every level.\n", fmt::join(prompts, ", "));
}

}  // namespace

std::string to_markdown(const Document& document) {
    std::string out;
    add_verdict(document, out);
    for (const judge::ArmJudgement& arm : document.judgement.arms) add_arm(document, arm, out);
    add_evidence(document, out);
    add_list("What is missing", document.judgement.verdict.missing, out);
    if (!document.judgement.verdict.next.empty())
        add_list("Next experiment", {document.judgement.verdict.next}, out);
    add_list("Notes", document.notes, out);
    add_repeat(document, out);
    return out;
}

}  // namespace fullstop::report
