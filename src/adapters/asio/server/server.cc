// Listening, accepting, and the service's actions carried out.
#include "adapters/asio/server/server.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <deque>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "adapters/asio/server/listener.h"
#include "adapters/asio/server/served_connection.h"
#include "base/assert.h"

namespace fullstop::adapters::asio {
namespace {

/// Connections accepted before those already open get their turn.
constexpr int kAcceptsPerTurn = 64;
/// Of a full house, closed for those who wait outside.
constexpr std::size_t kClosedAtOnce = 64;

}  // namespace

struct Server::State final : ConnectionKeeper,
                             TurnQueue::Member,
                             std::enable_shared_from_this<State> {
    State(Loop& with, net::Service& serving, ServerOptions chosen,
          std::optional<TlsContext> certificates, int fd)
        : Member(with.turns()),
          loop(with),
          service(serving),
          chosen_options(std::move(chosen)),
          tls(std::move(certificates)),
          listener(with.context().get_executor(), fd),
          listening_port(port_of(fd)),
          pause(with.context().get_executor()),
          waking(with.context().get_executor()) {}

    void wait_for_clients();
    void accept_clients();
    bool make_room();
    void pause_accepting();
    template <class Decide>
    void call(const Decide& decide);
    void take_turn() override;
    using Member::due;
    void perform(net::ServiceSend& send);
    void perform(net::ServiceClose& close);
    void perform(net::ServiceWake& wake);

    net::ConnectionId new_request(ServedConnection& connection) override;
    bool head(const net::ServiceRequest& request) override;
    void request(net::ServiceRequest request) override;
    void request_over(net::ConnectionId id) override { answering.erase(id); }
    void client_left(net::ConnectionId id) override;
    void client_lags(net::ConnectionId id, bool lags) override;
    void closed(ServedConnection& connection) override;
    void client_dropped(net::ConnectionId id) override;
    net::MemoryBudget& memory() override {
        return chosen_options.memory != nullptr ? *chosen_options.memory : own_memory;
    }
    bool draining() const override { return is_draining; }
    const ServerOptions& options() const override { return chosen_options; }
    std::array<char, net::kReadBytes>& buffer() override { return read_buffer; }

    Loop& loop;
    net::Service& service;
    ServerOptions chosen_options;
    std::optional<TlsContext> tls;
    Descriptor listener;
    std::uint16_t listening_port;
    SteadyTimer pause, waking;
    net::MemoryBudget own_memory;
    std::unordered_map<ServedConnection*, std::shared_ptr<ServedConnection>>
        connections;  ///< after the budget
    std::unordered_map<net::ConnectionId, ServedConnection*> answering;
    net::ConnectionId last_request = 0;
    std::array<char, net::kReadBytes> read_buffer{};
    net::ServiceActions actions, performing;  ///< to carry out, and those being carried out
    std::deque<net::ConnectionId> left;       ///< clients of whom the service has to hear
    std::deque<std::pair<net::ConnectionId, bool>> lagging;
    bool accepting = false, is_draining = false, going_away = false;
    std::function<void()> drained;
};

// Clients
// -------------------------------------------------------------------------------------------------

void Server::State::wait_for_clients() {
    if (is_draining || accepting) return;
    accepting = true;
    listener.async_wait(Descriptor::wait_read, [watch = weak_from_this()](const ErrorCode& error) {
        const auto self = watch.lock();
        if (!self) return;
        self->accepting = false;
        if (!error && !self->is_draining) self->accept_clients();
    });
}

void Server::State::accept_clients() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
        if (connections.size() >= chosen_options.max_connections && !make_room())
            return pause_accepting();
        const int fd =
            ::accept4(listener.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) break;
            if ((errno == EMFILE || errno == ENFILE) && make_room()) continue;
            return pause_accepting();
        }
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const auto connection =
            std::make_shared<ServedConnection>(loop, *this, fd, tls ? &*tls : nullptr);
        connections.emplace(connection.get(), connection);
        connection->start();
    }
    wait_for_clients();
}

void Server::State::pause_accepting() {
    pause.expires_after(kAcceptPause);
    pause.async_wait([watch = weak_from_this()](const ErrorCode& error) {
        if (const auto self = watch.lock(); self && !error) self->wait_for_clients();
    });
}

/// Nobody keeps others out by being silent: the connections longest without a request go, those
/// with half a request last. Several at once, because finding them means looking at all.
bool Server::State::make_room() {
    std::vector<std::shared_ptr<ServedConnection>> waiting;
    for (const auto& [raw, connection] : connections)
        if (connection->is_waiting()) waiting.push_back(connection);
    const std::size_t count = std::min(waiting.size(), kClosedAtOnce);
    const auto later = std::next(waiting.begin(), static_cast<std::ptrdiff_t>(count));
    std::ranges::partial_sort(waiting, later, {}, [](const auto& connection) {
        return std::pair(connection->has_begun(), connection->waiting_since());
    });
    for (std::size_t i = 0; i < count; ++i) waiting[i]->make_room();
    return count > 0;
}

