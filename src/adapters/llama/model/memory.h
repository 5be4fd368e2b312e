// Whether a model and its KV pool fit the memory that this process may have, asked before a byte of
// weights is read.
//
// What may be had is the least of three: what the kernel says is available, what each control group
// above us has left (containers), and the limit on address space. Weights are mapped from their
// file, so a model that is larger would load all the same, and read what does not fit from disk
// again for every token: seconds each, which looks as if the server hung. So it is refused, and
// there is no flag that insists.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace fullstop::adapters::llama {

struct MemoryLimit {
    base::Bytes bytes;
    std::string of;  ///< what sets it: "this machine", "the control group /x", "the limit on
                     ///< address space (ulimit -v)"
};

/// Absent where the system says nothing. Files are read below `root`, which tests plant.
std::optional<MemoryLimit> available_memory(const std::filesystem::path& root = "/");

/// What a model asks for.
struct MemoryNeed {
    base::Bytes weights;  ///< of all files of the model
    base::Tokens kv_tokens;
    base::Bytes kv_bytes_per_token;
    bool f16 = false;  ///< q8_0 would need half of that

    base::Bytes kv() const { return kv_bytes_per_token * kv_tokens.count; }
    base::Bytes margin() const;  ///< for what is computed on the way and for the program itself
    base::Bytes all() const { return weights + kv() + margin(); }
};

/// Errors: it does not fit, with the numbers and what would.
base::Result<void> check_fits(const std::string& model, const MemoryNeed& need,
                              const MemoryLimit& limit);

}  // namespace fullstop::adapters::llama
