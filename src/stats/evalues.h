// Tests that may be looked at after every answer. An e-value is the wealth of a bettor who starts
// with 1 and bets against "nothing is wrong": if nothing is wrong, the chance that the wealth ever
// reaches 1/alpha is at most alpha (Ville 1939). So one may look, stop or go on at any moment.
//
// All mixtures are of fixed bets with fixed weights (method of mixtures, Darling and Robbins 1968).
#pragma once

#include <cstdint>
#include <span>

#include "stats/tests_of_rates.h"

namespace fullstop::stats {

/// Against "at most one answer in a hundred is lost": the wealth after `lost.events` events in
/// `lost.total` answers.
double rate_evalue(Count lost);

/// The largest rate_evalue() over the answers in their planned order; `lost[i]` is 1
/// when answer i is an event, else 0.
double highest_rate_evalue(std::span<const char> lost);

/// Against "the loaded one of a pair is lost no more often than the one alone" (Turner, Ly and
/// Grunwald, arXiv:2106.02693): after `pairs` pairs, `alone` and `loaded` of which were lost.
double pair_evalue(std::int64_t alone, std::int64_t loaded, std::int64_t pairs);

/// Upper 95 % bound on the rate of `lost`, valid at every moment; 1 when there is no answer.
double rate_bound(Count lost);

/// Scores in [-1, 1] that change their sign when the two answers of a pair are swapped: against
/// "which of the two was alone does not matter". The wealth at its highest, in the order given.
double highest_score_evalue(std::span<const double> scores);

/// Of answers that differ from their baseline, those that stopped first on the common path: against
/// "at most one in ten" (a flipped end-of-sequence token looks just so).
double flip_evalue(Count stopped_first);

}  // namespace fullstop::stats
