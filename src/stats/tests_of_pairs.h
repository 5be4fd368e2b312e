// Did paired measurements move to one side? Sign-flip permutation test on the mean and the sign
// test, both two-sided. Nothing is assumed of the distribution but that, without an effect, each
// difference is as likely as its negative.
#pragma once

#include <cstdint>
#include <span>

namespace fullstop::stats {

/// 10 000 draws resolve p = 0.01 to +-0.002.
inline constexpr int kPermutationDraws = 10'000;

/// p-value of the mean of `differences` (log ratios) under random signs, `kPermutationDraws` draws
/// from `seed`; the observed arrangement counts as one draw, so p is never 0. The same input gives
/// the same bytes. 1 when empty.
double sign_flip(std::span<const double> differences, std::uint64_t seed);

/// Exact two-sided sign test; zeros are left out. 1 when nothing is left.
double sign_test(std::span<const double> differences);

}  // namespace fullstop::stats
