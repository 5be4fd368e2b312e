// A cost model with the name of what was measured, as a document `fullstop.cost/1` and back. The
// points are kept, so that a later version may fit them better; the coefficients stand beside them
// for readers only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/backend.h"
#include "engine/cost/cost_model.h"
#include "engine/cost/swap_cost.h"

namespace fullstop::engine {

inline constexpr std::string_view kCostSchema = "fullstop.cost/1";
/// A table has some dozens of points of a hundred bytes; beyond this it is another document.
inline constexpr std::size_t kMaxCostTableBytes = 4 * 1024 * 1024;

/// What a table holds for: any other value of one of these is another table.
struct CostKey {
    std::string model;  ///< file name without its ending
    std::string build;  ///< of fullstop and its compiler
    KvLayout layout = KvLayout::kStreams;
    KvType kv_type = KvType::kQ8_0;
    int threads = 1;
    bool operator==(const CostKey&) const = default;
};

struct CostTable {
    CostKey key;
    std::string measured;  ///< when and where, for people
    base::Bytes kv_bytes_per_token{1};
    CostModel model;
    SwapCost swap{};
    std::optional<double>
        step_error{};  ///< mean absolute relative error over the steps of a trial, if there was one
};

std::string cost_json(const CostTable& table);
/// Errors (usage) name `name` and the field.
base::Result<CostTable> read_cost_table(std::string_view text, std::string_view name);

}  // namespace fullstop::engine
