// The document fullstop.simulation/1 (docs/schemas/simulation-1.schema.json).
#include <boost/json.hpp>

#include "cli/simulate/simulation.h"
#include "cli/version.h"
#include "report/json/json_text.h"

namespace fullstop::cli {
namespace {

namespace json = boost::json;

json::value optional_number(const std::optional<double>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::value spread(const std::optional<simulator::Spread>& spread) {
    if (!spread) return nullptr;
    return json::object{{"p50", spread->p50}, {"p99", spread->p99}, {"max", spread->max}};
}

json::array range(const simulator::TokenRange& range) {
    return {range.low.count, range.high.count};
}

json::string text(std::string_view view) { return json::string(view); }

json::object cost_object(const Simulation& simulation) {
    const engine::CostTable& cost = simulation.cost;
    const char* source = simulation.source == CostSource::kCalibrated ? "calibrated"
                         : simulation.source == CostSource::kFile     ? "file"
                                                                      : "reference";
    return {{"source", source},
            {"file", simulation.cost_file.empty() ? json::value(nullptr)
                                                  : json::value(text(simulation.cost_file))},
            {"model", text(cost.key.model)},
            {"layout", to_string(cost.key.layout)},
            {"kv_type", to_string(cost.key.kv_type)},
            {"threads", cost.key.threads},
            {"measured", text(cost.measured)},
            {"fit_error", cost.model.fit_error()},
            {"step_error", optional_number(cost.step_error)},
            {"noise", simulation.plan.noise}};
}

json::object load_object(const Simulation& simulation) {
    const simulator::LoadShape& shape = simulation.plan.shape;
    if (simulation.plan.trace)
        return {{"pattern", "trace"},
                {"trace", text(simulation.trace)},
                {"requests", simulation.plan.trace->requests.size()}};
    const bool poisson = shape.pattern == simulator::ArrivalPattern::kPoisson;
    json::object out = {{"pattern", poisson                                              ? "poisson"
                                    : shape.pattern == simulator::ArrivalPattern::kBurst ? "burst"
                                                                                         : "users"},
                        {"prompt_tokens", range(shape.prompt)},
                        {"shared_tokens", shape.shared.count},
                        {"output_tokens", range(shape.natural)},
                        {"max_tokens", shape.max_tokens ? json::value(shape.max_tokens->count)
                                                        : json::value(nullptr)}};
    if (poisson) out["rate"] = shape.rate;
    return out;
}

json::object setting_object(const simulator::SweepRow& row) {
    const simulator::ServingSummary& s = row.summary;
    return {{"kv_tokens", row.setting.pool.count},
            {"users", row.setting.users ? json::value(*row.setting.users) : json::value(nullptr)},
            {"admission", text(engine::to_string(row.setting.admission))},
            {"window", row.window.count},
            {"finished", row.finished},
            {"requests", s.requests},
            {"whole", s.whole},
            {"refused", s.refused},
            {"failed", s.failed},
            {"ttft_ms", spread(s.ttft_ms)},
            {"itl_ms", spread(s.itl_ms)},
            {"longest_silence_ms", s.longest_silence_ms},
            {"tokens_per_s", s.tokens_per_s},
            {"output_tokens", s.output_tokens},
            {"preemptions", json::object{{"swap", s.swaps}, {"recompute", s.recomputes}}},
            {"preempted_answers", s.preempted_answers},
            {"longest_pause_ms", s.longest_pause_ms},
            {"kv_utilisation", s.kv_utilisation},
            {"steps", s.steps},
            {"rows", s.rows},
            {"elapsed_s", base::to_seconds(s.elapsed)}};
}

}  // namespace

std::string simulation_json(const Simulation& simulation) {
    json::array settings, notes;
    for (const simulator::SweepRow& row : simulation.rows) settings.push_back(setting_object(row));
    for (const std::string& note : simulation.notes) notes.push_back(text(note));
    const simulator::Advice& advice = simulation.advice;
    return report::json_text(json::object{
        {"schema", text(kSimulationSchema)},
        {"fullstop", json::object{{"version", kVersion}, {"build", kBuild}}},
        {"seed", simulation.plan.seed},
        {"interrupted", simulation.interrupted},
        {"cost", cost_object(simulation)},
        {"load", load_object(simulation)},
        {"layout", simulation.plan.streams ? "streams" : "unified"},
        {"max_sequences", simulation.plan.max_sequences},
        {"max_queue", simulation.plan.max_queue},
        {"host_memory_tokens", simulation.plan.host_memory.count},
        {"targets", json::object{{"ttft_ms", optional_number(simulation.targets.ttft_ms)},
                                 {"itl_ms", optional_number(simulation.targets.itl_ms)}}},
        {"settings", std::move(settings)},
        {"advice",
         json::object{
             {"kv_tokens", advice.pool ? json::value(advice.pool->count) : json::value(nullptr)},
             {"admission", advice.admission
                               ? json::value(text(engine::to_string(*advice.admission)))
                               : json::value(nullptr)},
             {"text", text(advice.text)}}},
        {"notes", std::move(notes)}});
}

}  // namespace fullstop::cli
