// A fact: a value together with where it came from. A value that cannot be had says why; it is
// never a silent zero.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fullstop::answer {

enum class Provenance {
    kMeasured,     ///< by us, on this machine
    kReported,     ///< by the server, in its own words
    kDerived,      ///< by a formula; `how` names it
    kUnavailable,  ///< not to be had; `how` gives the reason
};

std::string_view to_string(Provenance);
std::optional<Provenance> parse_provenance(std::string_view);

/// `value` is present exactly when `from` is not kUnavailable. `how` names the field, header,
/// metric or formula, or why there is no value.
template <class T>
struct Fact {
    std::optional<T> value;
    Provenance from = Provenance::kUnavailable;
    std::string how = "not recorded";

    static Fact measured(T v, std::string how) {
        return {std::move(v), Provenance::kMeasured, std::move(how)};
    }
    static Fact reported(T v, std::string how) {
        return {std::move(v), Provenance::kReported, std::move(how)};
    }
    static Fact derived(T v, std::string how) {
        return {std::move(v), Provenance::kDerived, std::move(how)};
    }
    static Fact unavailable(std::string why) {
        return {std::nullopt, Provenance::kUnavailable, std::move(why)};
    }

    explicit operator bool() const { return value.has_value(); }
    const T& operator*() const { return *value; }
    bool operator==(const Fact&) const = default;
};

}  // namespace fullstop::answer
