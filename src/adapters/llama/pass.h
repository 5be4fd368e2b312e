// Rows of one llama_decode call, collected one by one. Internal to this folder.
#pragma once

#include <llama.h>

#include "adapters/llama/model/loading.h"
#include "base/assert.h"
#include "engine/backend.h"

namespace fullstop::adapters::llama {

/// Rows of one llama_decode call.
class Pass {
public:
    Pass() : batch_(llama_batch_init(kBatchRows, 0, 1)) {}
    ~Pass() { llama_batch_free(batch_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    void clear() { batch_.n_tokens = outputs_ = 0; }
    void add(engine::TokenId token, std::int64_t position, int place, bool output) {
        FULLSTOP_ASSERT(batch_.n_tokens < kBatchRows, "the engine's steps fit a batch");
        const int row = batch_.n_tokens++;
        batch_.token[row] = token;
        batch_.pos[row] = static_cast<llama_pos>(position);
        batch_.n_seq_id[row] = 1;
        batch_.seq_id[row][0] = place;
        batch_.logits[row] = output;
        outputs_ += output;
    }
    /// All tokens of `run`; `outputs` of its last rows.
    void add(const engine::Run& run, int place, std::size_t outputs) {
        for (std::size_t i = 0; i < run.tokens.size(); ++i)
            add(run.tokens[i], run.position.count + static_cast<std::int64_t>(i), place,
                i + outputs >= run.tokens.size());
    }
    int rows() const { return batch_.n_tokens; }
    int outputs() const { return outputs_; }
    const llama_batch& batch() const { return batch_; }

private:
    llama_batch batch_;
    int outputs_ = 0;
};

}  // namespace fullstop::adapters::llama
