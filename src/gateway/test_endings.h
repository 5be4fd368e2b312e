// For tests only: answers of test_dialects.h in each framing, with each end, through the gateway;
// and whether a client would take what it received for a whole answer. "Whole" is judged from the
// client's bytes alone, by rules that are written here and not taken from the gateway.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/test_dialects.h"
#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {

enum class Framed { kChunked, kLength, kClose };

/// Head and the pieces as they go over the wire. `whole_length`: what content-length announces.
inline std::string head_of(const Dialect& dialect, Framed framed, std::size_t whole_length) {
    wire::Headers headers = {{"Content-Type", dialect.type}, {"Server", "scripted"}};
    if (framed == Framed::kChunked) headers.emplace_back("Transfer-Encoding", "chunked");
    if (framed == Framed::kLength)
        headers.emplace_back("Content-Length", std::to_string(whole_length));
    return wire::response_head(200, headers);
}

inline std::string joined(const std::vector<std::string>& pieces, Framed framed) {
    std::string out;
    for (const auto& piece : pieces) out += framed == Framed::kChunked ? wire::chunk(piece) : piece;
    return out;
}

inline std::string plain(const std::vector<std::string>& pieces) {
    return joined(pieces, Framed::kClose);
}

inline std::vector<std::string> operator+(std::vector<std::string> a,
                                          const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

enum class After { kFin, kRst, kNothing };

inline void end_with(Bench& bench, After after) {
    if (after == After::kFin) bench.close(net::CloseKind::kFin);
    if (after == After::kRst) bench.close(net::CloseKind::kRst);
    if (after == After::kNothing) bench.silence();
}

inline Seen relay(const Dialect& dialect, std::string_view upstream, After after,
                  std::size_t cut_every = 0) {
    Bench bench;
    bench.request(bench.post(dialect.path));
    bench.connected();
    if (cut_every == 0) cut_every = std::max<std::size_t>(1, upstream.size());
    for (std::size_t from = 0; from < upstream.size(); from += cut_every)
        bench.receive(upstream.substr(from, cut_every));
    end_with(bench, after);
    EXPECT_TRUE(bench.seen.closed) << dialect.name << ": the client still waits";
    EXPECT_EQ(bench.connects, 1) << "a retry";
    EXPECT_FALSE(bench.timer) << "a timer outlives its exchange";
    EXPECT_EQ(bench.gateway.running(), 0U);
    return bench.seen;
}

/// Would a client of this dialect take the bytes for a whole answer? Any one sign of an orderly end
/// is enough.
inline bool looks_whole(const Dialect& dialect, const Seen& seen) {
    const answer::Record record = seen.record();
    if (record.status != 200 || record.end.error) return false;
    if (dialect.stream)
        return record.end.transport == answer::Transport::kClean || record.end.terminator ||
               seen.kept;
    return record.end.transport == answer::Transport::kClean || seen.kept;
}

/// Of the gateway's own error object, wherever it stands; "" when there is none.
inline std::string cause_in_band(const Seen& seen) {
    const std::string body = seen.body(), mark = "\"stop\":{\"cause\":\"";
    const auto at = body.find(mark);
    return at == std::string::npos
               ? ""
               : body.substr(at + mark.size(), body.find('"', at + mark.size()) - at - mark.size());
}

}  // namespace fullstop::gateway
