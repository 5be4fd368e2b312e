// Opening a model file and making its context. Internal to this folder: the only header here that
// shows libllama's types.
#pragma once

#include <llama.h>

#include <memory>

#include "adapters/llama/backend.h"
#include "adapters/llama/model/devices.h"

namespace fullstop::adapters::llama {

struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextDeleter {
    void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, ModelDeleter>;
using Context = std::unique_ptr<llama_context, ContextDeleter>;

/// The window of one sequence and the pool of all, in tokens that may really be used.
struct KvShape {
    base::Tokens window, pool;
};

/// kOutline: sizes and vocabulary, and no weights; it takes no memory and cannot compute.
enum class Reading { kOutline, kWhole };
/// `gpu_layers`: computed on GPUs, for kWhole; 0: none is touched.
base::Result<Model> open_model(const LoadOptions& options, Reading reading,
                               std::int64_t gpu_layers = 0);
/// The one that was asked for, or the one that suits: with streams nobody is ever paused for
/// memory.
KvLayout layout_of(const llama_model& model, const LoadOptions& options);
/// From here on `options.layout` is set.
base::Result<KvShape> shape_of(const llama_model& model, const LoadOptions& options);
/// KV of one token over all layers: layers x (key row + value row); a row is KV heads x head size
/// in the KV type.
base::Bytes kv_bytes_per_token(const llama_model& model, KvType type);
/// What is computed where. Errors: weights, KV and a margin exceed the memory that may be had
/// (memory.h, devices.h). An outline of the model is enough.
base::Result<Placement> place(const llama_model& model, const KvShape& shape,
                              const LoadOptions& options);
base::Result<Context> make_context(llama_model& model, const KvShape& shape,
                                   const LoadOptions& options, const Placement& placement);

/// Rows of one call: the engine's largest step and its padding.
inline constexpr int kBatchRows = 512;

}  // namespace fullstop::adapters::llama
