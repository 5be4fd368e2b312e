// Parts on real sockets: one lane per part keeps its names apart and its events in order.
#include "adapters/asio/client/host.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/asio/client/connection.h"
#include "adapters/asio/client/timer_table.h"
#include "base/assert.h"

namespace fullstop::adapters::asio {
namespace {

/// The connection an event is about; none for timers and interrupts.
std::optional<net::ConnectionId> connection_of(const net::Event& event) {
    return std::visit(
        [](const auto& what) -> std::optional<net::ConnectionId> {
            if constexpr (requires { what.id; } &&
                          !std::is_same_v<std::decay_t<decltype(what)>, net::TimerFired>)
                return what.id;
            return std::nullopt;
        },
        event.what);
}

}  // namespace

struct Host::State {
    class Lane final : public ConnectionOwner, TurnQueue::Member {
    public:
        Lane(State& host, net::Part& part, Wait wait)
            : Member(host.loop.turns()), host_(host), part_(part), wait_(wait) {}

        void start();
        void fire_timers(base::Instant now);
        void deliver(const net::Event& event) override;
        void over(net::ConnectionId id) override { connections_.erase(id); }
        void close_all();
        void act(net::Actions actions);
        bool is_of(const net::Part& part) const { return &part_ == &part; }
        bool started() const { return started_; }
        bool holds_up() const { return wait_ == Wait::kUntilDone && !part_.done(); }
        std::optional<base::Instant> next_timer() const { return timers_.next(); }

    private:
        void take_turn() override;
        void hand_on(const net::Event& event);
        void perform(net::Connect& connect);
        void perform(net::Send& send);
        void perform(net::Close& close);
        void perform(net::Flow& flow);
        void perform(net::SetTimer& set);
        void perform(net::CancelTimer& cancel) { timers_.cancel(cancel.id); }

        State& host_;
        net::Part& part_;
        Wait wait_;
        bool started_ = false;
        bool reading_ = false;  ///< bytes were handed on, and are not read for their facts yet
        net::Actions actions_, performing_;
        std::deque<net::Event> pending_;  ///< raised by actions; at most a few
        std::unordered_map<net::ConnectionId, std::shared_ptr<Connection>> connections_;
        TimerTable timers_;
    };

    State(Loop& with, HostOptions chosen)
        : loop(with),
          options(std::move(chosen)),
          around{.loop = with,
                 .resolver = Resolver(with),
                 .tls_options = {.verify = options.verify_tls, .ca_file = options.ca_file},
                 .tls = {},
                 .kernel_stamps = options.kernel_stamps,
                 .stamps = {},
                 .buffer = {}},
          keeper(options.kernel_stamps),
          timer(with.context().get_executor()) {}

    void arm_timer();
    void on_timer();
    void check_done();
    void interrupt();

