// The `fullstop` object that tells of one answer (contract, section 6): why it ended and the
// numbers beside it. What a server does not know is null in it, never 0.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace fullstop::serving {

/// Absent: not known here.
struct AnswerNumbers {
    std::string request_id;
    std::optional<std::int64_t> requested_max_tokens = {}, effective_max_tokens = {};
    std::optional<std::int64_t> prompt_tokens = {}, cached_tokens = {}, output_tokens = {};
    std::optional<double> queue_ms = {}, ttft_ms = {}, paused_ms = {};
    struct Preemptions {
        int swap = 0, recompute = 0;
    };
    std::optional<Preemptions> preemptions = {};
    std::optional<std::int64_t> kv_bytes_peak = {};
    std::optional<double> deadline_ms = {};
    std::optional<bool> ttft_met = {}, itl_met = {};
    std::optional<double> ttft_estimate_ms = {};
    std::optional<bool> demoted = {};
};

/// `stop`: cause, by, detail, and what else the server says of the end.
boost::json::object fullstop_object(boost::json::object stop, const AnswerNumbers& numbers);

}  // namespace fullstop::serving
