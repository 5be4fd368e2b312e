// Sections in the order in which a reader needs them; a section with nothing to say is left out.
#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/printable.h"
#include "report/levels_table.h"
#include "report/text.h"
#include "report/words.h"

namespace fullstop::report {
namespace {

constexpr std::size_t kWidth = 80;
/// Columns of the first half, when a table of unusually long numbers does not fit and is shown in
/// two.
constexpr std::size_t kFirstHalf = 7;

class Page {
public:
    explicit Page(bool colour) : colour_(colour) {}

    void line(std::string_view text) { out_ += std::string(text) + '\n'; }
    void gap() { out_ += '\n'; }
    void paragraph(std::string_view text, std::string_view indent = "") {
        out_ += wrap(text, kWidth, indent, indent);
    }
    void item(std::string_view text, std::string_view mark = "  - ") {
        out_ += wrap(text, kWidth, mark, std::string(columns(mark), ' '));
    }
    void heading(std::string_view text) {
        gap();
        line(styled(text, "1"));
    }
    std::string styled(std::string_view text, std::string_view code) const {
        return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
    }
    std::string take() { return std::move(out_); }

private:
    std::string out_;
    bool colour_;
};

std::string_view colour_of(judge::Verdict verdict) {
    switch (exit_code(verdict)) {
        case 0: return "1;32";
        case 1: return "1;31";
        default: return "1;33";
    }
}

/// Counts of one level stand in its table and under "How sure".
bool is_of_a_level(const judge::Evidence& evidence) { return evidence.where.starts_with("level "); }

/// What stands right under the cause.
const judge::Evidence* decisive(const judge::Judgement& verdict) {
    const bool any = verdict.cause && !verdict.evidence.empty();
    return any && !is_of_a_level(verdict.evidence.front()) ? &verdict.evidence.front() : nullptr;
}

void print_head(const Document& document, Page& page) {
    const judge::Judgement& verdict = document.judgement.verdict;
    page.line(page.styled(
        fmt::format("{}: {}{}", title(verdict.value), meaning(document),
                    verdict.from_concurrency
                        ? fmt::format(", from {} on", counted(*verdict.from_concurrency, "user"))
                        : ""),
        colour_of(verdict.value)));
    page.gap();
    page.paragraph(verdict.headline);
    if (verdict.cause)
        page.item(fmt::format("{}, {}",
                              cause_line(*verdict.cause, verdict.layer.value_or(
                                                             answer::entry(*verdict.cause).layer)),
                              to_string(verdict.confidence)),
                  "Cause: ");
    if (const auto* quote = decisive(verdict)) page.item(quote->text, "  ");
    if (exit_code(verdict.value) == 1 && !verdict.load.why.empty())
        page.item(load_line(verdict.load), "Does load do it? ");
    if (document.interrupted)
        page.paragraph("The run was interrupted; this is what had been measured until then.");
    if (verdict.remedies.empty()) return;
    page.heading("What to change");
    for (const judge::Remedy& remedy : verdict.remedies) {
        page.item(remedy.text);
        if (!remedy.setting.empty()) page.item(remedy.setting, "      ");
    }
}

void print_columns(const std::vector<LevelCells>& rows, const std::vector<std::size_t>& shown,
                   Page& page) {
    std::string over, names;
    std::vector<std::string> lines(rows.size());
    for (const std::size_t column : shown) {
        std::size_t width =
            std::max(columns(kLevelColumns[column].over), columns(kLevelColumns[column].name));
        for (const LevelCells& row : rows) width = std::max(width, columns(row[column]));
        const std::string space = names.empty() ? "" : " ";
        over += space + pad_left(kLevelColumns[column].over, width);
        names += space + pad_left(kLevelColumns[column].name, width);
        for (std::size_t i = 0; i < rows.size(); ++i)
            lines[i] += space + pad_left(rows[i][column], width);
    }
    if (over.find_first_not_of(' ') != std::string::npos) page.line(over);
    page.line(names);
    for (const std::string& line : lines) page.line(line);
}

bool fits(const std::vector<LevelCells>& rows) {
    std::size_t sum = kLevelColumns.size() - 1;
    for (std::size_t column = 0; column < kLevelColumns.size(); ++column) {
        std::size_t width =
            std::max(columns(kLevelColumns[column].over), columns(kLevelColumns[column].name));
        for (const LevelCells& row : rows) width = std::max(width, columns(row[column]));
        sum += width;
    }
    return sum <= kWidth;
}

void print_table(const std::vector<judge::LevelJudgement>& levels, Page& page) {
    std::vector<LevelCells> rows;
    for (const judge::LevelJudgement& level : levels) rows.push_back(level_cells(level));
    std::vector<std::size_t> first, second = {0};
    for (std::size_t column = 0; column < kLevelColumns.size(); ++column)
        (column < kFirstHalf ? first : second).push_back(column);
    if (fits(rows)) {
        first.insert(first.end(), second.begin() + 1, second.end());
        print_columns(rows, first, page);
        return;
    }
    print_columns(rows, first, page);
    print_columns(rows, second, page);
}

void print_arm(const Document& document, const judge::ArmJudgement& arm, bool explain, Page& page) {
    page.heading(base::printable(fmt::format(
        "{} arm: {}", arm.name == "control" ? "Control" : "Deployed", title(arm.verdict.value))));
    page.paragraph(arm.url, "  ");
    if (const std::string how = arm_description(document, arm.name); !how.empty())
        page.paragraph(how, "  ");
    if (arm.levels.empty()) return page.line("  no level was measured");
    page.gap();
    print_table(arm.levels, page);
    if (explain) {
        page.gap();
        page.line("  ended: by the model itself   limit: at the token limit that was asked for");
        page.line("  cut: ended by somebody else before that   r/f: refused/failed");
        page.line("  complete: ended or limit, of all that did not fail");
        page.line("  vs alone: length, same prompt, one user   TTFT: wait for the first token");
        page.line("  ITL: pause between tokens");
    }
}

std::string users(const judge::LevelJudgement& level) { return counted(level.concurrency, "user"); }

/// Causes and memory of one level side by side: that is where they explain each other.
std::string level_facts(const judge::LevelJudgement& level) {
    const std::string causes = losses_line(level), memory = memory_line(level);
    return causes + (causes.empty() || memory.empty() ? "" : "; ") + memory;
}

void print_evidence(const Document& document, Page& page) {
    page.heading("Evidence");
    for (const judge::Evidence& evidence : document.judgement.verdict.evidence)
        if (!is_of_a_level(evidence) && &evidence != decisive(document.judgement.verdict))
            page.item(evidence.text);
    for (const judge::ArmJudgement& arm : document.judgement.arms) {
        for (const judge::LevelJudgement& level : arm.levels)
            if (const std::string facts = level_facts(level); !facts.empty())
                page.item(fmt::format("{}, {}: {}", arm.name, users(level), facts));
        const auto blind = std::ranges::find_if(arm.levels, [](const judge::LevelJudgement& level) {
            return memory_line(level).empty();
        });
        if (blind != arm.levels.end())
            page.item(
                fmt::format("{}, not to be seen: preemptions ({}), KV bytes ({}), free memory ({})",
                            arm.name, blind->preemptions.how, blind->kv_bytes_peak.how,
                            blind->memory_free_bytes_min.how));
    }
}

void print_certainty(const Document& document, Page& page) {
    const judge::Judgement& verdict = document.judgement.verdict;
    page.heading("How sure, and why");
    if (verdict.cause) page.item(meaning(verdict.confidence));
    if (exit_code(verdict.value) == 0) page.item(firmness(verdict));
    const bool load_is_shown = exit_code(verdict.value) == 1;  // at the top, with its reason
    for (const judge::ArmJudgement& arm : document.judgement.arms)
        for (const judge::LevelJudgement& level : arm.levels)
            if (!level.why.empty() && !(load_is_shown && level.why == verdict.load.why))
                page.item(fmt::format("{}, {}: {}: {}", arm.name, users(level),
                                      to_string(level.verdict), level.why));
}

void print_list(std::string_view heading, const std::vector<std::string>& items, Page& page) {
    if (items.empty()) return;
    page.heading(heading);
    for (const std::string& item : items) page.item(item);
}

void print_foot(const Document& document, const TerminalOptions& options, Page& page) {
    page.heading("The run");
    const std::string who = document.fullstop_build.empty()
                                ? document.fullstop_version
                                : document.fullstop_version + " " + document.fullstop_build;
    page.item(fmt::format("{}, {}, {}, by fullstop {}", document.id, rfc3339(document.started),
                          short_time(document.elapsed), who));
    page.item(fmt::format("{}, model {}, {}", server_line(document),
                          document.model.empty() ? "not named" : document.model,
                          counted(static_cast<std::int64_t>(document.rows.size()), "answer")));
    if (document.experiment.reduced) page.item(*document.experiment.reduced);
    const std::string where = options.store_is_named ? " --store " + options.stored : "";
    page.item(options.stored.empty() ? "not stored"
                                     : fmt::format("stored in {}; again with: fullstop report {}{}",
                                                   options.stored, document.id, where));
}

}  // namespace

std::string to_terminal(const Document& document, const TerminalOptions& options) {
    Page page(options.colour);
    print_head(document, page);
    const bool undecided = document.judgement.verdict.value == judge::Verdict::kInconclusive;
    if (undecided)
        print_list("What is missing", document.judgement.verdict.missing,
                   page);  // here it is the remedy
    bool first = true;
    for (const judge::ArmJudgement& arm : document.judgement.arms)
        print_arm(document, arm, std::exchange(first, false), page);
    print_evidence(document, page);
    print_certainty(document, page);
    if (!undecided) print_list("What is missing", document.judgement.verdict.missing, page);
    if (!document.judgement.verdict.next.empty())
        print_list("Next experiment", {document.judgement.verdict.next}, page);
    print_list("Notes", document.notes, page);
    print_foot(document, options, page);
    return page.take();
}

}  // namespace fullstop::report
