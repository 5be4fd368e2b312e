// One function per endpoint, shapes as the products write them.
#include "simulator/server/introspection.h"

#include <fmt/format.h>

#include "simulator/server/answer_writer.h"

namespace fullstop::simulator {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4";
constexpr std::int64_t kBlock = 16;  ///< tokens of a vLLM block

std::int64_t slot_window(const ServerScript& script) { return script.pool.value_or(script.window); }
std::int64_t whole_cache(const ServerScript& script) {
    return script.pool.value_or(script.window * script.slots);
}

std::string models(const ServerScript& script) {
    std::string more;
    std::string_view owner = "organization_owner";
    if (script.plays == Plays::kLlamaServer) {
        owner = "llamacpp";
        more = fmt::format(
            R"(,"meta":{{"n_vocab":49152,"n_ctx_train":8192,"n_ctx":{},"n_params":134515008,"size":90000000}})",
            slot_window(script));
    } else if (script.plays == Plays::kVllm) {
        owner = "vllm";
        more = fmt::format(R"(,"max_model_len":{})", script.window);
    } else if (script.plays == Plays::kOllama) {
        owner = "library";
    }
    return fmt::format(
        R"({{"object":"list","data":[{{"id":{},"object":"model","created":1767225600,"owned_by":"{}"{}}}]}})",
        json_quoted(script.model), owner, more);
}

std::string props(const ServerScript& script) {
    return fmt::format(
        R"({{"default_generation_settings":{{"id":0,"n_ctx":{},"is_processing":false,"params":{{"n_predict":-1}}}},"total_slots":{},"model_alias":{},)"
        R"("model_path":"/models/scripted.gguf","build_info":"b9000-0000000"}})",
        slot_window(script), script.slots, json_quoted(script.model));
}

std::string slots(const ServerScript& script, const Gauges& gauges) {
    std::string list;
    for (int i = 0; i < script.slots; ++i)
        list += fmt::format(R"({}{{"id":{},"n_ctx":{},"speculative":false,"is_processing":{}}})",
                            i > 0 ? "," : "", i, slot_window(script), i < gauges.running);
    return "[" + list + "]";
}

std::string llama_metrics(const Gauges& gauges) {
    return fmt::format(
        "# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total {}\n# TYPE "
        "llamacpp:tokens_predicted_total "
        "counter\nllamacpp:tokens_predicted_total {}\n"
        "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing {}\n# TYPE "
        "llamacpp:requests_deferred gauge\nllamacpp:requests_deferred {}\n",
        gauges.prompt_tokens, gauges.output_tokens, gauges.running, gauges.waiting);
}

std::string vllm_metrics(const ServerScript& script, const Gauges& gauges) {
    const auto name = json_quoted(script.model);
    const auto cache = whole_cache(script);
    return fmt::format(
        "# TYPE vllm:num_requests_running "
        "gauge\nvllm:num_requests_running{{engine=\"0\",model_name={0}}} {1}\n"
        "# TYPE vllm:num_requests_waiting "
        "gauge\nvllm:num_requests_waiting{{engine=\"0\",model_name={0}}} {2}\n"
        "# TYPE vllm:kv_cache_usage_perc "
        "gauge\nvllm:kv_cache_usage_perc{{engine=\"0\",model_name={0}}} {3:.4f}\n"
        "# TYPE vllm:num_preemptions_total "
        "counter\nvllm:num_preemptions_total{{engine=\"0\",model_name={0}}} {4}\n"
        "# TYPE vllm:cache_config_info "
        "gauge\nvllm:cache_config_info{{block_size=\"{5}\",num_gpu_blocks=\"{6}\"}} 1\n",
        name, gauges.running, gauges.waiting,
        static_cast<double>(gauges.tokens_held) / static_cast<double>(cache), gauges.preemptions,
        kBlock, cache / kBlock);
}

std::optional<OwnAnswer> of_llama(std::string_view target, const ServerScript& script,
                                  const Gauges& gauges) {
    if (script.tells.props && target == "/props") return OwnAnswer{props(script), kJson};
    if (script.tells.props && target == "/slots") return OwnAnswer{slots(script, gauges), kJson};
    if (script.tells.metrics && target == "/metrics")
        return OwnAnswer{llama_metrics(gauges), kPrometheus};
    return std::nullopt;
}

std::optional<OwnAnswer> of_ollama(std::string_view target, const ServerScript& script) {
    const auto name = json_quoted(script.model);
    if (target == "/api/version") return OwnAnswer{R"({"version":"0.17.4"})", kJson};
    if (target == "/api/tags")
        return OwnAnswer{
            fmt::format(R"({{"models":[{{"name":{0},"model":{0},"size":90000000}}]}})", name),
            kJson};
    if (target == "/api/ps" && script.tells.props)
        return OwnAnswer{
            fmt::format(
                R"({{"models":[{{"name":{0},"model":{0},"size":90000000,"size_vram":90000000,"context_length":{1}}}]}})",
                name, script.window),
            kJson};
    if (target == "/api/show" && script.tells.props)
        return OwnAnswer{
            R"({"parameters":"","details":{"family":"llama"},"model_info":{"general.architecture":"llama","llama.context_length":8192}})",
            kJson};
    return std::nullopt;
}

}  // namespace

std::optional<OwnAnswer> own_answer(std::string_view target, const ServerScript& script,
                                    const Gauges& gauges) {
    if (target == "/v1/models") return OwnAnswer{models(script), kJson};
    if (target == "/health" && script.plays != Plays::kOllama)
        return OwnAnswer{R"({"status":"ok"})", kJson};
    switch (script.plays) {
        case Plays::kLlamaServer: return of_llama(target, script, gauges);
        case Plays::kOllama: return of_ollama(target, script);
        case Plays::kTgi:
            if (target == "/info")
                return OwnAnswer{
                    fmt::format(
                        R"({{"model_id":{},"max_total_tokens":{},"max_input_tokens":{},"max_concurrent_requests":128,"max_batch_total_tokens":{},"router":"text-generation-router","version":"3.3.6"}})",
                        json_quoted(script.model), script.window, script.window - 1,
                        whole_cache(script)),
                    kJson};
            return std::nullopt;
        case Plays::kVllm:
            if (target == "/version") return OwnAnswer{R"({"version":"0.22.0"})", kJson};
            if (target == "/metrics" && script.tells.metrics)
                return OwnAnswer{vllm_metrics(script, gauges), kPrometheus};
            return std::nullopt;
        default: return std::nullopt;
    }
}

}  // namespace fullstop::simulator
