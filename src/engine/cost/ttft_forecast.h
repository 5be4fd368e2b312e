// When would a request get its first token, if it came now? Answered by running the engine's own
// rules ahead in leaps: from one end of an answer or a prompt to the next, each leap at the cost of
// its middle step.
//
// Places, memory and the order of the queue count as they will be when the request's turn comes,
// not as they are now; how long the others go on is what Admission expects of them. Left out:
// pauses for memory in the meantime, reuse of prompts by those ahead, and whoever comes later.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "engine/answer_end.h"
#include "engine/scheduling/pacing.h"

namespace fullstop::engine {

/// One answer on its way, as far as the forecast needs it.
struct Course {
    base::Tokens in_kv;
    base::Tokens prompt_left;  ///< rows until it makes its next token; 0: it decodes
    base::Tokens output_left;  ///< tokens it is still expected to make
    base::Tokens demand;       ///< tokens of memory it is counted with while it runs
    Priority priority = Priority::kNormal;
    int level = 1;  ///< Standing::level
    bool measured = false;
};

struct ForecastState {
    bool streams = false;
    std::int64_t places = 1;
    base::Tokens pool, block{1};
    std::vector<Course> running;  ///< in order
    std::vector<Course> waiting;  ///< in order; the last one is the request in question, and those
                                  ///< behind it are left out
};

/// From now until that request's first token.
base::Duration forecast_ttft(ForecastState state, const Pacing& pacing, const CostModel& cost,
                             std::optional<base::Duration> itl_target);

}  // namespace fullstop::engine
