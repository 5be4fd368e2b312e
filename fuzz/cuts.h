// A fuzzer's input as bytes that come in pieces: its first byte sets a stride pattern, the rest is
// what came. A reader that is sound does the same whatever the pieces are, so each target reads
// twice, at once and in pieces, and compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fullstop::fuzz {

struct Input {
    std::uint8_t choice = 0;  ///< for the target's own use: dialect, way of ending
    std::uint32_t pattern = 1;
    std::string_view bytes;

    Input(const std::uint8_t* data, std::size_t size) {
        if (size < 2) return;
        choice = data[0];
        pattern = data[1] + 1U;
        bytes = {reinterpret_cast<const char*>(data) + 2, size - 2};
    }
};

/// Calls `take` with `bytes` in pieces of 1 to about 60 bytes, until it returns false.
template <class Take>
void in_pieces(std::string_view bytes, std::uint32_t pattern, const Take& take) {
    while (!bytes.empty()) {
        pattern = pattern * 1664525U + 1013904223U;
        const std::size_t count = pattern % 257 < 128 ? 1 : 1 + (pattern >> 16) % 60;
        const std::string_view piece = bytes.substr(0, count);
        bytes.remove_prefix(piece.size());
        if (!take(piece)) return;
    }
}

/// Ends the run with a finding. KNOWN in the environment names those to look past, each followed by
/// a ';'.
inline void require(bool holds, const char* what) {
    if (holds) return;
    if (const char* known = std::getenv("KNOWN");
        known != nullptr && std::strstr(known, what) != nullptr)
        return;
    std::fprintf(stderr, "finding: %s\n", what);
    std::abort();
}

}  // namespace fullstop::fuzz
