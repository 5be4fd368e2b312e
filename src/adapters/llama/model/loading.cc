// libllama reports most failures as a null pointer and a log line; here they become a sentence with
// a next step.
#include "adapters/llama/model/loading.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <system_error>

#include "adapters/llama/model/log.h"
#include "adapters/llama/model/memory.h"
#include "engine/limits.h"

namespace fullstop::adapters::llama {
namespace {

/// libllama rounds windows up to this. Windows of their own we round down instead, so that no more
/// memory is taken than was asked for; a shared pool it rounds up to less than a step more.
constexpr std::int64_t kWindowStep = 256;
/// Room in the shared pool for padding rows.
constexpr std::int64_t kPadCells = 2;

constexpr std::int64_t rounded_up(std::int64_t tokens) {
    return (tokens + kWindowStep - 1) / kWindowStep * kWindowStep;
}

ggml_type type_of(KvType type) { return type == KvType::kQ8_0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16; }

std::string in_mib(base::Bytes bytes) { return fmt::format("{} MiB", bytes.count >> 20); }

base::Result<void> check_file(const std::filesystem::path& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status))
        return base::unreachable_error(fmt::format("there is no model file {}", path.string()),
                                       "give a GGUF file with --model FILE");
    if (!std::filesystem::is_regular_file(status))
        return base::unreachable_error(fmt::format("{} is not a file", path.string()),
                                       "give a GGUF file with --model FILE");
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return base::unreachable_error(fmt::format("{} cannot be read", path.string()),
                                       "check its permissions");
    std::array<char, 4> magic{};
    file.read(magic.data(), magic.size());
    if (std::string_view(magic.data(), static_cast<std::size_t>(file.gcount())) != "GGUF")
        return base::unreachable_error(fmt::format("{} is not a GGUF file", path.string()),
                                       "fullstop reads models in GGUF format; convert other "
                                       "formats with llama.cpp's convert_hf_to_gguf.py");
    return {};
}

std::string metadata(const llama_model& model, const std::string& key) {
    std::array<char, 128> text{};
    const int size = llama_model_meta_val_str(&model, key.c_str(), text.data(), text.size());
    return size < 0 ? std::string() : std::string(text.data());
}

/// Size of one head; models whose heads are not embedding / heads say so in their metadata.
std::int64_t head_size(const llama_model& model, const std::string& which) {
    const std::string given =
        metadata(model, metadata(model, "general.architecture") + ".attention." + which);
    if (!given.empty()) return std::stoll(given);
    return llama_model_n_embd(&model) / std::max(1, llama_model_n_head(&model));
}

base::Error no_model(const LoadOptions& options, const std::string& reason) {
    std::error_code ignored;
    const base::Bytes size{
        static_cast<std::int64_t>(std::filesystem::file_size(options.model, ignored))};
    return base::unreachable_error(
               fmt::format("{} could not be loaded: {}", options.model.string(), reason),
               reason.contains("mmap failed") || reason.contains("llocate")
                   ? fmt::format("its weights need {}, and so much memory could not be had: free "
                                 "some, or use a smaller model or quantisation",
                                 in_mib(size))
                   : "the file may be cut short, damaged, or of an architecture this build does "
                     "not know: compare its size and checksum with the source")
        .error();
}

/// Cells of the KV cache and the sequence ids they are for.
struct Cells {
    std::int64_t sequences, cells;
};
Cells cells_of(const KvShape& shape, const LoadOptions& options) {
    const bool unified = options.layout == KvLayout::kUnified;
    // A lone answer is padded with a row in a second sequence, so there are always two; in the
    // shared pool what ended has one, too.
    const std::int64_t sequences =
        unified ? options.max_sequences + 2 : std::max(2, options.max_sequences);
    return {.sequences = sequences,
            .cells = unified ? rounded_up(shape.pool.count + kPadCells)
                             : shape.window.count * sequences};
}

bool forward(float done, void* progress) {
    (*static_cast<const std::function<void(double)>*>(progress))(static_cast<double>(done));
    return true;
}

}  // namespace

int default_threads() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const int cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return std::max(1, cpus - 1);
}

base::Result<Model> open_model(const LoadOptions& options, Reading reading,
                               std::int64_t gpu_layers) {
    if (auto checked = check_file(options.model); !checked) return std::unexpected(checked.error());
    const ErrorCollector errors;
    llama_backend_init();
    llama_model_params params = llama_model_default_params();
    std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
    params.n_gpu_layers = static_cast<std::int32_t>(gpu_layers);
    if (gpu_layers == 0)
        params.devices =
            no_devices.data();  // else large batches would be computed there all the same
    if (reading == Reading::kOutline) {
        params.no_alloc = true;
        params.load_mode = LLAMA_LOAD_MODE_NONE;
    } else if (options.progress) {
        params.progress_callback = forward;
        params.progress_callback_user_data =
            const_cast<std::function<void(double)>*>(&options.progress);
    }
    Model model(llama_model_load_from_file(options.model.c_str(), params));
    if (!model) return std::unexpected(no_model(options, errors.text()));
    if (!llama_model_has_decoder(model.get()) || llama_model_has_encoder(model.get()) ||
        llama_model_is_recurrent(model.get()) || llama_model_is_hybrid(model.get()))
        return base::unreachable_error(
            fmt::format("{} is not a plain decoder with attention in every layer",
                        options.model.string()),
            "encoders, recurrent and hybrid models are not served: their memory does not grow "
            "token by token, so its accounting would not be true");
    return model;
}