    Loop& loop;
    HostOptions options;
    ConnectionSurroundings around;
    StampKeeper keeper;
    std::vector<std::unique_ptr<Lane>> lanes;
    SteadyTimer timer;
    std::optional<base::Instant> armed;
    std::shared_ptr<char> alive =
        std::make_shared<char>();  ///< handlers of the loop check it before they touch the host
    bool running = false, interrupted = false, abandoned = false;
};

// Lane: one part
// -------------------------------------------------------------------------------------------------

void Host::State::Lane::start() {
    queue().run([this] {
        started_ = true;
        part_.start(host_.loop.clock().now(), actions_);
        due();
    });
}

/// Bytes that were received are handed on at once: they live only until the call returns. Events
/// that actions raise (a connection refused at once, a send that fitted) wait for the lane's turn.
void Host::State::Lane::deliver(const net::Event& event) {
    if (queue().running()) {
        FULLSTOP_ASSERT(!std::holds_alternative<net::Received>(event.what),
                        "reading happens in the loop's own turns");
        pending_.push_back(event);
        return due();
    }
    const bool received = std::holds_alternative<net::Received>(event.what);
    queue().run([&] {
        while (started_ && !pending_.empty()) take_turn();
        hand_on(event);
        reading_ = received;
        due();
    });
    if (!received) return;
    queue().run([&] {
        reading_ = false;
        if (!part_.done()) part_.read_on(event, actions_);
        due();
    });
}

void Host::State::Lane::act(net::Actions actions) {
    actions_.insert(actions_.end(), std::make_move_iterator(actions.begin()),
                    std::make_move_iterator(actions.end()));
    due();
}

void Host::State::Lane::hand_on(const net::Event& event) {
    if (started_ && !part_.done()) part_.on(event, actions_);
}

void Host::State::Lane::take_turn() {
    if (!started_) return;
    actions_.swap(performing_);
    for (net::Action& action : performing_) std::visit([this](auto& a) { perform(a); }, action);
    performing_.clear();
    if (!pending_.empty() && !reading_) {
        const net::Event event = std::move(pending_.front());
        pending_.pop_front();
        hand_on(event);
        return due();
    }
    if (part_.done()) close_all();
    host_.check_done();
}

void Host::State::Lane::close_all() {
    while (!connections_.empty()) connections_.begin()->second->close(net::CloseKind::kFin);
    pending_.clear();
}

void Host::State::Lane::fire_timers(base::Instant now) {
    // No more than were set when the turn began: a timer that sets itself for "now" must not keep
    // sockets from being read.
    for (std::size_t left = timers_.size(); left > 0; --left) {
        const auto id = timers_.take_due(now);
        if (!id) return;
        deliver({now, net::TimerFired{*id}});
    }
}

void Host::State::Lane::perform(net::Connect& connect) {
    auto connection = std::make_shared<Connection>(host_.around, *this, connect);
    const bool fresh = connections_.emplace(connect.id, connection).second;
    FULLSTOP_ASSERT(fresh, "a part names each of its connections once");
    connection->start();
}

void Host::State::Lane::perform(net::Send& send) {
    const auto found = connections_.find(send.id);
    if (found == connections_.end())
        return;  // the peer was faster: its end is on the way to the part
    const auto connection = found->second;
    connection->send(std::move(send));
}

void Host::State::Lane::perform(net::Close& close) {
    std::erase_if(pending_,
                  [&](const net::Event& event) { return connection_of(event) == close.id; });
    const auto found = connections_.find(close.id);
    if (found == connections_.end()) return;
    const auto connection = found->second;
    connection->close(close.kind, close.keep);
}

void Host::State::Lane::perform(net::Flow& flow) {
    if (const auto found = connections_.find(flow.id); found != connections_.end())
        found->second->flow(flow.on);
}

void Host::State::Lane::perform(net::SetTimer& set) {
    if (timers_.set(set.id, set.at)) host_.arm_timer();
}

// All lanes
// -------------------------------------------------------------------------------------------------

void Host::State::arm_timer() {
    std::optional<base::Instant> earliest;
    for (const auto& lane : lanes)
        if (const auto next = lane->next_timer(); next && (!earliest || *next < *earliest))
            earliest = next;
    if (!earliest || (armed && *armed <= *earliest)) return;
    armed = earliest;
    timer.expires_at(steady(*earliest));
    timer.async_wait(
        [this, watch = std::weak_ptr(alive)](const ::boost::system::error_code& error) {
            if (error || watch.expired()) return;
            on_timer();
        });
}

void Host::State::on_timer() {
    armed.reset();
    const base::Instant now = loop.clock().now();
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i]->fire_timers(now);
    arm_timer();
}

void Host::State::check_done() {
    if (!running) return;
    const bool waiting =
        std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->holds_up(); });
    if (!waiting) loop.stop();
}

void Host::State::interrupt() {
    if (std::exchange(interrupted, true)) return;
    const base::Instant now = loop.clock().now();
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i]->deliver({now, net::Interrupted{}});
}

// Host
// -------------------------------------------------------------------------------------------------

base::Result<std::unique_ptr<Host>> Host::create(Loop& loop, HostOptions options) {
    std::unique_ptr<Host> host(new Host(loop, std::move(options)));
    if (!host->state_->options.ca_file.empty())
        if (const auto& tls = host->state_->around.tls_context(); !tls)
            return std::unexpected(tls.error());
    return host;
}

Host::Host(Loop& loop, HostOptions options)
    : state_(std::make_unique<State>(loop, std::move(options))) {}

Host::~Host() {
    state_->running = false;
    for (const auto& lane : state_->lanes) lane->close_all();
}

void Host::add(net::Part& part, Wait wait) {
    state_->lanes.push_back(std::make_unique<State::Lane>(*state_, part, wait));
    if (!state_->running) return;
    state_->loop.post([lane = state_->lanes.back().get(), watch = std::weak_ptr(state_->alive)] {
        if (!watch.expired() && !lane->started()) lane->start();
    });
}

void Host::act(net::Part& part, net::Actions actions) {
    const auto lane =
        std::ranges::find_if(state_->lanes, [&](const auto& each) { return each->is_of(part); });
    FULLSTOP_ASSERT(lane != state_->lanes.end(), "only a part that was added acts");
    (*lane)->act(std::move(actions));
}

HostEnd Host::run_until_done() {
    State& state = *state_;
    Loop::SignalWatch watch;
    if (state.options.signals)
        watch = state.loop.watch_signals([&state](int interrupts) {
            state.abandoned = interrupts > 1;
            if (state.abandoned) return state.loop.stop();
            state.interrupt();
        });
    state.running = true;
    state.loop.post([&state] {
        for (std::size_t i = 0; i < state.lanes.size(); ++i)
            if (!state.lanes[i]->started()) state.lanes[i]->start();
        state.check_done();
    });
    state.loop.run();
    state.running = false;
    for (const auto& lane : state.lanes)
        if (!lane->holds_up()) lane->close_all();
    return state.abandoned ? HostEnd::kAbandoned : HostEnd::kDone;
}

void Host::interrupt() { state_->interrupt(); }

}  // namespace fullstop::adapters::asio
