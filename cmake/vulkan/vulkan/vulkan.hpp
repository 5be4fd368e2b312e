// Debian 12's Vulkan headers (1.3.239), and what the pinned ggml wants of newer ones: the structures of VK_EXT_layer_settings,
// which it fills in always and uses only where a validation layer was asked for. Found before the system's header of this name.
#pragma once

#include_next <vulkan/vulkan.hpp>

#if VK_HEADER_VERSION < 272
#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT : std::uint32_t { eBool32 = 0 };

struct LayerSettingEXT {
    const char* pLayerName;
    const char* pSettingName;
    LayerSettingTypeEXT type;
    std::uint32_t valueCount;
    const void* pValues;
};

/// Laid out as VkLayerSettingsCreateInfoEXT; a loader that does not know it passes over it.
struct LayerSettingsCreateInfoEXT {
    explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT>& settings)
        : settingCount(static_cast<std::uint32_t>(settings.size())), pSettings(settings.data()) {}
    std::uint32_t sType = 1000496000;
    const void* pNext = nullptr;
    std::uint32_t settingCount;
    const LayerSettingEXT* pSettings;
};

}  // namespace vk
#endif
