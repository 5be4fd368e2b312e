// Routing between the gateway's own pages and the relay, and the bookkeeping of what runs.
#include "gateway/gateway.h"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "gateway/request_head.h"
#include "net/limits.h"
#include "wire/response_text.h"

namespace fullstop::gateway {
namespace {

namespace json = boost::json;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4";
/// Requests are numbered from 1 by the host, so 0 is free.
constexpr net::TimerId kDrainTimer = 0;

std::string name_of(const wire::ServerUrl& url) {
    const bool six = url.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", six ? "[" : "", url.host, six ? "]" : "", url.port);
}

}  // namespace

Gateway::Gateway(GatewayOptions options)
    : options_(std::move(options)),
      route_{.upstream = options_.upstream, .name = name_of(options_.upstream), .idle = options_.idle},
      random_(options_.entropy),
      metrics_(route_.name) {}

// Clients ------------------------------------------------------------------------------------------------------------------

void Gateway::respond(const net::ServiceRequest& request, int status, std::string_view type, std::string_view body, const std::string& request_id, Actions& out,
                      const wire::Headers& more) const {
    const bool keep = !wants_close(request);
    wire::Headers headers = {{"Connection", keep ? "keep-alive" : "close"}, {"X-Request-Id", request_id}, {"Server", "fullstop"}};
    headers.insert(headers.end(), more.begin(), more.end());
    std::string bytes = wire::whole_response(status, type, body, headers);
    if (request.method == "HEAD") bytes.resize(bytes.find("\r\n\r\n") + 4);
    out.client.emplace_back(net::ServiceSend{request.id, std::move(bytes)});
    out.client.emplace_back(net::ServiceClose{.id = request.id, .kind = net::CloseKind::kFin, .keep_alive = keep});
}

/// The three pages of the gateway itself.
bool Gateway::own_page(const net::ServiceRequest& request, const std::string& request_id, Actions& out) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const bool health = path == "/health", metrics = path == "/metrics";
    if (!health && !metrics && path != "/fullstop/status") return false;
    if (request.method != "GET" && request.method != "HEAD") {
        respond(request, 405, kJson, error_body(fmt::format("{} takes GET", path), "invalid_request_error", "method_not_allowed"), request_id, out);
    } else if (health) {
        respond(request, draining_ ? 503 : 200, kJson, draining_ ? R"({"status":"draining"})" : R"({"status":"ok"})", request_id, out);
    } else {
        respond(request, 200, metrics ? kPrometheus : kJson, metrics ? metrics_.text(live_.size()) : status_body(), request_id, out);
    }
    return true;
}

void Gateway::request(base::Instant now, const net::ServiceRequest& request, Actions& out) {
    std::string request_id(header(request, "x-request-id"));
    const bool id_is_fine = request_id.empty() || valid_request_id(request_id);
    if (request_id.empty() || !id_is_fine) request_id = fmt::format("fs-{:016x}", random_.next());
    if (!id_is_fine) {
        const std::string message = fmt::format("X-Request-Id has at most {} visible ASCII characters", kMaxRequestIdBytes);
        return respond(request, 400, kJson, error_body(message, "invalid_request_error", "bad_request_id"), request_id, out);
    }
    if (own_page(request, request_id, out)) return;
    const wire::Headers upstream = {{"Fullstop-Upstream", route_.name}};
    if (request.method == "CONNECT")
        return respond(request, 405, kJson, error_body("this gateway relays to one upstream and opens no tunnels", "invalid_request_error", "no_tunnel"),
                       request_id, out, upstream);
    if (draining_) {
        metrics_.answer(answer::Cause::kGatewayRejected);
        End end{.answer = true, .cause = answer::Cause::kGatewayRejected, .by = By::kGateway, .detail = "the gateway is shutting down"};
        wire::Headers headers = upstream;
        headers.emplace_back("Retry-After", std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.drain).count()));
        return respond(request, 503, kJson, error_body(end, {.request_id = request_id}), request_id, out, headers);
    }
    auto exchange = std::make_unique<Exchange>(route_, request, std::move(request_id), now);
    out.upstream.emplace_back(net::Connect{.id = request.id,
                                           .endpoint = {.host = options_.upstream.host, .port = options_.upstream.port, .tls = options_.upstream.tls},
                                           .timeout = net::kConnectTimeout,
                                           .reuse = true});
    watch(request.id, *exchange, out);
    live_.emplace(request.id, std::move(exchange));
}

void Gateway::client_left(base::Instant, net::ConnectionId id, Actions& out) {
    if (live_.erase(id) == 0) return;
    out.upstream.emplace_back(net::Close{.id = id, .kind = net::CloseKind::kFin});
    out.upstream.emplace_back(net::CancelTimer{id});
    metrics_.answer(answer::Cause::kClientCancelled);
}

