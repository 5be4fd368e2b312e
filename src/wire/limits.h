// How much of one response is kept or waited for, in one table with its reason and what happens at
// the limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fullstop::wire {

// name                                   value                         at the limit
/// Response head, 1xx heads and trailers included. Real ones are below 4 KiB.
///   reader overflows: error names the limit
inline constexpr std::size_t kMaxHeadBytes = 64 * 1024;
/// Chunk-size line with extensions. Real ones are below 10 bytes.
///   chunk framing counts as broken
inline constexpr std::size_t kMaxChunkLineBytes = 4 * 1024;
/// One SSE event, NDJSON line or JSON body. The longest real ones (logprobs) are below 1 MiB.
/// reader overflows
inline constexpr std::size_t kMaxEventBytes = 16 * 1024 * 1024;
/// Bytes kept of one answer for judging again; 400 tokens of llama-server are 120 kB.
///   capture marked truncated
inline constexpr std::size_t kMaxCaptureBytes = 4 * 1024 * 1024;
/// Text, reasoning and tool calls of one answer together: a million tokens.
///   no more is kept; a probe ends the answer
inline constexpr std::size_t kMaxTextBytes = 4 * 1024 * 1024;
/// Events with text of one answer, each with its gap; 128k tokens are the longest outputs sold.
///   no more is kept; a probe ends the answer
inline constexpr std::size_t kMaxTextEvents = 256 * 1024;
/// Bytes without an event that brought text (comments, heads, trailers), one event of the largest
/// size among them.
///   a probe ends the answer
inline constexpr std::int64_t kMaxQuietBytes = 2 * std::int64_t{kMaxEventBytes};
/// One whole response; 128k tokens with 20 logprobs each are 400 MB.
///   a probe ends the answer
inline constexpr std::int64_t kMaxAnswerBytes = 512 * 1024 * 1024;
/// Reads of which a capture knows the moment; one for each token of the longest output. capture
/// marked truncated
inline constexpr std::size_t kMaxArrivals = 256 * 1024;
/// White space before an answer in which a `<think>` is still waited for.
///   the answer has begun
inline constexpr std::size_t kMaxLeadingSpace = 4 * 1024;
/// Finish words, ids, terminal fields: words, not texts. Real ones are below 100 bytes.
///   cut there
inline constexpr std::size_t kMaxWordBytes = 2 * 1024;
/// Start of a body that is no answer (an HTML page), or of an error of unknown shape.
///   cut there
inline constexpr std::size_t kMaxErrorTextBytes = 2 * 1024;
/// Nesting of arrays and objects in one event. Real ones are below 12.
///   deeper values are not read
inline constexpr int kMaxJsonDepth = 48;
/// Values of one event, each 48 bytes and looked at some dozen times; 128 whole choices are below
/// 4000.
///   the event is not read
inline constexpr std::size_t kMaxJsonNodes = 64 * 1024;
/// An event, or a string in one, that has to be repaired (bytes that are no UTF-8, half
/// surrogates): byte by byte.
///   it is not read
inline constexpr std::size_t kMaxRepairedBytes = 1024 * 1024;
/// Memory that reading keeps from event to event.
///   given back before the next event
inline constexpr std::size_t kMaxIdleJsonBytes = 1024 * 1024;
/// Choices (`n`) of one response told apart.
///   later ones count as unread events
inline constexpr std::size_t kMaxChoices = 128;
/// Errors kept of one response; a broken server may repeat one for each token.
///   later ones are dropped
inline constexpr std::size_t kMaxServerErrors = 16;

}  // namespace fullstop::wire
