// One line a setting, cells as short as honesty allows, then what to conclude and on whose machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/simulate/simulation.h"
#include "report/text.h"

namespace fullstop::cli {
namespace {

constexpr std::size_t kColumns = 10;
using Cells = std::array<std::string, kColumns>;

std::string seconds(double ms) {
    const double s = ms / 1000;
    return s < 10    ? fmt::format("{:.2f}", s)
           : s < 100 ? fmt::format("{:.1f}", s)
                     : fmt::format("{:.0f}", s);
}
std::string milliseconds(double ms) {
    return ms < 9.95   ? fmt::format("{:.1f}", ms)
           : ms < 1000 ? fmt::format("{:.0f}", ms)
                       : fmt::format("{:.1f}s", ms / 1000);
}

/// Two lines of a heading: what, and in which unit.
constexpr std::array<std::pair<const char*, const char*>, kColumns> kHeads = {
    {{"KV", "tokens"},
     {"", "users"},
     {"", "admission"},
     {"whole", "answers"},
     {"first", "token"},
     {"between", "tokens"},
     {"longest", "silence"},
     {"tokens", "per s"},
     {"", "paused"},
     {"KV", "used"}}};

Cells cells_of(const simulator::SweepRow& row) {
    const simulator::ServingSummary& s = row.summary;
    return {
        std::to_string(row.setting.pool.count),
        row.setting.users ? std::to_string(*row.setting.users) : "-",
        std::string(engine::to_string(row.setting.admission)),
        fmt::format("{}/{}", s.whole, s.requests),
        s.ttft_ms ? fmt::format("{}/{}", seconds(s.ttft_ms->p50), seconds(s.ttft_ms->p99)) : "-",
        s.itl_ms ? fmt::format("{}/{}/{}", milliseconds(s.itl_ms->p50), milliseconds(s.itl_ms->p99),
                               milliseconds(s.itl_ms->max))
                 : "-",
        fmt::format("{} s", seconds(s.longest_silence_ms)),
        fmt::format("{:.0f}", s.tokens_per_s),
        std::to_string(s.swaps + s.recomputes),
        fmt::format("{:.0f}%", 100 * s.kv_utilisation)};
}

std::string cost_sentence(const Simulation& simulation) {
    const engine::CostKey& key = simulation.cost.key;
    const std::string what = fmt::format(
        "{}, {} layout, {} KV, {}, {}; it misses {} by {:.0f} %", key.model, to_string(key.layout),
        to_string(key.kv_type), report::counted(key.threads, "thread"), simulation.cost.measured,
        simulation.cost.step_error ? "steps of a trial" : "measured passes",
        100 * simulation.cost.step_error.value_or(simulation.cost.model.fit_error()));
    switch (simulation.source) {
        case CostSource::kCalibrated:
            return fmt::format("Times: measured on this machine ({}).", what);
        case CostSource::kFile:
            return fmt::format("Times: from {} ({}).", simulation.cost_file, what);
        case CostSource::kReference:
            return fmt::format(
                "Times: a reference, not your machine ({}). Compare lines, not seconds, until "
                "'fullstop simulate --calibrate' has measured yours.",
                what);
    }
    return {};
}

}  // namespace

std::string simulation_table(const Simulation& simulation, std::size_t columns) {
    std::vector<Cells> lines(2);
    for (std::size_t i = 0; i < kColumns; ++i)
        lines[0][i] = kHeads[i].first, lines[1][i] = kHeads[i].second;
    for (const simulator::SweepRow& row : simulation.rows) lines.push_back(cells_of(row));
    std::array<std::size_t, kColumns> width{};
    for (const Cells& line : lines)
        for (std::size_t i = 0; i < kColumns; ++i)
            width[i] = std::max(width[i], report::columns(line[i]));
    std::string out;
    for (const Cells& line : lines) {
        std::string text;
        for (std::size_t i = 0; i < kColumns; ++i)
            text += (i > 0 ? " " : "") + report::pad_left(line[i], width[i]);
        out += text + '\n';
    }
    out += '\n' +
           report::wrap(
               "First token: s, p50/p99. Between tokens: ms, p50/p99/max. Silence: the longest "
               "that any client saw.",
               columns, "", "") +
           '\n';
    if (simulation.interrupted)
        out += report::wrap(
            fmt::format("Interrupted: {} of {} settings were simulated to their end.",
                        std::ranges::count_if(simulation.rows,
                                              [](const auto& row) { return row.finished; }),
                        simulation.plan.settings.size()),
            columns, "", "");
    for (const simulator::SweepRow& row : simulation.rows)
        if (row.summary.refused > 0) {
            out += report::wrap(
                "Not whole here means refused: a request that does not fit the window, or a full "
                "queue. No answer was cut.",
                columns, "", "");
            break;
        }
    out += report::wrap(simulation.advice.text, columns, "", "");
    out += report::wrap(cost_sentence(simulation), columns, "", "");
    return out;
}

}  // namespace fullstop::cli
