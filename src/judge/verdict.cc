// The six words a run can end with.
#include "judge/verdict.h"

#include <array>

namespace fullstop::judge {
namespace {

constexpr std::array<std::string_view, 6> kWords = {
    "unaffected", "latency_only", "sampling_variance", "inconclusive", "policy", "serving_defect"};

constexpr std::array<std::string_view, 3> kLoad = {"open", "likely", "proven"};

}  // namespace

std::string_view to_string(Verdict verdict) { return kWords[static_cast<std::size_t>(verdict)]; }

std::optional<Verdict> parse_verdict(std::string_view word) {
    for (std::size_t i = 0; i < kWords.size(); ++i)
        if (kWords[i] == word) return static_cast<Verdict>(i);
    return std::nullopt;
}

std::string_view to_string(LoadBrings load) { return kLoad[static_cast<std::size_t>(load)]; }

std::optional<LoadBrings> parse_load(std::string_view word) {
    for (std::size_t i = 0; i < kLoad.size(); ++i)
        if (kLoad[i] == word) return static_cast<LoadBrings>(i);
    return std::nullopt;
}

}  // namespace fullstop::judge
