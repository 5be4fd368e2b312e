// Sums over runs. Which of them share a pass is the only decision here.
#include "engine/cost/step_shape.h"

#include <algorithm>

namespace fullstop::engine {

void PassShape::add(const PassShape& other) {
    rows += other.rows;
    outputs += other.outputs;
    row_kv += other.row_kv;
    row_foreign += other.row_foreign;
}

PassShape rows_at(base::Tokens position, std::int64_t rows, bool wants_logits,
                  base::Tokens foreign) {
    const auto n = static_cast<double>(rows);
    return {.rows = rows,
            .outputs = wants_logits ? 1 : 0,
            .row_kv = n * static_cast<double>(position.count) +
                      n * (n + 1) / 2,  // row i attends to position + i tokens, from i = 1
            .row_foreign = n * static_cast<double>(foreign.count)};
}

StepShape::StepShape(bool streams, std::span<const Run> runs, base::Tokens in_kv)
    : streams_(streams) {
    for (const Run& run : runs)
        add(rows_at(run.position, std::ssize(run.tokens), run.wants_logits,
                    streams ? base::Tokens{} : in_kv - std::min(run.position, in_kv)));
}

void StepShape::add(const PassShape& run) {
    if (run.rows == 0) return;
    if (streams_ && run.rows > 1) return passes_.push_back(run);
    if (!has_together_) passes_.insert(passes_.begin(), PassShape{});
    has_together_ = true;
    passes_.front().add(run);
}

}  // namespace fullstop::engine
