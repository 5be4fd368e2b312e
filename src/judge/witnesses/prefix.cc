#include "judge/witnesses/prefix.h"

#include <algorithm>
#include <string>

namespace fullstop::judge {
namespace {

std::string whole(const answer::Record& record) { return record.reasoning + record.text; }

}  // namespace

bool repeats_itself(const std::vector<const answer::Record*>& baselines) {
    if (baselines.size() < 2) return false;
    const std::string first = whole(*baselines.front());
    return std::ranges::all_of(baselines,
                               [&](const answer::Record* other) { return whole(*other) == first; });
}

std::optional<bool> prefix_of_baseline(const answer::Record& record,
                                       const std::vector<const answer::Record*>& baselines) {
    if (!repeats_itself(baselines)) return std::nullopt;
    const std::string reference = whole(*baselines.front()), text = whole(record);
    return text.size() < reference.size() && reference.starts_with(text);
}

std::optional<std::size_t> divergence(const answer::Record& record,
                                      const std::vector<const answer::Record*>& baselines) {
    if (baselines.empty()) return std::nullopt;
    const std::string reference = whole(*baselines.front()), text = whole(record);
    const auto [a, b] = std::ranges::mismatch(reference, text);
    if (a == reference.end() || b == text.end()) return std::nullopt;
    return static_cast<std::size_t>(b - text.begin());
}

}  // namespace fullstop::judge
