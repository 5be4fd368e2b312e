// The table of levels: one line a level, as text cells that terminal and Markdown lay out in their
// own way.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "judge/verdict.h"

namespace fullstop::report {

struct LevelColumn {
    std::string_view over;  ///< first line of the head
    std::string_view name;  ///< second line of the head
    std::string_view full;  ///< both in one, for Markdown
};

inline constexpr std::array kLevelColumns = {
    LevelColumn{"", "users", "users"},
    LevelColumn{"", "all", "answers"},
    LevelColumn{"", "ended", "ended by the model"},
    LevelColumn{"", "limit", "at the limit asked for"},
    LevelColumn{"", "cut", "cut"},
    LevelColumn{"", "r/f", "refused/failed"},
    LevelColumn{"complete", "(95 %)", "complete (95 %)"},
    LevelColumn{"cover-", "age", "coverage"},
    LevelColumn{"tokens", "p50", "tokens p50"},
    LevelColumn{"vs", "alone", "length vs alone"},
    LevelColumn{"TTFT s", "p50/p95", "TTFT s p50/p95"},
    LevelColumn{"ITL ms", "p50/p99", "ITL ms p50/p99"},
};
using LevelCells = std::array<std::string, kLevelColumns.size()>;

/// A value that is not known is "-".
LevelCells level_cells(const judge::LevelJudgement& level);

}  // namespace fullstop::report
