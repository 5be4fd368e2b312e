// Every wait and size of the gateway, in one table with its reason and what happens at the limit.
// What the host bounds (request heads and bodies, a slow client's backlog, unsent bytes) stands in
// adapters/asio/limits.h, what one response may hold in wire/limits.h. Defaults of the policy are
// here too; docs/gateway.toml tells them to people.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace fullstop::gateway {

// name                                   value                         at the limit
/// Silence of the upstream, its head included. The longest honest pauses known are below half a
/// minute, but a long prefill behind a queue is silent too; common gateways cut at 60 s.
///   error object, gateway_idle_timeout
inline constexpr base::Duration kDefaultIdle = std::chrono::minutes(5);
/// How long running answers may go on after SIGTERM.
///   error object, gateway_deadline
inline constexpr base::Duration kDefaultDrain = std::chrono::seconds(30);
/// Common proxies cut a connection that is silent for 60 s; a third of that survives a lost one.
///   a comment is sent
inline constexpr base::Duration kDefaultHeartbeat = std::chrono::seconds(20);
/// Words of an upstream's error or of a broken connection that are repeated.
///   cut there
inline constexpr std::size_t kMaxDetailBytes = 300;
/// Of the bytes at which a fault of ours happened: enough to see what they are.
///   cut there
inline constexpr std::size_t kMaxFaultBytes = 200;

// A request
/// Tokens that one limit can mean: a hundred times the largest window known. Sums of them, answers
/// of one request times requests under way, stay far below 2^63.
///   counts as so many
inline constexpr std::int64_t kMostTokens = 1'000'000'000;
/// Answers that one request asks for; nobody asks for more.
///   counts as so many
inline constexpr std::int64_t kMostAnswers = 128;
/// What is set aside for requests under way cannot overflow.
static_assert(std::numeric_limits<std::int64_t>::max() / (2 * kMostTokens * kMostAnswers) >
                  1'000'000,
              "more requests than a host has connections");
/// JSON values of a body: a prompt of 256 k tokens as numbers. Reading them takes below 10 ms.
///   400
inline constexpr std::size_t kMaxRequestValues = std::size_t{1} << 18;
/// Nesting in it; schemas of tools have below 20 levels.
///   400
inline constexpr int kMaxRequestDepth = 100;
/// Name of a model; it stands in records and metrics.
///   cut there
inline constexpr std::size_t kMaxModelBytes = 256;

// The queue
/// Waiting requests: at 8 answers at once this is 16 turns, as long as people wait. 429 with
/// Retry-After
inline constexpr std::size_t kDefaultQueueRequests = 128;
/// Tokens that the waiting requests may come to: an hour of work at 300 tokens/s.
///   429 with Retry-After
inline constexpr std::int64_t kDefaultQueueTokens = 1'000'000;
/// Bodies of waiting requests in memory.
///   429 with Retry-After
inline constexpr std::size_t kMaxQueuedBytes = std::size_t{256} << 20;
/// A waiting request moves up one class after this, and is overdue one such time after it reached
/// the first.
inline constexpr base::Duration kDefaultAgeing = std::chrono::seconds(30);
/// Tokens that an upstream of unknown window is taken to make of one answer, for the queue's count
/// only.
inline constexpr std::int64_t kNominalWindow = 131'072;
/// Combinations of names in one metric; model names come from outside.
///   counted together as _OTHER
inline constexpr std::size_t kMaxMetricLabels = 64;
/// SDKs ignore a Retry-After above 60 s or give up on it.
///   announced as 60
inline constexpr base::Duration kMaxRetryAfter = std::chrono::seconds(60);
/// When memory for a large request is short: bodies under way go within seconds.
///   announced
inline constexpr base::Duration kMemoryRetryAfter = std::chrono::seconds(5);

// Upstreams
/// Bytes of text that make one token, before any answer has told: English has 4 to 4.5, code 3.
///   learned from usage
inline constexpr double kFirstTokensPerByte = 1.0 / 3;
inline constexpr double kLeastTokensPerByte = 0.1, kMostTokensPerByte = 2.0;
/// Tokens that a chat template adds to a request, and to each of its messages.
inline constexpr std::int64_t kTemplateTokens = 32, kMessageTokens = 8;
/// A picture's share of the prompt where nothing says how many tokens it takes.
inline constexpr std::int64_t kImageTokens = 1024;
/// Attempts of one request, each at another upstream, none after a byte of a response went on.
///   the failure is told
inline constexpr std::size_t kMaxAttempts = 3;
/// Failures in a row before the first byte until an upstream is left alone; then one request tries
/// it after the pause, which doubles up to the longest.
inline constexpr int kFailuresToOpen = 3;
inline constexpr base::Duration kFirstPause = std::chrono::seconds(2),
                                kLongestPause = std::chrono::seconds(60);
/// What an upstream said of its load counts this long; three missed readings.
///   own bookkeeping alone is used
inline constexpr base::Duration kFreshLoad = std::chrono::seconds(3);
/// Answers at once that an upstream of unknown size is taken to manage, for comparing loads only.
inline constexpr double kNominalSlots = 8;
/// How much busier (1: one whole upstream) the upstream of the same prefix or session may be and is
/// still chosen.
inline constexpr double kDefaultAffinity = 0.25;
/// An error that an upstream sends after the head was already given out (heartbeat).
///   the rest is not repeated
inline constexpr std::size_t kMaxLateErrorBytes = std::size_t{64} << 10;

/// Of an end that does not say how the answer ended, and what follows it, while the end is not
/// judged.
///   error object, gateway_rejected
inline constexpr std::size_t kMaxHeldEndBytes = std::size_t{1} << 20;

// Continuation
/// Text of an answer that may go on elsewhere; 250 000 tokens.
///   it is not continued
inline constexpr std::size_t kMaxContinuedBytes = std::size_t{1} << 20;
/// Of a request whose answer may go on elsewhere: it is read as a whole when it comes, in the loop
/// that serves all.
///   it is not continued
inline constexpr std::size_t kMaxContinuedRequestBytes = std::size_t{1} << 20;
/// Delivered text below which a server that repeats it cannot be told from one that happens to go
/// on with the same text.
inline constexpr std::size_t kLeastContinuedBytes = 32;
/// Of an event that has not ended.
///   it goes on as it comes, and is not continued
inline constexpr std::size_t kMaxHeldEventBytes = std::size_t{64} << 10;
/// Of a server that was asked for its prompt: delivered text and conversation with their escapes.
///   it is not continued there
inline constexpr std::size_t kMaxTemplateReplyBytes = std::size_t{8} << 20;

// Budgets
/// Steps in which a window of a budget moves on.
inline constexpr int kWindowSteps = 60;
/// How long a request waits for the store of shared budgets: a thousand times what it takes on one
/// network.
///   on_loss decides
inline constexpr base::Duration kDefaultStoreTimeout = std::chrono::milliseconds(500);
inline constexpr std::uint16_t kDefaultStorePort = 6379;
inline constexpr const char* kDefaultStorePrefix = "fullstop";
/// Of the keys' common prefix: it stands in each of them.
///   configuration error
inline constexpr std::size_t kMaxStorePrefix = 64;
/// Announced to a client that was refused because the store is away: as long as the longest pause
/// between attempts to reach it.
inline constexpr base::Duration kStoreRetryAfter = std::chrono::seconds(5);
/// A maximum that moves with load never goes below this; fewer tokens are no answer.
///   configuration error
inline constexpr std::int64_t kDefaultOutputFloor = 64;

}  // namespace fullstop::gateway
