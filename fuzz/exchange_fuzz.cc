// A whole exchange of the gateway: a server's bytes and end in any pieces. What the client gets is
// well framed, is the same for any pieces, and looks whole only when the server's own framing ended
// or its connection was the frame.
#include <string>
#include <variant>

#include "cuts.h"
#include "gateway/gateway.h"
#include "wire/http/http_framing.h"

namespace {

using namespace fullstop;

struct Client {
    std::string raw;
    bool closed = false, kept = false, reset = false;
    bool upstream_kept = false;
    net::ConnectionId connection = 0;  ///< to the server

    void take(const gateway::Actions& actions) {
        for (const auto& action : actions.client) {
            if (const auto* send = std::get_if<net::ServiceSend>(&action)) {
                fuzz::require(!closed, "bytes after the close");
                raw += send->bytes;
            } else if (const auto* end = std::get_if<net::ServiceClose>(&action)) {
                fuzz::require(!closed, "closed twice");
                closed = true;
                kept = end->keep_alive;
                reset = end->kind == net::CloseKind::kRst;
            }
        }
        for (const auto& action : actions.upstream) {
            if (const auto* connect = std::get_if<net::Connect>(&action)) connection = connect->id;
            if (const auto* close = std::get_if<net::Close>(&action)) upstream_kept = close->keep;
        }
    }
};

struct Body {
    std::string text;
    bool complete = false, malformed = false, head = false;
    int status = 0;
};

Body unframed(std::string_view raw) {
    wire::HttpFraming framing;
    Body out;
    while (!raw.empty() && !framing.complete()) out.text += framing.next(raw);
    out.complete = framing.complete() && raw.empty();
    out.malformed = framing.malformed() || !raw.empty();
    out.head = framing.head_complete();
    out.status = out.head ? framing.head().status : 0;
    return out;
}

Client relay(const fuzz::Input& input, bool cut) {
    gateway::GatewayOptions options{.policy = {}, .version = "fuzz"};
    options.policy.upstreams = {{.url = *wire::parse_server_url("http://127.0.0.1:9")}};
    options.policy.deadlines.idle = std::chrono::seconds(1);
    options.policy.other_paths = gateway::OtherPaths::kRelay;
    options.policy.continuation = input.choice / 12 % 2 == 1;
    gateway::Gateway gateway(std::move(options));
    Client client;
    base::Instant now{std::chrono::seconds(1)};
    const auto tell = [&](auto what) {
        if (client.closed) return;
        gateway::Actions out;
        gateway.upstream({now, what}, out);
        client.take(out);
    };
    const char* paths[] = {"/v1/chat/completions", "/completion", "/api/chat", "/v1/models"};
    gateway::Actions out;
    gateway.request(now,
                    {.id = 1,
                     .method = "POST",
                     .target = paths[input.choice % 4],
                     .headers = {{"host", "h"}},
                     .body = "{}"},
                    out);
    client.take(out);
    tell(net::Connected{client.connection});
    const auto receive = [&](std::string_view piece) {
        tell(net::Received{client.connection, piece, answer::StampClock::kUserSpace});
        return !client.closed;
    };
    if (cut)
        fuzz::in_pieces(input.bytes, input.pattern, receive);
    else if (!input.bytes.empty())
        receive(input.bytes);
    switch (input.choice / 4 % 3) {
        case 0: tell(net::PeerClosed{client.connection, net::CloseKind::kFin, ""}); break;
        case 1: tell(net::PeerClosed{client.connection, net::CloseKind::kRst, "reset"}); break;
        default:
            now += std::chrono::seconds(2);
            tell(net::TimerFired{1});
            break;
    }
    fuzz::require(client.closed, "an exchange without an end");
    return client;
}

/// The body up to the gateway's own error object, whose words hold times and byte counts.
std::string timeless(const std::string& text) {
    const auto at = text.find("{\"error\":{\"message\"");
    return at == std::string::npos || text.find("\"fullstop\"", at) == std::string::npos
               ? text
               : text.substr(0, at);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::Input input(data, size);
    const Client once = relay(input, false), cut = relay(input, true);
    const Body a = unframed(once.raw), b = unframed(cut.raw);
    fuzz::require(a.head && !a.malformed, "the client's response is not well framed");
    const bool same = a.status == b.status && timeless(a.text) == timeless(b.text) &&
                      a.complete == b.complete && once.kept == cut.kept;
    if (!same)
        std::fprintf(stderr, "at once:\n%s\nin pieces:\n%s\n", once.raw.c_str(), cut.raw.c_str());
    fuzz::require(same, "what the client gets depends on the pieces");
    wire::HttpFraming upstream;
    std::string_view rest = input.bytes;
    while (!rest.empty() && !upstream.complete() && !upstream.overflowed()) upstream.next(rest);
    const bool by_close =
        upstream.framing() == answer::Framing::kUntilClose && input.choice / 4 % 3 == 0;
    const bool own = a.status >= 500 && a.text.find("\"fullstop\"") != std::string::npos;
    fuzz::require(!a.complete || upstream.complete() || by_close || own,
                  "a cut answer looks whole");
    fuzz::require(!once.kept || a.complete || a.status == 204 || a.status == 304,
                  "a connection is kept behind an open body");
    fuzz::require(!once.upstream_kept || (upstream.complete() && rest.empty()),
                  "an upstream is kept that may say more");
    return 0;
}
