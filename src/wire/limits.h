// How much of one response is kept or waited for, in one table with its reason and what happens at the limit.
#pragma once

#include <cstddef>

namespace fullstop::wire {

// name                                   value                         at the limit
/// Response head, 1xx heads and trailers included. Real ones are below 4 KiB.         reader overflows: error names the limit
inline constexpr std::size_t kMaxHeadBytes = 64 * 1024;
/// Chunk-size line with extensions. Real ones are below 10 bytes.                      chunk framing counts as broken
inline constexpr std::size_t kMaxChunkLineBytes = 4 * 1024;
/// One SSE event, NDJSON line or JSON body. The longest real ones (logprobs) are below 1 MiB. reader overflows
inline constexpr std::size_t kMaxEventBytes = 16 * 1024 * 1024;
/// Bytes kept of one answer for judging again; 400 tokens of llama-server are 120 kB.  capture marked truncated
inline constexpr std::size_t kMaxCaptureBytes = 4 * 1024 * 1024;
/// Start of a body that is no answer (an HTML page), or of an error of unknown shape.  cut there
inline constexpr std::size_t kMaxErrorTextBytes = 2 * 1024;
/// Nesting of arrays and objects in one event. Real ones are below 12.                 deeper values are not read
inline constexpr int kMaxJsonDepth = 48;
/// Choices (`n`) of one response told apart.                                           later ones count as unread events
inline constexpr std::size_t kMaxChoices = 128;
/// Errors kept of one response; a broken server may repeat one for each token.         later ones are dropped
inline constexpr std::size_t kMaxServerErrors = 16;

}  // namespace fullstop::wire
