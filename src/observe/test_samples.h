// What servers really say of themselves, shortened where a value says nothing here (templates,
// parameter lists).
#pragma once

#include <string_view>

namespace fullstop::observe::samples {

inline constexpr std::string_view kLlamaModels =
    R"({"models":[{"name":"SmolLM2-135M-Instruct.Q4_1.gguf","model":"SmolLM2-135M-Instruct.Q4_1.gguf","type":"model","capabilities":["completion"]}],)"
    R"("object":"list","data":[{"id":"SmolLM2-135M-Instruct.Q4_1.gguf","aliases":[],"tags":[],"object":"model","created":1796013000,"owned_by":"llamacpp",)"
    R"("meta":{"vocab_type":2,"n_vocab":49152,"n_ctx":1024,"n_ctx_train":8192,"n_embd":576,"n_params":134515008,"size":96596352}}]})";

inline constexpr std::string_view kLlamaProps =
    R"({"default_generation_settings":{"params":{"seed":4294967295,"temperature":0.8,"top_k":40,"top_p":0.95,"max_tokens":-1,"n_predict":-1,"n_keep":0,)"
    R"("t_max_predict_ms":0,"ignore_eos":false,"stream":true},"n_ctx":1024},"total_slots":8,"model_alias":"SmolLM2-135M-Instruct.Q4_1.gguf",)"
    R"("model_path":"models/SmolLM2-135M-Instruct.Q4_1.gguf","modalities":{"vision":false,"audio":false},"endpoint_slots":true,"endpoint_props":false,)"
    R"("endpoint_metrics":true,"chat_template":"{% for message in messages %}...","bos_token":"<|im_start|>","eos_token":"<|im_end|>","build_info":"b1-0c1e570","is_sleeping":false})";

inline constexpr std::string_view kLlamaSlots =
    R"([{"id":0,"n_ctx":1024,"speculative":false,"is_processing":false},)"
    R"({"id":1,"n_ctx":1024,"speculative":false,"is_processing":true,"id_task":29,"n_prompt_tokens":103,"n_prompt_tokens_processed":38,"n_prompt_tokens_cache":0,)"
    R"("params":{"seed":1,"n_predict":200},"next_token":[{"has_next_token":true,"has_new_line":false,"n_remain":135,"n_decoded":65}]},)"
    R"({"id":2,"n_ctx":1024,"speculative":false,"is_processing":false,"id_task":27,"n_prompt_tokens":237,"n_prompt_tokens_processed":0,"n_prompt_tokens_cache":0,)"
    R"("next_token":[{"has_next_token":false,"has_new_line":false,"n_remain":-1,"n_decoded":0}]}])";

inline constexpr std::string_view kLlamaMetrics =
    "# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.\n# TYPE "
    "llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 464\n"
    "# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total 1337\n"
    "# TYPE llamacpp:predicted_tokens_seconds gauge\nllamacpp:predicted_tokens_seconds 97.31\n"
    "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 8\n"
    "# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 3\n";

inline constexpr std::string_view kVllmModels =
    R"({"object":"list","data":[{"id":"smol","object":"model","created":1796013000,"owned_by":"vllm","root":"model-bf16","parent":null,"max_model_len":1024,)"
    R"("permission":[{"id":"modelperm-1","allow_sampling":true}]}]})";

inline constexpr std::string_view kVllmMetrics =
    "# HELP vllm:num_requests_running Number of requests in model execution batches.\n# TYPE "
    "vllm:num_requests_running gauge\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"smol\"} 6.0\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"smol\"} 2.0\n"
    "vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"smol\",reason=\"capacity\"} "
    "2.0\n"
    "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"smol\"} 0.9365079365079365\n"
    "vllm:num_preemptions_total{engine=\"0\",model_name=\"smol\"} 4.0\n"
    "vllm:num_preemptions_created{engine=\"0\",model_name=\"smol\"} 1.7961e+09\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"smol\"} 11.0\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"smol\"} 1.0\n"
    "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.001\",model_name=\"smol\"} 0.0\n"
    "vllm:cache_config_info{block_size=\"32\",cache_dtype=\"auto\",engine=\"0\",num_gpu_blocks="
    "\"63\",sliding_window=\"None\"} 1.0\n";

inline constexpr std::string_view kOllamaPs =
    R"({"models":[{"name":"smol:latest","model":"smol:latest","size":252059648,"digest":"d1","details":{"format":"gguf","family":"llama"},)"
    R"("expires_at":"2026-11-30T04:05:06Z","size_vram":251000000,"context_length":4096}]})";

inline constexpr std::string_view kOllamaShow =
    R"({"modelfile":"FROM smol","parameters":"stop                           \"<|im_end|>\"\nnum_ctx                        2048\nnum_predict                    128",)"
    R"("template":"...","details":{"family":"llama"},"model_info":{"general.architecture":"llama","llama.context_length":8192}})";

inline constexpr std::string_view kFullstopStatus =
    R"({"server":"fullstop","version":"0.1.0","status":"ok","model":"SmolLM2-135M-Instruct","window":2048,"pool":16384,"shared_pool":false,"slots":8,"max_queue":64,)"
    R"("admission":"reserve","layout":"streams","kv_type":"q8_0","kv_bytes_per_token":12240,"kv_tokens_used":4096,"kv_tokens_reserved":8192,"running":5,"waiting":2,)"
    R"("threads":1,"default_max_tokens":null,"output_deadline_ms":null,"ends":{}})";

inline constexpr std::string_view kTgiInfo =
    R"({"model_id":"HuggingFaceTB/SmolLM2-135M-Instruct","max_concurrent_requests":128,"max_input_tokens":1023,"max_total_tokens":2048,"max_batch_total_tokens":16384,)"
    R"("router":"text-generation-router","version":"3.3.4"})";

inline constexpr std::string_view kSglangInfo =
    R"({"model_path":"smol","context_length":8192,"max_running_requests":32,"max_queued_requests":null,"max_total_num_tokens":20000,"version":"0.5.3"})";

}  // namespace fullstop::observe::samples
