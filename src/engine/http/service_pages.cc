// Boost.JSON objects, written whole at each request: they are small and nobody asks often.
#include "engine/http/service_pages.h"

#include <boost/json.hpp>
#include <utility>

namespace fullstop::engine {

namespace json = boost::json;

std::string models_body(const ModelFacts& facts, base::WallTime started) {
    const json::object model = {{"id", facts.name},
                                {"object", "model"},
                                {"created", started.unix_ns / 1'000'000'000},
                                {"owned_by", "fullstop"},
                                {"max_model_len", facts.window.count}};
    return json::serialize(json::object{{"object", "list"}, {"data", json::array{model}}});
}

std::string status_body(const ModelFacts& facts, const ServiceState& state) {
    json::object ends;
    for (const auto& [cause, count] : state.ends) ends[answer::to_string(cause)] = count;
    const Sampling defaults;
    return json::serialize(json::object{
        {"server", "fullstop"},
        {"version", state.version},
        {"status", state.draining ? "draining" : "ok"},
        {"model", facts.name},
        {"window", facts.window.count},
        {"pool", state.occupancy.kv_total.count},
        {"shared_pool", facts.layout == KvLayout::kUnified},
        {"slots", facts.max_sequences},
        {"max_queue", state.max_queue},
        {"admission", to_string(state.admission)},
        {"ttft_target_ms",
         state.ttft_target ? json::value(base::to_ms(*state.ttft_target)) : json::value(nullptr)},
        {"slo_policy", to_string(state.slo_policy)},
        {"slo_demoted", state.occupancy.demoted},
        {"slo_rejected", state.occupancy.rejected_early},
        {"layout", to_string(facts.layout)},
        {"kv_type", to_string(facts.kv_type)},
        {"kv_bytes_per_token", facts.kv_bytes_per_token.count},
        {"kv_tokens_used", state.occupancy.kv_used.count},
        {"kv_tokens_reserved", state.occupancy.kv_reserved.count},
        {"running", state.occupancy.running},
        {"waiting", state.occupancy.waiting},
        {"threads", facts.threads},
        {"device", facts.device},
        {"gpu_layers", facts.gpu_layers},
        {"padding_rows", facts.pads},
        {"load_invariant", facts.load_invariant},
        {"host_bytes_used", state.occupancy.host_used.count},
        {"host_bytes_total", state.occupancy.host_total.count},
        {"default_max_tokens",
         nullptr},  // the window's rest is the only limit when none is asked for
        {"output_deadline_ms", nullptr},
        {"defaults",
         {{"temperature", defaults.temperature},
          {"top_p", defaults.top_p},
          {"top_k", defaults.top_k},
          {"min_p", defaults.min_p}}},
        {"ends", std::move(ends)}});
}

}  // namespace fullstop::engine
