// Seeded randomness that gives the same numbers on every machine and library version.
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014); the distributions are ours because those
// of <random> differ between standard libraries, and a seed in a report must repeat the same bytes
// anywhere.
#pragma once

#include <cmath>
#include <cstdint>

namespace fullstop::base {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    /// Uniform in [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    /// Uniform in [0, n), n > 0. The bias of the multiply-shift is below 2^-32 for n < 2^32.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
    bool chance(double p) { return uniform() < p; }
    /// Standard normal, Box-Muller.
    double normal() {
        return std::sqrt(-2.0 * std::log(1.0 - uniform())) *
               std::cos(6.283185307179586 * uniform());
    }
    /// Exponential with the given mean.
    double exponential(double mean) { return -mean * std::log(1.0 - uniform()); }
    /// An independent stream for a named part of an experiment.
    Random fork(std::uint64_t label) { return Random(next() ^ (label * 0xD1B54A32D192ED03ULL)); }

private:
    std::uint64_t state_;
};

}  // namespace fullstop::base
