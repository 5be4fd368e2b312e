// Cells as short as honesty allows: twelve columns must fit into eighty.
#include "report/levels_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"

namespace fullstop::report {
namespace {

constexpr const char* kUnknown = "-";

/// 100 % only when it is: 99.7 % shows as 99 %.
std::string percent(double share) {
    return fmt::format("{:.0f}%", share < 1 ? std::min(share * 100, 99.0) : 100.0);
}

std::string complete(const std::optional<judge::Interval>& rate) {
    if (!rate) return kUnknown;
    return fmt::format("{} {:.0f}-{:.0f}", percent(rate->value), rate->low * 100, rate->high * 100);
}

std::string ratio(double value) {
    return value < 10 ? fmt::format("{:.2f}x", value) : short_number(value) + "x";
}

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

}  // namespace

LevelCells level_cells(const judge::LevelJudgement& level) {
    return {std::to_string(level.concurrency),
            std::to_string(level.answers),
            std::to_string(level.natural),
            std::to_string(level.limited),
            std::to_string(level.cut),
            fmt::format("{}/{}", level.refused, level.failed),
            complete(level.completion_rate),
            level.coverage ? percent(level.coverage->value) : kUnknown,
            level.output_tokens_p50 ? fmt::format("{:.0f}", *level.output_tokens_p50) : kUnknown,
            level.paired_length ? ratio(level.paired_length->median_ratio) : kUnknown,
            level.ttft_ms
                ? fmt::format("{}/{}", seconds(level.ttft_ms->p50), seconds(level.ttft_ms->p95))
                : kUnknown,
            level.itl_ms ? fmt::format("{}/{}", milliseconds(level.itl_ms->p50),
                                       milliseconds(level.itl_ms->p99))
                         : kUnknown};
}

}  // namespace fullstop::report