KvLayout layout_of(const llama_model& model, const LoadOptions& options) {
    if (options.layout) return *options.layout;
    const std::int64_t window =
        std::min<std::int64_t>(options.auto_window.count, llama_model_n_ctx_train(&model));
    return options.kv_tokens && options.kv_tokens->count < window * options.max_sequences
               ? KvLayout::kUnified
               : KvLayout::kStreams;
}

base::Result<KvShape> shape_of(const llama_model& model, const LoadOptions& options) {
    const std::int64_t trained = llama_model_n_ctx_train(&model);
    const base::Tokens automatic{std::min(options.auto_window.count, trained) *
                                 options.max_sequences};
    const base::Tokens pool = options.kv_tokens.value_or(automatic);
    if (options.layout == KvLayout::kUnified) {
        if (pool.count < kWindowStep)
            return base::usage_error(fmt::format("--kv-tokens {} is too small", pool.count),
                                     fmt::format("give at least {}", kWindowStep));
        const std::int64_t usable = std::min(pool.count, rounded_up(pool.count) - kPadCells);
        const std::int64_t whole = usable / engine::kBlockTokens.count * engine::kBlockTokens.count;
        return KvShape{.window = {std::min(whole, trained)}, .pool = {whole}};
    }
    const std::int64_t window =
        std::min(pool.count / options.max_sequences, trained) / kWindowStep * kWindowStep;
    if (window == 0)
        return base::usage_error(
            fmt::format("--kv-tokens {} leaves {} tokens for each of {} sequences", pool.count,
                        pool.count / options.max_sequences, options.max_sequences),
            fmt::format("a window has at least {} tokens: give --kv-tokens {}, fewer "
                        "--max-sequences, or --kv-layout unified",
                        kWindowStep, kWindowStep * options.max_sequences));
    return KvShape{.window = {window}, .pool = {window * options.max_sequences}};
}

base::Bytes kv_bytes_per_token(const llama_model& model, KvType type) {
    const std::int64_t heads = llama_model_n_head_kv(&model);
    const auto row = [&](const std::string& which) {
        return static_cast<std::int64_t>(
            ggml_row_size(type_of(type), heads * head_size(model, which)));
    };
    return base::Bytes{(row("key_length") + row("value_length")) * llama_model_n_layer(&model)};
}

base::Result<Placement> place(const llama_model& model, const KvShape& shape,
                              const LoadOptions& options) {
    const MemoryNeed need{.weights = {static_cast<std::int64_t>(llama_model_size(&model))},
                          .kv_tokens = {cells_of(shape, options).cells},
                          .kv_bytes_per_token = kv_bytes_per_token(model, options.kv_type),
                          .f16 = options.kv_type == KvType::kF16};
    auto placement =
        place_layers(options.gpu_layers, llama_model_n_layer(&model) + 1, need, gpu_devices());
    if (!placement) return placement;
    const auto available = available_memory();  // absent: nobody knows; libllama will say
    if (!available) return placement;
    if (auto fits = check_fits(options.model.string(), need_of_cpu(need, *placement), *available);
        !fits)
        return std::unexpected(fits.error());
    return placement;
}

base::Result<Context> make_context(llama_model& model, const KvShape& shape,
                                   const LoadOptions& options, const Placement& placement) {
    const auto [sequences, cells] = cells_of(shape, options);
    const ErrorCollector errors;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(cells);
    params.n_batch = params.n_ubatch = kBatchRows;
    params.n_seq_max = static_cast<std::uint32_t>(sequences);
    params.n_outputs_max = static_cast<std::uint32_t>(2 * sequences + 2);
    params.n_outputs_max_per_seq = 2;
    params.n_threads = params.n_threads_batch = options.threads;
    params.type_k = params.type_v = type_of(options.kv_type);
    // Quantised values need flash attention; with F16 on a CPU it is the slower way by half.
    params.flash_attn_type = options.kv_type == KvType::kQ8_0 ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                             : placement.on_gpu > 0           ? LLAMA_FLASH_ATTN_TYPE_AUTO
                                                              : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.kv_unified = options.layout == KvLayout::kUnified;
    Context context(llama_init_from_model(&model, params));
    if (!context)
        return base::unreachable_error(
            fmt::format("no context for {} ({} of KV): {}", options.model.string(),
                        in_mib(kv_bytes_per_token(model, options.kv_type) * cells), errors.text()),
            "if memory is short, give fewer --kv-tokens; if the model refuses q8_0, give --kv-type "
            "f16");
    return context;
}

}  // namespace fullstop::adapters::llama
