// Names and values of a column stand side by side, so that head and lines cannot drift apart.
#include "report/csv.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/printable.h"
#include "report/text.h"

namespace fullstop::report {
namespace {

/// One line, for grep too. What a spreadsheet would take for a formula gets the apostrophe that
/// makes it text there.
std::string quoted(std::string_view text) {
    std::string safe = base::printable(text);
    if (const auto first = safe.find_first_not_of(' ');
        first != std::string::npos && std::string_view("=+-@").contains(safe[first]))
        safe.insert(0, 1, '\'');
    if (safe.find_first_of(",\"") == std::string::npos) return safe;
    std::string out = "\"";
    for (const char c : safe) out.append(c == '"' ? 2 : 1, c);
    return out + '"';
}

std::string cell(const std::string& value) { return quoted(value); }
std::string cell(std::string_view value) { return quoted(value); }
std::string cell(std::int64_t value) { return std::to_string(value); }
std::string cell(int value) { return std::to_string(value); }
std::string cell(double value) { return fmt::format("{:.12g}", value); }
std::string cell(bool value) { return value ? "true" : "false"; }
template <class Tag>
std::string cell(base::Quantity<Tag> value) {
    return cell(value.count);
}
template <class T>
std::string cell(const std::optional<T>& value) {
    return value ? cell(*value) : "";
}
template <class T>
std::string cell(const answer::Fact<T>& fact) {
    return cell(fact.value);
}

using Cells = std::vector<std::pair<std::string_view, std::string>>;

void add_identity(const Document& document, const answer::Request& asked, Cells& out) {
    out.insert(out.end(), {{"run", cell(document.id)},
                           {"id", cell(asked.id)},
                           {"arm", cell(asked.arm)},
                           {"phase", cell(asked.phase)},
                           {"concurrency", cell(asked.concurrency)},
                           {"prompt", cell(asked.prompt_id)},
                           {"seed", cell(asked.seed)},
                           {"repeat", cell(asked.repeat)}});
}

void add_end(const Row& row, Cells& out) {
    const answer::EndFacts& end = row.record.end;
    const answer::ServerError error = end.error.value_or(answer::ServerError{});
    const judge::Finding& finding = row.finding;
    out.insert(out.end(), {{"cause", cell(to_string(finding.cause))},
                           {"layer", cell(to_string(finding.layer))},
                           {"confidence", cell(to_string(finding.confidence))},
                           {"shortened", cell(finding.shortened)},
                           {"finish_reason", cell(row.finish_reason)},
                           {"terminator", cell(end.terminator)},
                           {"transport", cell(to_string(end.transport))},
                           {"http_status", cell(row.record.status)},
                           {"error_status", cell(error.status)},
                           {"error_code", cell(error.code)},
                           {"error_text", cell(error.text)},
                           {"server_errors",
                            cell(static_cast<std::int64_t>(row.record.server_errors.size()))}});
}

void add_numbers(const Row& row, Cells& out) {
    const answer::Record& record = row.record;
    const auto gap = [&](double judge::Quantiles::* member) {
        return row.itl_ms ? cell((*row.itl_ms).*member) : "";
    };
    out.insert(out.end(), {{"requested_max_tokens", cell(record.requested_max_tokens)},
                           {"effective_max_tokens", cell(record.effective_max_tokens)},
                           {"prompt_tokens", cell(record.prompt_tokens)},
                           {"output_tokens", cell(record.output_tokens)},
                           {"reasoning_tokens", cell(record.reasoning_tokens)},
                           {"counted_tokens", cell(record.counted_tokens)},
                           {"queue_ms", cell(record.queue_ms)},
                           {"ttft_ms", cell(row.ttft_ms)},
                           {"ttft_answer_ms", cell(row.ttft_answer_ms)},
                           {"itl_ms_p50", gap(&judge::Quantiles::p50)},
                           {"itl_ms_p99", gap(&judge::Quantiles::p99)},
                           {"itl_ms_max", gap(&judge::Quantiles::max)},
                           {"itl_count", cell(row.itl_ms ? row.itl_ms->count : 0)}});
}

void add_limits_and_memory(const answer::Record& record, Cells& out) {
    out.insert(out.end(), {{"client_deadline_ms", cell(record.client_deadline_ms)},
                           {"gateway_deadline_ms", cell(record.gateway_deadline_ms)},
                           {"server_deadline_ms", cell(record.server_deadline_ms)},
                           {"deadline_fired", cell(to_string(record.deadline_fired))},
                           {"disconnect_by", cell(to_string(record.disconnect.by))},
                           {"disconnect_kind", cell(to_string(record.disconnect.kind))},
                           {"disconnect_at_byte", cell(record.disconnect.at_byte)},
                           {"preemptions", cell(record.preemptions)},
                           {"paused_ms", cell(record.paused_ms)},
                           {"kv_bytes", cell(record.kv_bytes)},
                           {"memory_free_bytes", cell(record.memory_free_bytes)}});
}

void add_text(const Row& row, Cells& out) {
    out.insert(out.end(), {{"started_ms", cell(row.started_ms)},
                           {"ended_ms", cell(row.ended_ms)},
                           {"elapsed_ms", cell(row.elapsed_ms)},
                           {"clock", cell(to_string(row.record.timeline.clock))},
                           {"text_events", cell(row.record.text_events)},
                           {"text_bytes", cell(row.text_bytes)},
                           {"text_sha256", cell(row.text_sha256)},
                           {"coverage", cell(row.finding.coverage)},
                           {"prefix_of_baseline", cell(row.finding.prefix_of_baseline)},
                           {"open_ending", cell(row.finding.open_ending)}});
}

Cells cells_of(const Document& document, const Row& row) {
    Cells cells;
    add_identity(document, row.record.request, cells);
    add_end(row, cells);
    add_numbers(row, cells);
    add_limits_and_memory(row.record, cells);
    add_text(row, cells);
    return cells;
}

template <class Pick>
std::string line(const Cells& cells, Pick pick) {
    std::string out;
    for (const auto& entry : cells) out.append(out.empty() ? "" : ",").append(pick(entry));
    return out + '\n';
}

}  // namespace

std::string to_csv(const Document& document) {
    std::string out =
        line(cells_of(document, Row{}), [](const auto& entry) { return entry.first; });
    for (const Row& row : document.rows)
        out += line(cells_of(document, row),
                    [](const auto& entry) { return std::string_view(entry.second); });
    return out;
}

}  // namespace fullstop::report
