// Units as types: tokens, bytes and KV blocks cannot be mixed up, and cost nothing at run time.
#pragma once

#include <compare>
#include <cstdint>

namespace fullstop::base {

/// A signed count of one thing. Same-unit arithmetic only; `count` leaves the type on purpose.
template <class Tag>
struct Quantity {
    std::int64_t count = 0;

    constexpr auto operator<=>(const Quantity&) const = default;
    constexpr Quantity& operator+=(Quantity other) { return count += other.count, *this; }
    constexpr Quantity& operator-=(Quantity other) { return count -= other.count, *this; }
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.count + b.count}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.count - b.count}; }
    friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.count * n}; }
};

using Tokens = Quantity<struct TokensTag>;
using Bytes = Quantity<struct BytesTag>;
using Blocks = Quantity<struct BlocksTag>;  ///< KV blocks of a paged cache

/// Blocks of `size` tokens that hold `tokens` (rounded up).
constexpr Blocks blocks_for(Tokens tokens, Tokens size) {
    return {(tokens.count + size.count - 1) / size.count};
}

}  // namespace fullstop::base
