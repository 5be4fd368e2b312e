// Which part of a model is computed on a GPU, decided before it is loaded from what the devices
// have free.
//
// Weights and KV are taken as spread evenly over the layers; what does not fit stays on the CPU. A
// build without GPU (./setup --gpu none, the default) has no devices, and the CPU computes
// everything. Tried with a software driver only: no real GPU was at hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/llama/model/memory.h"

namespace fullstop::adapters::llama {

struct Device {
    std::string name;         ///< "Vulkan0"
    std::string description;  ///< as the driver calls it
    base::Bytes free;
};
/// GPUs that this build and this machine's drivers offer.
std::vector<Device> gpu_devices();

/// Of `layers` (the output layer counts as one), those on `devices`.
struct Placement {
    std::int64_t on_gpu = 0, layers = 0;
    std::string device = "CPU";  ///< for people
};
/// `asked` absent: as many as fit. Errors: more are asked for than there are devices or memory for,
/// with what would do.
base::Result<Placement> place_layers(std::optional<std::int64_t> asked, std::int64_t layers,
                                     const MemoryNeed& need, const std::vector<Device>& devices);

/// What is left for the CPU's memory. KV of the output layer: none.
MemoryNeed need_of_cpu(const MemoryNeed& need, const Placement& placement);

}  // namespace fullstop::adapters::llama
