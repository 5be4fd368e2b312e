// The even split is coarse: embeddings and output weigh more than a layer in small models. The
// margin covers that.
#include "adapters/llama/model/devices.h"

#include <fmt/format.h>
#include <ggml-backend.h>

#include <algorithm>
#include <utility>

#include "adapters/llama/backend.h"

namespace fullstop::adapters::llama {
namespace {

using base::Bytes;

std::string in_mib(Bytes bytes) { return fmt::format("{} MiB", bytes.count >> 20); }

/// Each device computes in memory of its own.
Bytes usable(const MemoryNeed& need, const std::vector<Device>& devices) {
    Bytes all;
    for (const Device& device : devices)
        all += Bytes{std::max<std::int64_t>(0, device.free.count - need.margin().count)};
    return all;
}

Bytes of_layers(const MemoryNeed& need, std::int64_t on_gpu, std::int64_t layers) {
    return {(need.weights + need.kv()).count / layers * on_gpu};
}

std::string words(const std::vector<Device>& devices, std::int64_t on_gpu, std::int64_t layers) {
    std::string text =
        on_gpu == layers ? "all layers on" : fmt::format("{} of {} layers on", on_gpu, layers);
    for (const Device& device : devices)
        text += fmt::format("{} {} ({})", &device == devices.data() ? "" : ",", device.name,
                            device.description);
    return text;
}

}  // namespace

std::vector<Device> gpu_devices() {
    std::vector<Device> devices;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        const auto type = ggml_backend_dev_type(device);
        if (type != GGML_BACKEND_DEVICE_TYPE_GPU && type != GGML_BACKEND_DEVICE_TYPE_IGPU) continue;
        std::size_t free = 0, total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        devices.push_back({.name = ggml_backend_dev_name(device),
                           .description = ggml_backend_dev_description(device),
                           .free = {static_cast<std::int64_t>(free)}});
    }
    return devices;
}

bool has_gpu() { return !gpu_devices().empty(); }

base::Result<Placement> place_layers(std::optional<std::int64_t> asked, std::int64_t layers,
                                     const MemoryNeed& need, const std::vector<Device>& devices) {
    if (asked.value_or(0) > 0 && devices.empty())
        return base::usage_error(
            fmt::format("--gpu-layers {}: there is no GPU that this build can use", *asked),
            "build with ./setup --gpu cuda, vulkan or hip, and check the driver; or give "
            "--gpu-layers auto or 0");
    const Bytes room = usable(need, devices);
    std::int64_t fit = 0;
    while (fit < layers && of_layers(need, fit + 1, layers) <= room) ++fit;
    const std::int64_t wanted = std::min(asked.value_or(devices.empty() ? 0 : fit), layers);
    if (wanted > fit)
        return base::unreachable_error(
            fmt::format("{} of {} layers need {} with their KV, and {} are free on the GPU beside "
                        "{} to compute with",
                        wanted, layers, in_mib(of_layers(need, wanted, layers)), in_mib(room),
                        in_mib(need.margin())),
            fmt::format("give --gpu-layers {} or auto, or fewer --kv-tokens", fit));
    if (wanted == 0) return Placement{.on_gpu = 0, .layers = layers};
    return Placement{.on_gpu = wanted, .layers = layers, .device = words(devices, wanted, layers)};
}

MemoryNeed need_of_cpu(const MemoryNeed& need, const Placement& placement) {
    MemoryNeed rest = need;
    if (placement.on_gpu == 0) return rest;
    const std::int64_t left = placement.layers - placement.on_gpu;
    rest.weights.count = need.weights.count / placement.layers * left;
    rest.kv_tokens.count = need.kv_tokens.count * left / placement.layers;
    return rest;
}

}  // namespace fullstop::adapters::llama
