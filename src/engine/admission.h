// How much KV memory a sequence must be promised before it starts.
//
// reserve: its worst case, so nobody is ever paused. forecast: what answers of its age came to lately. eager: what it has
// now. Whoever was paused once for memory gets its worst case, in every mode: no answer is paused twice.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "engine/sequence.h"

namespace fullstop::engine {

enum class AdmissionMode { kReserve, kForecast, kEager };

std::string_view to_string(AdmissionMode);
/// reserve, forecast, eager.
std::optional<AdmissionMode> parse_admission(std::string_view word);

class Admission {
public:
    explicit Admission(AdmissionMode mode) : mode_(mode) {}

    /// Tokens in KV, its present ones included; at most its worst case.
    base::Tokens footprint(const Sequence& sequence) const;
    /// An answer ended with this many output tokens.
    void ended(base::Tokens output);

private:
    /// Output tokens that an answer which has `produced` will come to: a high quantile of those that came to more. Absent:
    /// none did.
    std::optional<base::Tokens> forecast(base::Tokens produced) const;

    AdmissionMode mode_;
    std::deque<base::Tokens> lately_;  ///< output lengths, newest last
};

}  // namespace fullstop::engine
