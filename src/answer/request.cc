// The public words of the dialects.
#include "answer/request.h"

#include <array>

namespace fullstop::answer {
namespace {
constexpr std::array<std::string_view, 6> kApis = {"openai-chat",  "openai-completions", "ollama",
                                                   "llama-server", "koboldcpp",          "tgi"};
}

std::string_view to_string(Api api) { return kApis[static_cast<std::size_t>(api)]; }

std::optional<Api> parse_api(std::string_view word) {
    for (std::size_t i = 0; i < kApis.size(); ++i)
        if (kApis[i] == word) return static_cast<Api>(i);
    return std::nullopt;
}

}  // namespace fullstop::answer
