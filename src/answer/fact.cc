// The public words of provenance.
#include "answer/fact.h"

namespace fullstop::answer {

std::string_view to_string(Provenance provenance) {
    switch (provenance) {
        case Provenance::kMeasured: return "measured";
        case Provenance::kReported: return "reported";
        case Provenance::kDerived: return "derived";
        case Provenance::kUnavailable: return "unavailable";
    }
    return "unavailable";
}

std::optional<Provenance> parse_provenance(std::string_view word) {
    for (auto p : {Provenance::kMeasured, Provenance::kReported, Provenance::kDerived,
                   Provenance::kUnavailable})
        if (to_string(p) == word) return p;
    return std::nullopt;
}

}  // namespace fullstop::answer
