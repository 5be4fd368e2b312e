// How long it takes to copy an answer's KV to host memory and back: a fixed part and a part for
// each token, both measured.
#pragma once

#include <span>
#include <vector>

#include "base/time.h"
#include "base/units.h"

namespace fullstop::engine {

struct SwapPoint {
    base::Tokens tokens;
    double out_ms = 0, in_ms = 0;
};

class SwapCost {
public:
    /// Without points a swap takes no time.
    explicit SwapCost(std::vector<SwapPoint> points = {});

    base::Duration out(base::Tokens tokens) const { return out_.of(tokens); }
    base::Duration in(base::Tokens tokens) const { return in_.of(tokens); }
    std::span<const SwapPoint> points() const { return points_; }

private:
    struct Line {
        double base_ms = 0, token_ms = 0;
        base::Duration of(base::Tokens tokens) const {
            return base::from_ms(base_ms + token_ms * static_cast<double>(tokens.count));
        }
    };
    static Line fit(std::span<const SwapPoint> points, double SwapPoint::* ms);

    std::vector<SwapPoint> points_;
    Line out_, in_;
};

}  // namespace fullstop::engine
