// Every call of the gateway is one event of the real loop, and its processor time is watched.
#include "gateway_world.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <utility>

#include "cuts.h"
#include "gateway/request/request_head.h"
#include "script.h"
#include "watch.h"

namespace fullstop::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kOutputLimit = 64, kWindow = 4096, kQueueTokens = 4'000'000;

bool has(std::string_view words, std::string_view word) {
    return words.find(word) != std::string_view::npos;
}

/// The largest limit on output tokens that a server of an OpenAI path would read in a body; -1 when
/// one means "none".
double largest_limit(const boost::json::value& body) {
    double out = 0;
    if (!body.is_object()) return out;
    for (const auto* name :
         {"max_completion_tokens", "max_tokens", "n_predict", "max_output_tokens"})
        if (const auto* value = body.get_object().if_contains(name);
            value != nullptr && value->is_number()) {
            const auto number = value->to_number<double>();
            out = number < 0 || out < 0 ? -1 : std::max(out, number);
        }
    return out;
}

/// As servers take paths: escapes decoded, without parameters, fragment or a slash at the end.
bool servers_answer_at(std::string_view target) {
    std::string path;
    for (std::size_t i = 0;
         i < target.size() && target[i] != '?' && target[i] != '#' && target[i] != ';'; ++i) {
        unsigned code = 0;
        if (target[i] == '%' && i + 2 < target.size() &&
            std::from_chars(target.data() + i + 1, target.data() + i + 3, code, 16).ptr ==
                target.data() + i + 3) {
            path += static_cast<char>(code);
            i += 2;
        } else if (!(target[i] == '/' && path.ends_with('/'))) {
            path += target[i];
        }
    }
    while (path.ends_with('/')) path.pop_back();
    return path.ends_with("/chat/completions") || path.ends_with("/v1/completions") ||
           path.ends_with("/v1/messages") || path.ends_with("/v1/responses");
}

/// It ended one exchange only, and yet nobody's bytes are to reach a fault of ours.
void note(const gateway::Fault& fault) {
    std::fprintf(stderr, "%s", gateway::fault_line(fault).c_str());
    require(false, "an exchange ended by a fault of the gateway");
}

}  // namespace

