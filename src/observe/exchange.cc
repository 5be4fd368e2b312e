// Framing is wire's; this adds the limits and the one timer.
#include "observe/exchange.h"

#include <utility>

#include "net/limits.h"

namespace fullstop::observe {

Exchange::Exchange(net::ConnectionId id, const net::Endpoint& endpoint, std::string request,
                   base::Instant at, net::Actions& out)
    : id_(id), request_(std::move(request)) {
    out.emplace_back(net::Connect{id_, endpoint, net::kObserveTimeout});
    out.emplace_back(net::SetTimer{id_, at + net::kObserveTimeout});
}

std::optional<Reply> Exchange::on(const net::Event& event, net::Actions& out) {
    if (const auto* connected = std::get_if<net::Connected>(&event.what);
        connected && connected->id == id_) {
        out.emplace_back(net::Send{id_, std::exchange(request_, {})});
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what);
               failed && failed->id == id_) {
        Reply reply;
        reply.outcome = Reply::Outcome::kNoConnection;
        reply.failure = failed->why;
        reply.text = failed->text;
        out.emplace_back(net::CancelTimer{id_});
        return reply;
    } else if (const auto* bytes = std::get_if<net::Received>(&event.what);
               bytes && bytes->id == id_) {
        return received(bytes->bytes, out);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what);
               closed && closed->id == id_) {
        const bool whole = closed->kind == net::CloseKind::kFin && framing_.head_complete() &&
                           !framing_.malformed() &&
                           framing_.framing() == answer::Framing::kUntilClose;
        return end(whole ? Reply::Outcome::kAnswered : Reply::Outcome::kBroken, closed->text, out);
    } else if (const auto* fired = std::get_if<net::TimerFired>(&event.what);
               fired && fired->id == id_) {
        return end(Reply::Outcome::kSilent, {}, out);
    }
    return std::nullopt;
}

std::optional<Reply> Exchange::received(std::string_view bytes, net::Actions& out) {
    while (!bytes.empty() && !framing_.complete() && !framing_.overflowed()) {
        const std::string_view piece = framing_.next(bytes);
        if (body_.size() + piece.size() > net::kMaxObserveBytes)
            return end(Reply::Outcome::kTooLarge, "the body is larger than 4 MiB", out);
        body_ += piece;
    }
    if (framing_.overflowed())
        return end(Reply::Outcome::kTooLarge, "the response head is larger than 64 KiB", out);
    if (framing_.malformed()) return end(Reply::Outcome::kBroken, "the reply is not HTTP", out);
    if (framing_.complete()) return end(Reply::Outcome::kAnswered, {}, out);
    return std::nullopt;
}

void Exchange::abandon(net::Actions& out) {
    out.emplace_back(net::CancelTimer{id_});
    out.emplace_back(net::Close{id_, net::CloseKind::kFin});
}

Reply Exchange::end(Reply::Outcome outcome, std::string text, net::Actions& out) {
    abandon(out);
    Reply reply;
    reply.outcome = outcome;
    reply.status = framing_.head().status;
    reply.headers = framing_.head().headers;
    reply.body = std::move(body_);
    reply.text = std::move(text);
    return reply;
}

}  // namespace fullstop::observe
