// Eight passes at depth 0 and 1024, of one sequence alone: what a unified pass pays for the cells
// of others is not in them, so both layouts come out equal (measured, eight next tokens take a
// quarter longer in unified). Swaps were measured with F16 KV, which is twice as large.
#include "simulator/capacity/reference_cost.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace fullstop::simulator {
namespace {

struct Measured {
    std::int64_t rows, outputs;
    double row_kv, row_foreign, ms;
};

constexpr std::array kPasses = {
    Measured{1, 1, 1, 0, 14},       Measured{8, 8, 36, 0, 30},
    Measured{64, 1, 2080, 0, 179},  Measured{256, 1, 32896, 0, 633},
    Measured{1, 1, 1025, 0, 20},    Measured{8, 8, 8228, 0, 60},
    Measured{64, 1, 67616, 0, 459}, Measured{256, 1, 295040, 0, 1744},
};

}  // namespace

engine::CostTable reference_cost(engine::KvLayout layout) {
    std::vector<engine::CostPoint> points;
    for (const Measured& m : kPasses)
        points.push_back({.pass = {.rows = m.rows,
                                   .outputs = m.outputs,
                                   .row_kv = m.row_kv,
                                   .row_foreign = m.row_foreign},
                          .ms = m.ms});
    auto model = engine::CostModel::fit(std::move(points));
    FULLSTOP_ASSERT(model, "the reference can be fitted");
    return {.key = {.model = "a model of SmolLM2-135M's shape, Q8_0",
                    .build = "reference",
                    .layout = layout,
                    .kv_type = engine::KvType::kQ8_0,
                    .threads = 2},
            .measured = "on two cores of a shared AVX-512 server",
            .kv_bytes_per_token = base::Bytes{12'240},
            .model = std::move(*model),
            .swap = engine::SwapCost({{.tokens = {1024}, .out_ms = 17, .in_ms = 4},
                                      {.tokens = {2048}, .out_ms = 71, .in_ms = 19}})};
}

}  // namespace fullstop::simulator