gateway::Policy policy_of(std::string_view words) {
    gateway::Policy out;
    const long upstreams = std::clamp(number_in(words, "upstreams", 2), 1L, 4L);
    for (long i = 1; i <= upstreams; ++i)
        out.upstreams.push_back(
            {.url = *wire::parse_server_url("http://127.0.0.1:" + std::to_string(9000 + i)),
             .max_concurrency = has(words, "one") ? std::optional<std::int64_t>(1) : std::nullopt,
             .kv_tokens = has(words, "kv") ? std::optional<std::int64_t>(2000) : std::nullopt,
             .expected_output =
                 has(words, "expected") ? std::optional<std::int64_t>(100) : std::nullopt,
             .learn = !has(words, "nolearn"),
             .draining = has(words, "leaving") && i == 1});
    out.deadlines.idle = 30s;
    if (has(words, "deadlines"))
        out.deadlines = {.queue_wait = 20s, .first_token = 20s, .idle = 10s, .total = 100s};
    out.queue.tokens = kQueueTokens;
    if (has(words, "short")) out.queue.requests = 3;
    if (has(words, "floors")) out.queue.floors = {1, 0, 0};
    if (has(words, "output")) out.output.max_tokens = kOutputLimit;
    if (has(words, "load")) out.output.by_load = {{.users = 2, .max_tokens = 64}};
    if (has(words, "budget")) {
        out.budgets.overall = gateway::TokenWindow{.tokens = 100'000};
        out.budgets.per_key = gateway::TokenWindow{.tokens = 5'000, .window = 60s};
        out.budgets.routes["/v1/chat/completions"] = {.tokens = 50'000};
    }
    if (has(words, "shared")) {
        out.budgets.overall = gateway::TokenWindow{.tokens = 1'000'000};
        out.budgets.shared = gateway::SharedStore{
            .host = "store",
            .on_loss = has(words, "closed") ? gateway::SharedStore::OnLoss::kClosed
                                            : gateway::SharedStore::OnLoss::kOpen};
    }
    if (has(words, "relay")) out.other_paths = gateway::OtherPaths::kRelay;
    if (has(words, "heartbeat")) out.heartbeat = 5s;
    out.retry = !has(words, "noretry");
    out.continuation = has(words, "continuation");
    return out;
}

GatewayWorld::GatewayWorld(std::string_view policy)
    : gateway_({.policy = policy_of(policy),
                .version = "fuzz",
                .started = now_,
                .ended = [](const answer::Record&) {},
                .fault = [](const gateway::Fault& fault) { note(fault); }}),
      clients_(
          [](const net::ServiceRequest&) { return true; },
          [this](net::ServiceRequest request) {
              act("a request", [&](auto& out) { gateway_.request(now_, std::move(request), out); });
          },
          [this](const Asked& asked, const Response& response, const net::ServiceClose& close) {
              look_at(asked, response, close);
          }),
      limits_output_(has(policy, "output")) {}

template <class Call>
void GatewayWorld::act(const char* what, const Call& call) {
    gateway::Actions out;
    {
        const Watch watch(what);
        call(out);
    }
    take(out.upstream);
    clients_.take(out.client);
    take_store(out.store);
}

void GatewayWorld::tell(decltype(net::Event::what) what, const char* name) {
    const net::Event event{now_, std::move(what)};
    act(name, [&](auto& out) { gateway_.pass_on(event, out); });
    act(name, [&](auto& out) { gateway_.read_on(event, out); });
}

void GatewayWorld::take(const net::Actions& actions) {
    for (const auto& action : actions) {
        if (const auto* connect = std::get_if<net::Connect>(&action)) {
            const net::ConnectionId request = gateway_.request_of(connect->id);
            attempts_[connect->id] = {.request = request, .open = request != 0};
        } else if (const auto* send = std::get_if<net::Send>(&action)) {
            look_at_sent(send->bytes);
            attempts_.at(send->id).sent = send->bytes;
        } else if (const auto* close = std::get_if<net::Close>(&action)) {
            require(std::exchange(attempts_.at(close->id).open, false),
                    "a connection to an upstream is closed twice");
        } else if (const auto* set = std::get_if<net::SetTimer>(&action)) {
            timers_[set->id] = set->at;
        } else if (const auto* cancel = std::get_if<net::CancelTimer>(&action)) {
            timers_.erase(cancel->id);
        }
    }
}

void GatewayWorld::take_store(const std::vector<gateway::StoreAsk>& asks) {
    for (const auto& ask : asks) {
        if (const auto* reserve = std::get_if<gateway::StoreReserve>(&ask)) {
            require(reserve->tokens >= 0, "a store is asked for less than nothing");
            require(reserved_.emplace(reserve->id, false).second, "a store is asked twice");
        } else if (const auto* settle = std::get_if<gateway::StoreSettle>(&ask)) {
            require(reserved_.contains(settle->id) && settled_.insert(settle->id).second,
                    "a store is told an end of nothing");
        }
    }
}

/// What leaves for an upstream is one whole request that nobody can read otherwise, and no longer
/// than the policy allows.
void GatewayWorld::look_at_sent(const std::string& bytes) const {
    adapters::asio::RequestReader reader(
        {.head_bytes = std::size_t{1} << 20, .body_bytes = std::size_t{64} << 20});
    std::string rest = bytes;
    using Status = adapters::asio::RequestReader::Status;
    require(reader.read(rest) == Status::kHead, "an upstream is sent no request");
    (void)reader.head(1);
    require(reader.read(rest) == Status::kWhole && rest.empty(),
            "an upstream is sent no single request");
    const net::ServiceRequest request = reader.take();
    if (!limits_output_ || request.method != "POST" || !servers_answer_at(request.target)) return;
    boost::json::error_code error;
    const auto body =
        boost::json::parse(request.body, error, {}, {.max_depth = 256, .allow_invalid_utf8 = true});
    if (error) return;
    const double limit = largest_limit(body);
    require(limit >= 0 && limit <= static_cast<double>(kOutputLimit),
            "an upstream is asked for more than the maximum");
}

net::ConnectionId GatewayWorld::attempt_of(std::size_t client) const {
    const net::ConnectionId request = clients_.under_way(client);
    for (const auto& [id, attempt] : attempts_)
        if (attempt.open && attempt.request == request && request != 0) return id;
    return 0;
}

// What happens
// -------------------------------------------------------------------------------------------------

void GatewayWorld::configure(std::string_view policy) {
    limits_output_ = limits_output_ && has(policy, "output");
    windows_known_ = false;
    act("another configuration",
        [&](auto& out) { gateway_.configure(policy_of(policy), now_, out); });
}

void GatewayWorld::drain() {
    act("draining", [&](auto& out) { gateway_.drain(now_, out); });
}

void GatewayWorld::leaves(std::size_t client) {
    if (const auto id = clients_.leaves(client); id != 0)
        act("a client leaves", [&](auto& out) { gateway_.client_left(now_, id, out); });
}

void GatewayWorld::lags(std::size_t client, bool on) {
    if (const auto id = clients_.under_way(client); id != 0)
        act("a client lags", [&](auto& out) { gateway_.client_lags(now_, id, on, out); });
}

void GatewayWorld::connects(std::size_t client) {
    const auto id = attempt_of(client);
    if (id == 0 || std::exchange(attempts_.at(id).connected, true)) return;
    tell(net::Connected{id}, "connected");
}

void GatewayWorld::refuses(std::size_t client) {
    const auto id = attempt_of(client);
    if (id == 0 || attempts_.at(id).connected) return;
    attempts_.at(id).open = false;
    tell(net::ConnectFailed{id, net::ConnectFailure::kRefused, "Connection refused"},
         "not connected");
}

void GatewayWorld::says(std::size_t client, std::string bytes) {
    connects(client);
    const auto id = attempt_of(client);
    if (id == 0 || bytes.empty()) return;
    // As a host reads: 16 KiB at a time.
    for (std::string_view rest = bytes; !rest.empty() && attempts_.at(id).open;) {
        const std::string_view piece = rest.substr(0, 16 * 1024);
        rest.remove_prefix(piece.size());
        tell(net::Received{id, piece, answer::StampClock::kUserSpace}, "bytes of an upstream");
    }
}

void GatewayWorld::closes(std::size_t client, net::CloseKind kind) {
    connects(client);
    const auto id = attempt_of(client);
    if (id == 0) return;
    attempts_.at(id).open = false;
    tell(net::PeerClosed{id, kind, kind == net::CloseKind::kRst ? "Connection reset by peer" : ""},
         "an upstream closes");
}

std::string GatewayWorld::sent_to(std::size_t client) const {
    const auto id = attempt_of(client);
    return id == 0 ? std::string() : attempts_.at(id).sent;
}

void GatewayWorld::learned(std::size_t upstream, std::string_view words) {
    const auto& all = gateway_.upstreams().all();
    if (all.empty()) return;
    const auto id =
        std::next(all.begin(), static_cast<std::ptrdiff_t>(upstream % all.size()))->first;
    gateway::Capacity capacity{.server = "llama-server", .continues = has(words, "continues")};
    capacity.slots = std::clamp(number_in(words, "slots", 2), 1L, 100L);
    capacity.window = std::clamp(number_in(words, "window", kWindow), 1L, kWindow);
    if (const long pool = number_in(words, "pool", 0); pool > 0) capacity.pool = pool;
    if (const long output = number_in(words, "default", 0); output > 0)
        capacity.default_output = output;
    capacity.models = {has(words, "other") ? "other" : "m"};
    act("what an upstream is",
        [&](auto& out) { gateway_.learned(id, std::move(capacity), now_, out); });
    windows_known_ = std::ranges::all_of(gateway_.upstreams().all(), [](const auto& each) {
        return each.second->capacity().window.has_value();
    });
}

void GatewayWorld::loaded(std::size_t upstream, std::string_view words) {
    const auto& all = gateway_.upstreams().all();
    if (all.empty()) return;
    const auto id =
        std::next(all.begin(), static_cast<std::ptrdiff_t>(upstream % all.size()))->first;
    const gateway::Load load{.running = static_cast<double>(number_in(words, "running", 0)),
                             .waiting = static_cast<double>(number_in(words, "waiting", 0)),
                             .kv_used = {}};
    act("how an upstream is", [&](auto& out) { gateway_.loaded(id, load, now_, out); });
}

void GatewayWorld::store_answers(gateway::StoreAnswer::What what) {
    for (auto& [id, answered] : reserved_) {
        if (answered) continue;
        answered = true;
        if (what == gateway::StoreAnswer::What::kRefused) settled_.insert(id);
        act("an answer of the store", [&](auto& out) {
            gateway_.answered({.id = id, .what = what, .window = 5, .left = -3, .took = 1ms}, now_,
                              out);
        });
        return;
    }
}

void GatewayWorld::pass(base::Duration time) {
    const base::Instant until = now_ + time;
    for (int fired = 0; fired < 1000; ++fired) {
        const auto next =
            std::ranges::min_element(timers_, {}, [](const auto& each) { return each.second; });
        if (next == timers_.end() || next->second > until) break;
        now_ = std::max(now_, next->second);
        const net::TimerId id = next->first;
        timers_.erase(next);
        tell(net::TimerFired{id}, "a timer");
    }
    now_ = until;
}

/// Nobody sends anything more, and all servers are gone.
void GatewayWorld::end() {
    for (int rounds = 0; rounds < 300 && gateway_.running() > 0; ++rounds) {
        for (std::size_t client = 0; client < ClientSide::kClients; ++client) {
            refuses(client);
            closes(client, net::CloseKind::kFin);
        }
        store_answers(gateway::StoreAnswer::What::kLost);
        pass(61s);
        clients_.read_on();
    }
    require(gateway_.running() == 0 && gateway_.waiting() == 0 && clients_.open() == 0,
            "a request never ends");
    for (const auto& [id, upstream] : gateway_.upstreams().all())
        require(upstream->running() == 0 && upstream->held() == 0,
                "an upstream holds something for nobody");
    for (const auto& [id, answered] : reserved_)
        require(settled_.contains(id), "a store was never told an end");
    for (const auto& [id, attempt] : attempts_) require(!attempt.open, "a connection is left open");
}

// What a client gets
// -------------------------------------------------------------------------------------------------

void GatewayWorld::look_at(const Asked& asked, const Response& response,
                           const net::ServiceClose& close) {
    require(response.whole || response.until_close || !close.keep_alive,
            "a cut answer keeps its connection");
    const auto server = response.headers.find("server");
    if (!response.body.empty() && server != response.headers.end() &&
        server->second == "fullstop" && response.is("application/json"))
        require(is_json(response.body), "an error of the gateway is no JSON");
    if (response.status == 429) look_at_refusal(response);
    const bool orderly =
        response.whole || (response.until_close && close.kind == net::CloseKind::kFin);
    if (!orderly || response.status < 200 || response.status >= 300 ||
        !response.is("text/event-stream") || asked.request.method != "POST")
        return;
    const Events events = events_of(response.body);
    require(!events.cut, "a stream that was cut within an event looks whole");
    if (!servers_answer_at(asked.request.target)) return;
    bool ended = false;
    for (const std::string& data : events.data)
        for (const auto* word : {"[DONE]", "finish_reason", "message_stop", "response.completed",
                                 "error", "stop", "done"})
            ended = ended || data.find(word) != std::string::npos;
    require(ended, "a stream without its own end looks whole");
}

/// With windows that are known nobody can ask for more of the queue than one window for each
/// answer.
void GatewayWorld::look_at_refusal(const Response& response) const {
    if (!windows_known_ || response.body.find("the queue is full") == std::string::npos) return;
    constexpr std::int64_t kMost = 128 * kWindow;
    const std::size_t waits = gateway_.waiting() + 1;
    require(waits > gateway_.policy().queue.requests ||
                static_cast<std::int64_t>(waits) * kMost > kQueueTokens,
            "one request fills the queue");
}

}  // namespace fullstop::fuzz
