#include "serving/answer_object.h"

#include <boost/json.hpp>
#include <utility>

namespace fullstop::serving {
namespace {

namespace json = boost::json;

template <class Value>
json::value or_null(const std::optional<Value>& value) {
    if (!value) return nullptr;
    return *value;
}

}  // namespace

json::object fullstop_object(json::object stop, const AnswerNumbers& n) {
    json::value preemptions = nullptr;
    if (n.preemptions)
        preemptions = {{"swap", n.preemptions->swap}, {"recompute", n.preemptions->recompute}};
    return {{"request_id", n.request_id},
            {"stop", std::move(stop)},
            {"requested_max_tokens", or_null(n.requested_max_tokens)},
            {"effective_max_tokens", or_null(n.effective_max_tokens)},
            {"prompt_tokens", or_null(n.prompt_tokens)},
            {"cached_tokens", or_null(n.cached_tokens)},
            {"output_tokens", or_null(n.output_tokens)},
            {"queue_ms", or_null(n.queue_ms)},
            {"ttft_ms", or_null(n.ttft_ms)},
            {"paused_ms", or_null(n.paused_ms)},
            {"preemptions", std::move(preemptions)},
            {"kv_bytes_peak", or_null(n.kv_bytes_peak)},
            {"deadline_ms", or_null(n.deadline_ms)},
            {"slo",
             {{"ttft_met", or_null(n.ttft_met)},
              {"itl_met", or_null(n.itl_met)},
              {"ttft_estimate_ms", or_null(n.ttft_estimate_ms)},
              {"demoted", or_null(n.demoted)}}}};
}

}  // namespace fullstop::serving