void Server::State::closed(ServedConnection& connection) {
    connections.erase(&connection);
    if (going_away) return;
    if (is_draining && connections.empty() && drained) loop.post(std::exchange(drained, nullptr));
    wait_for_clients();
}

// The service
// -------------------------------------------------------------------------------------------------

net::ConnectionId Server::State::new_request(ServedConnection& connection) {
    answering.emplace(++last_request, &connection);
    return last_request;
}

/// A call of the service, and everything that follows from it.
template <class Decide>
void Server::State::call(const Decide& decide) {
    queue().run([&] {
        decide(loop.clock().now(), actions);
        due();
    });
}

bool Server::State::head(const net::ServiceRequest& request) {
    bool wanted = true;
    call([&](base::Instant now, net::ServiceActions& out) {
        wanted = service.head(now, request, out);
    });
    return wanted;
}

void Server::State::request(net::ServiceRequest request) {
    call([&](base::Instant now, net::ServiceActions& out) {
        service.request(now, std::move(request), out);
    });
}

void Server::State::client_left(net::ConnectionId id) {
    left.push_back(id);
    due();
}

/// From inside whatever asked for room: told in the loop's next turn.
void Server::State::client_dropped(net::ConnectionId id) {
    left.push_back(id);
    loop.post([watch = weak_from_this()] {
        if (const auto self = watch.lock(); self && !self->going_away) self->due();
    });
}

void Server::State::client_lags(net::ConnectionId id, bool lags) {
    lagging.emplace_back(id, lags);
    due();
}

/// What the service decided, then what it has to hear of, one at a time.
void Server::State::take_turn() {
    actions.swap(performing);
    for (net::ServiceAction& action : performing)
        std::visit([this](auto& a) { perform(a); }, action);
    performing.clear();
    if (!left.empty()) {
        const net::ConnectionId id = left.front();
        left.pop_front();
        service.client_left(loop.clock().now(), id, actions);
    } else if (!lagging.empty()) {
        const auto [id, lags] = lagging.front();
        lagging.pop_front();
        if (answering.contains(id)) service.client_lags(loop.clock().now(), id, lags, actions);
    }
    if (!actions.empty() || !left.empty() || !lagging.empty()) due();
}

void Server::State::perform(net::ServiceSend& send) {
    const auto found = answering.find(send.id);
    if (found == answering.end()) return;
    const auto connection = found->second->shared_from_this();
    connection->send(std::move(send.bytes));
}

void Server::State::perform(net::ServiceClose& close) {
    const auto found = answering.find(close.id);
    if (found == answering.end()) return;
    const auto connection = found->second->shared_from_this();
    connection->answered(close.kind, close.keep_alive);
}

void Server::State::perform(net::ServiceWake& wake) {
    waking.expires_at(steady(wake.at));
    waking.async_wait([watch = weak_from_this()](const ErrorCode& error) {
        const auto self = watch.lock();
        if (error || !self) return;
        // A wake that was moved later may have been on its way already.
        if (std::chrono::steady_clock::now() < self->waking.expiry()) return;
        self->call(
            [&](base::Instant now, net::ServiceActions& out) { self->service.wake(now, out); });
    });
}

// Server
// -------------------------------------------------------------------------------------------------

base::Result<std::unique_ptr<Server>> Server::listen(Loop& loop, net::Service& service,
                                                     ServerOptions options) {
    std::optional<TlsContext> tls;
    if (!options.certificate_file.empty()) {
        auto made = TlsContext::server(options.certificate_file, options.key_file);
        if (!made) return std::unexpected(made.error());
        tls = std::move(*made);
    }
    options.max_connections = std::min(options.max_connections, connections_for_descriptors());
    const auto fd = open_listener(options);
    if (!fd) return std::unexpected(fd.error());
    auto state = std::make_shared<State>(loop, service, std::move(options), std::move(tls), *fd);
    state->wait_for_clients();
    return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
    state_->going_away = state_->is_draining = true;
    while (!state_->connections.empty()) {
        const auto connection = state_->connections.begin()->second;
        connection->drop();
    }
    ErrorCode ignored;
    state_->listener.close(ignored);
    state_->waking.cancel();
}

std::uint16_t Server::port() const { return state_->listening_port; }
std::size_t Server::connections() const { return state_->connections.size(); }
std::size_t Server::answering() const { return state_->answering.size(); }

void Server::drain(std::function<void()> drained) {
    state_->is_draining = true;
    state_->drained = std::move(drained);
    ErrorCode ignored;
    state_->listener.close(ignored);
    std::vector<std::shared_ptr<ServedConnection>> all;
    for (const auto& [raw, connection] : state_->connections) all.push_back(connection);
    for (const auto& connection : all) connection->close_if_idle();
    if (state_->connections.empty() && state_->drained)
        state_->loop.post(std::exchange(state_->drained, nullptr));
}

void Server::act(net::ServiceActions actions) {
    if (actions.empty()) return;
    auto& all = state_->actions;
    all.insert(all.end(), std::make_move_iterator(actions.begin()),
               std::make_move_iterator(actions.end()));
    state_->due();
}

}  // namespace fullstop::adapters::asio
