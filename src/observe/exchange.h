// One small question to a server: send, read the whole reply, give up after kObserveTimeout or
// kMaxObserveBytes. What the reply means is the asker's business.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "net/event.h"
#include "wire/http/http_framing.h"

namespace fullstop::observe {

struct Reply {
    enum class Outcome {
        kAnswered,      ///< a whole HTTP response, whatever its status
        kNoConnection,  ///< `text` says why, `failure` which way
        kSilent,        ///< accepted, but not whole within kObserveTimeout
        kBroken,        ///< closed in the middle, or no HTTP
        kTooLarge,      ///< head or body beyond the limit
    };
    Outcome outcome = Outcome::kBroken;
    std::optional<net::ConnectFailure> failure;
    int status = 0;
    std::map<std::string, std::string> headers;
    std::string body;  ///< what came of it, also when not whole
    std::string text;  ///< the system's words

    bool ok() const { return outcome == Outcome::kAnswered && status >= 200 && status < 300; }
};

class Exchange {
public:
    /// `id` names connection and timer; both must be unused.
    Exchange(net::ConnectionId id, const net::Endpoint& endpoint, std::string request,
             base::Instant at, net::Actions& out);

    /// The reply, once it is there; events of other connections and timers are passed over.
    std::optional<Reply> on(const net::Event& event, net::Actions& out);
    void abandon(net::Actions& out);

private:
    std::optional<Reply> received(std::string_view bytes, net::Actions& out);
    Reply end(Reply::Outcome outcome, std::string text, net::Actions& out);

    net::ConnectionId id_;
    std::string request_;
    wire::HttpFraming framing_;
    std::string body_;
};

}  // namespace fullstop::observe
