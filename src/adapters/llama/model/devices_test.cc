// Layers go where there is room for them, and asking for more is refused with what would do.
#include "adapters/llama/model/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullstop::adapters::llama {
namespace {

using base::Bytes;
using base::Tokens;
using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
/// 100 MiB a layer with its KV: 31 layers, 2480 + 620 MiB; a margin of 155.
const MemoryNeed kNeed{.weights = Bytes{2480 * kMiB},
                       .kv_tokens = Tokens{6200},
                       .kv_bytes_per_token = Bytes{kMiB / 10}};
constexpr std::int64_t kLayers = 31;

std::vector<Device> gpu(std::int64_t mib) {
    return {{.name = "GPU0", .description = "a card", .free = Bytes{mib * kMiB}}};
}

TEST(Devices, WithoutAGpuTheCpuDoesItAndAskingForOneIsAnError) {
    for (const auto asked : {std::optional<std::int64_t>(), std::optional<std::int64_t>(0)}) {
        const auto placed = place_layers(asked, kLayers, kNeed, {}).value();
        EXPECT_EQ(placed.on_gpu, 0);
        EXPECT_EQ(placed.device, "CPU");
        EXPECT_EQ(need_of_cpu(kNeed, placed).all(), kNeed.all());
    }
    const auto refused = place_layers(10, kLayers, kNeed, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, base::ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("--gpu-layers 10: there is no GPU"));
    EXPECT_THAT(refused.error().hint, HasSubstr("./setup --gpu"));
}

TEST(Devices, AutoTakesWhatFitsAndTheCpuTheRest) {
    const auto all = place_layers(std::nullopt, kLayers, kNeed, gpu(4000)).value();
    EXPECT_EQ(all.on_gpu, kLayers);
    EXPECT_EQ(all.device, "all layers on GPU0 (a card)");
    EXPECT_EQ(need_of_cpu(kNeed, all).weights, Bytes{0});
    const auto some = place_layers(std::nullopt, kLayers, kNeed, gpu(1160)).value();
    EXPECT_EQ(some.on_gpu, 10) << "1005 MiB beside the margin";
    EXPECT_EQ(some.device, "10 of 31 layers on GPU0 (a card)");
    EXPECT_NEAR(static_cast<double>(need_of_cpu(kNeed, some).weights.count),
                2480.0 * kMiB * 21 / 31, kMiB);
    EXPECT_EQ(place_layers(std::nullopt, kLayers, kNeed, gpu(100)).value().on_gpu, 0)
        << "not even the margin";
    auto two = gpu(700);
    two.push_back({.name = "GPU1", .description = "another", .free = Bytes{700 * kMiB}});
    EXPECT_EQ(place_layers(std::nullopt, kLayers, kNeed, two).value().device,
              "10 of 31 layers on GPU0 (a card), GPU1 (another)");
}

TEST(Devices, MoreThanFitsIsRefusedAndMoreThanThereAreIsAll) {
    const auto refused = place_layers(20, kLayers, kNeed, gpu(1160));
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().hint, HasSubstr("--gpu-layers 10"));
    EXPECT_EQ(place_layers(99, kLayers, kNeed, gpu(4000)).value().on_gpu, kLayers);
    EXPECT_EQ(place_layers(0, kLayers, kNeed, gpu(4000)).value().device, "CPU");
}

}  // namespace
}  // namespace fullstop::adapters::llama