void Gateway::client_lags(base::Instant now, net::ConnectionId id, bool lags, Actions& out) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    found->second->hold(lags, now);
    out.upstream.emplace_back(net::Flow{.id = id, .on = !lags});
}

// The upstream -------------------------------------------------------------------------------------------------------------

void Gateway::upstream(const net::Event& event, Actions& out) {
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what)) return on_timer(event.at, fired->id, out);
    const auto on = [&](net::ConnectionId id, const auto& tell, bool open) {
        const auto found = live_.find(id);
        if (found == live_.end()) return;
        std::string bytes;
        tell(*found->second, bytes);
        settle(found, std::move(bytes), open, out);
    };
    if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
        if (const auto found = live_.find(connected->id); found != live_.end())
            out.upstream.emplace_back(net::Send{connected->id, found->second->take_request()});
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
        on(failed->id, [&](Exchange& e, std::string& bytes) { e.not_connected(failed->why, failed->text, event.at, bytes); }, false);
    } else if (const auto* received = std::get_if<net::Received>(&event.what)) {
        on(received->id, [&](Exchange& e, std::string& bytes) { e.received(received->bytes, event.at, bytes); }, true);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
        const Stop stop = closed->kind == net::CloseKind::kRst ? Stop::kRst : Stop::kFin;
        on(closed->id, [&](Exchange& e, std::string& bytes) { e.stopped(stop, closed->text, event.at, bytes); }, false);
    }
}

/// Sends what came of an event, and ends the exchange when it is over.
void Gateway::settle(Live::iterator at, std::string bytes, bool upstream_open, Actions& out) {
    const net::ConnectionId id = at->first;
    const Exchange& exchange = *at->second;
    if (!bytes.empty()) out.client.emplace_back(net::ServiceSend{id, std::move(bytes)});
    if (!exchange.over()) return;
    out.client.emplace_back(net::ServiceClose{.id = id, .kind = exchange.close_kind(), .keep_alive = exchange.keep_alive()});
    if (upstream_open) out.upstream.emplace_back(net::Close{.id = id, .kind = net::CloseKind::kFin, .keep = exchange.upstream_reusable()});
    out.upstream.emplace_back(net::CancelTimer{id});
    if (exchange.end().answer)
        metrics_.answer(exchange.end().cause);
    else
        metrics_.other();
    metrics_.relayed(exchange.relayed());
    live_.erase(at);
}

// Time ---------------------------------------------------------------------------------------------------------------------

void Gateway::watch(net::ConnectionId id, const Exchange& exchange, Actions& out) const {
    if (options_.idle) out.upstream.emplace_back(net::SetTimer{.id = id, .at = exchange.quiet_since() + *options_.idle});
}

/// The timer is not moved with every byte; when it fires it looks how long the silence is.
void Gateway::on_timer(base::Instant now, net::TimerId id, Actions& out) {
    if (id == kDrainTimer) {
        const std::string detail = fmt::format("the gateway is shutting down and its drain limit of {:.0f} s is over", base::to_seconds(options_.drain));
        while (!live_.empty()) {
            std::string bytes;
            live_.begin()->second->stopped(Stop::kShutdown, detail, now, bytes);
            settle(live_.begin(), std::move(bytes), true, out);
        }
        return;
    }
    const auto found = live_.find(id);
    if (found == live_.end() || !options_.idle) return;
    if (now - found->second->quiet_since() < *options_.idle) return watch(id, *found->second, out);
    std::string bytes;
    found->second->stopped(Stop::kIdle, "", now, bytes);
    settle(found, std::move(bytes), true, out);
}

void Gateway::drain(base::Instant now, Actions& out) {
    if (std::exchange(draining_, true)) return;
    out.upstream.emplace_back(net::SetTimer{.id = kDrainTimer, .at = now + options_.drain});
}

std::string Gateway::status_body() const {
    json::object ends;
    for (const auto& [cause, count] : metrics_.ends()) ends[answer::to_string(cause)] = count;
    json::value idle = nullptr;
    if (options_.idle) idle = base::to_ms(*options_.idle);
    return json::serialize(json::object{{"server", "fullstop"},
                                        {"role", "gateway"},
                                        {"version", options_.version},
                                        {"status", draining_ ? "draining" : "ok"},
                                        {"upstream", route_.name},
                                        {"running", live_.size()},
                                        {"idle_limit_ms", std::move(idle)},
                                        {"connect_limit_ms", base::to_ms(net::kConnectTimeout)},
                                        {"drain_limit_ms", base::to_ms(options_.drain)},
                                        {"retries", 0},
                                        {"other_responses", metrics_.others()},
                                        {"ends", std::move(ends)}});
}

}  // namespace fullstop::gateway
