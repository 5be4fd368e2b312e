// engine::Backend over libllama: loading with clear errors, and batches whose results do not depend
// on the load.
//
// Load-invariant output: never fewer rows than give the same bits as many; in streams prompts are
// computed apart from next tokens, in the unified layout cells are kept in order (kv_cells.h). So
// each answer meets the same arithmetic alone, in company and after a pause, which is checked at
// the start. See backend.cc. Used by one thread, but for progress, which load() calls on its own
// thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/backend.h"

namespace fullstop::adapters::llama {

/// In streams, attention walks the cells of its own sequence only; in the unified layout all that
/// are used.
using engine::KvLayout, engine::KvType;

struct LoadOptions {
    std::filesystem::path model;
    KvType kv_type = KvType::kQ8_0;
    std::optional<KvLayout> layout = std::nullopt;  ///< absent: streams if `max_sequences` windows
                                                    ///< of `auto_window` fit, else unified
    std::optional<base::Tokens> kv_tokens =
        std::nullopt;                ///< all sequences together; absent: `auto_window` for each
    base::Tokens auto_window{4096};  ///< at most what the model was trained for
    int max_sequences = 8;
    int threads = 1;
    std::optional<std::int64_t> gpu_layers =
        std::nullopt;  ///< of all layers and the output, on GPUs; absent: as many as fit
    bool load_invariant =
        true;  ///< take care that company changes no bit, and check it; false: be faster
    std::string chat_template =
        {};  ///< a Jinja program instead of the model's own; "": the model's
    std::function<void(double)> progress = {};  ///< 0..1 while weights are read
};

/// Threads for computing when nothing else is said: every CPU this process may use but one, which
/// is left to clients on the same machine, and at least one.
int default_threads();

/// This build and this machine have a GPU.
bool has_gpu();

/// Errors say what to do: no such file, not GGUF, cut short, too little memory for weights and KV,
/// a window below libllama's least.
base::Result<std::unique_ptr<engine::Backend>> load(const LoadOptions& asked);

}  // namespace fullstop::adapters::llama
