// How long the loop would stand still for one event, in time of the processor, which no other
// program's work lengthens.
#pragma once

#include <ctime>

#include "cuts.h"

namespace fullstop::fuzz {

/// 50 ms, and five times as much because sanitizers slow everything down. On a slow machine nothing
/// is near it either: an event is to take no more than 20 ms.
inline constexpr double kLongestEventMs = 250;

class Watch {
public:
    explicit Watch(const char* what) : what_(what), began_(now_ms()) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
        const double took = now_ms() - began_;
        if (took > kLongestEventMs) std::fprintf(stderr, "%s took %.0f ms\n", what_, took);
        require(took <= kLongestEventMs, "one event holds the loop too long");
    }

private:
    static double now_ms() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
    }
    const char* what_;
    double began_;
};

}  // namespace fullstop::fuzz
