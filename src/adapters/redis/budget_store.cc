// What is asked and what time brings. The connection and its replies stand in store_connection.cc.
#include "adapters/redis/budget_store.h"

#include <algorithm>

#include "adapters/redis/limits.h"
#include "base/assert.h"

namespace fullstop::adapters::redis {
namespace {

constexpr net::TimerId kTick = 1;

}  // namespace

void BudgetStore::start(base::Instant now, net::Actions& out) {
    trying_ = true;
    connect(now, out);
    arm(out);
}

// Questions
// -------------------------------------------------------------------------------------------------

void BudgetStore::ask(base::Instant now, const gateway::StoreAsk& ask, net::Actions& out) {
    if (const auto* wanted = std::get_if<gateway::StoreReserve>(&ask))
        reserve(now, *wanted, out);
    else
        settle(now, std::get<gateway::StoreSettle>(ask), out);
    arm(out);
}

void BudgetStore::reserve(base::Instant now, const gateway::StoreReserve& ask, net::Actions& out) {
    FULLSTOP_ASSERT(!ask.windows.empty(), "a request without budgets asks for none");
    const auto [at, added] = open_.emplace(ask.id, Open{.ask = ask, .asked = now});
    FULLSTOP_ASSERT(added, "a request is asked for once");
    if (!up_ && !trying_) return answer(now, at->second, {.id = ask.id});
    deadlines_.push_back({now + where_.timeout, ask.id});
    if (up_) call(now, Operation::kReserve, ask.id, false, out);
}

void BudgetStore::settle(base::Instant now, const gateway::StoreSettle& ask, net::Actions& out) {
    const auto at = open_.find(ask.id);
    if (at == open_.end()) return;
    Open& open = at->second;
    open.waiting = false;
    if (!open.told && ask.used == 0) return forget(ask.id, false);
    open.settling = true;
    open.used = ask.used;
    ++settling_;
    to_settle_.push_back(ask.id);
    if (to_settle_.size() > kMaxKeptSettles)
        forget(to_settle_.front(), true), to_settle_.pop_front();
    send_waiting(now, out);
}

/// Every question is answered once. One without the store's answer is made known to it with the
/// next renewal, if it runs on.
void BudgetStore::answer(base::Instant now, Open& open, gateway::StoreAnswer answer) {
    open.waiting = false;
    answer.took = now - open.asked;
    if (up_ && answer.what != gateway::StoreAnswer::What::kRefused)
        renewals_.push_back({now + kRenewAfter, answer.id});
    answers_.push_back(answer);
}

void BudgetStore::lose_waiting(base::Instant now) {
    for (auto& [id, open] : open_)
        if (open.waiting) answer(now, open, {.id = id});
}

void BudgetStore::forget(std::uint64_t id, bool dropped) {
    const auto at = open_.find(id);
    if (at == open_.end()) return;
    if (at->second.settling) --settling_;
    if (dropped) ++dropped_;
    open_.erase(at);
}

void BudgetStore::retire(base::Instant now, net::Actions& out) {
    retired_ = true;
    lose_waiting(now);
    arm(out);
}

// Time
// -------------------------------------------------------------------------------------------------

void BudgetStore::on_time(base::Instant now, net::Actions& out) {
    armed_.reset();
    while (!deadlines_.empty() && deadlines_.front().at <= now) {
        const auto at = open_.find(deadlines_.front().id);
        deadlines_.pop_front();
        if (at != open_.end() && at->second.waiting) answer(now, at->second, {.id = at->first});
    }
    if (!flights_.empty() && progress_ + where_.timeout <= now)
        give_up(now, "it does not answer", false, out);
    if (retry_at_ && *retry_at_ <= now) {
        retry_at_.reset();
        connect(now, out);
    }
    send_waiting(now, out);
}

/// One timer for whatever comes next.
void BudgetStore::arm(net::Actions& out) {
    std::optional<base::Instant> next = retry_at_;
    const auto sooner = [&](base::Instant at) { next = next ? std::min(*next, at) : at; };
    while (!deadlines_.empty()) {
        const auto at = open_.find(deadlines_.front().id);
        if (at != open_.end() && at->second.waiting) break;
        deadlines_.pop_front();
    }
    if (!deadlines_.empty()) sooner(deadlines_.front().at);
    if (!flights_.empty()) sooner(progress_ + where_.timeout);
    // With the wire full, the next reply makes room.
    if (up_ && !renewals_.empty() && flights_.size() < kMaxOnTheWire) sooner(renewals_.front().at);
    if (!next || armed_ == next) return;
    armed_ = next;
    out.emplace_back(net::SetTimer{.id = kTick, .at = *next});
}

void BudgetStore::on(const net::Event& event, net::Actions& out) {
    const base::Instant now = event.at;
    if (const auto* fired = std::get_if<net::TimerFired>(&event.what)) {
        if (fired->id == kTick) on_time(now, out);
    } else if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
        if (connected->id == connection_) greet(now, out);
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
        if (failed->id == connection_)
            lost(now, "no connection: " + error_words(failed->text), false, out);
    } else if (const auto* got = std::get_if<net::Received>(&event.what)) {
        if (got->id == connection_) received(now, got->bytes, out);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
        if (closed->id == connection_) lost(now, "it closed the connection", true, out);
    }
    arm(out);
}

}  // namespace fullstop::adapters::redis
