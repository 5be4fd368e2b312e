// A server's bytes: response heads, lengths, chunks, trailers, in any pieces.
#include <string>

#include "cuts.h"
#include "wire/http/http_framing.h"

namespace {

using fullstop::wire::HttpFraming;

struct Outcome {
    int status = 0;
    std::string body;
    bool complete = false, last_chunk = false, malformed = false, overflowed = false;
    std::uint64_t missing = 0;
    bool operator==(const Outcome&) const = default;
};

void read(HttpFraming& framing, std::string_view bytes, std::string& body) {
    while (!bytes.empty() && !framing.complete()) {
        const std::size_t before = bytes.size();
        const std::string_view piece = framing.next(bytes);
        body += piece;
        fullstop::fuzz::require(
            bytes.size() < before || !piece.empty() || framing.overflowed() || framing.malformed(),
            "no progress");
        if (framing.overflowed()) return;
    }
}

Outcome outcome(const HttpFraming& framing, std::string body) {
    return {.status = framing.head_complete() ? framing.head().status : 0,
            .body = std::move(body),
            .complete = framing.complete(),
            .last_chunk = framing.last_chunk_seen(),
            .malformed = framing.malformed(),
            .overflowed = framing.overflowed(),
            .missing = framing.missing_bytes()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fullstop::fuzz::Input input(data, size);
    HttpFraming whole, pieces;
    std::string once, cut;
    read(whole, input.bytes, once);
    fullstop::fuzz::in_pieces(input.bytes, input.pattern, [&](std::string_view piece) {
        read(pieces, piece, cut);
        return !pieces.overflowed();
    });
    const Outcome a = outcome(whole, std::move(once)), b = outcome(pieces, std::move(cut));
    fullstop::fuzz::require(a == b, "a response's body depends on the pieces it comes in");
    fullstop::fuzz::require(
        !a.last_chunk || a.complete || a.overflowed || a.malformed || a.missing == 0,
        "a last chunk in the middle");
    return 0;
}
