// The forecast is the past-future idea (arXiv 2507.10150) with one quantile: lengths of answers that ended lately, given
// that they came to more than this one has by now.
#include "engine/admission.h"

#include <algorithm>
#include <array>
#include <vector>

#include "engine/limits.h"

namespace fullstop::engine {
namespace {

constexpr std::array<std::string_view, 3> kWords = {"reserve", "forecast", "eager"};
/// Nine of ten answers stay within their forecast; the tenth may cost somebody a pause.
constexpr double kQuantile = 0.9;

}  // namespace

std::string_view to_string(AdmissionMode mode) { return kWords[static_cast<std::size_t>(mode)]; }

std::optional<AdmissionMode> parse_admission(std::string_view word) {
    for (std::size_t i = 0; i < kWords.size(); ++i)
        if (kWords[i] == word) return static_cast<AdmissionMode>(i);
    return std::nullopt;
}

base::Tokens Admission::footprint(const Sequence& sequence) const {
    const base::Tokens worst = sequence.worst_case();
    if (mode_ == AdmissionMode::kReserve || sequence.pauses > 0) return worst;
    const base::Tokens next = sequence.length() + base::Tokens{1};
    if (mode_ == AdmissionMode::kEager) return std::min(worst, next);
    const auto output = forecast(sequence.output());
    return output ? std::min(worst, std::max(next, sequence.prompt + *output)) : worst;
}

void Admission::ended(base::Tokens output) {
    lately_.push_back(output);
    if (lately_.size() > kForecastAnswers) lately_.pop_front();
}

std::optional<base::Tokens> Admission::forecast(base::Tokens produced) const {
    std::vector<base::Tokens> longer;
    std::ranges::copy_if(lately_, std::back_inserter(longer), [&](base::Tokens output) { return output > produced; });
    if (longer.empty()) return std::nullopt;
    const auto at = longer.begin() + static_cast<std::ptrdiff_t>(kQuantile * static_cast<double>(longer.size() - 1));
    std::ranges::nth_element(longer, at);
    return *at;
}

}  // namespace fullstop::engine
