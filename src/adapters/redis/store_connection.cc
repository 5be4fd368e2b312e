// The one connection of a store: greeting, calls, their replies in the same order, and what becomes
// of them when it breaks.
#include <fmt/format.h>
#include <algorithm>

#include "adapters/redis/budget_lua.h"
#include "adapters/redis/budget_store.h"
#include "adapters/redis/limits.h"

namespace fullstop::adapters::redis {
namespace {

constexpr std::size_t kShaDigits = 40;

bool is_no_script(const Reply& reply) {
    return reply.kind == Reply::Kind::kError && reply.text.starts_with("NOSCRIPT");
}

}  // namespace

void BudgetStore::connect(base::Instant, net::Actions& out) {
    connection_ = ++last_connection_;
    reader_ = ReplyReader();
    out.emplace_back(
        net::Connect{.id = connection_,
                     .endpoint = {.host = where_.host, .port = where_.port, .tls = where_.tls},
                     .timeout = where_.timeout});
}

void BudgetStore::greet(base::Instant now, net::Actions& out) {
    if (!where_.password.empty()) {
        std::vector<std::string> words = {"AUTH"};
        if (!where_.user.empty()) words.push_back(where_.user);
        words.push_back(where_.password);
        send(now, {.step = Flight::Step::kAuth}, command(words), out);
    }
    if (where_.database != 0)
        send(now, {.step = Flight::Step::kSelect},
             command({"SELECT", std::to_string(where_.database)}), out);
    send(now, {.step = Flight::Step::kLoad}, command({"SCRIPT", "LOAD", std::string(kBudgetLua)}),
         out);
}

void BudgetStore::came_up(base::Instant now, net::Actions& out) {
    up_ = true;
    trying_ = false;
    since_ = now;
    words_.clear();
    // Who still waits is asked for again; who runs is made known, for the store may have lost its
    // memory.
    renewals_.clear();
    for (const auto& [id, open] : open_) {
        if (open.waiting)
            call(now, Operation::kReserve, id, false, out);
        else if (!open.settling)
            renewals_.push_back({now, id});
    }
    send_waiting(now, out);
}

// To the store
// -------------------------------------------------------------------------------------------------

void BudgetStore::send(base::Instant now, const Flight& flight, std::string bytes,
                       net::Actions& out) {
    if (flights_.empty()) progress_ = now;
    flights_.push_back(flight);
    out.emplace_back(net::Send{connection_, std::move(bytes)});
}

void BudgetStore::call(base::Instant now, Operation operation, std::uint64_t id, bool whole_script,
                       net::Actions& out) {
    Open& open = open_.at(id);
    open.told = true;
    // An end that was told before, of something that the store knew: when it knows it no more, it
    // has heard.
    const bool add = !(open.again && open.held);
    send(now, {.operation = operation, .id = id},
         call_bytes({.operation = operation,
                     .ask = open.ask,
                     .prefix = where_.prefix,
                     .instance = instance_,
                     .used = open.used,
                     .add_unknown = add},
                    whole_script ? "" : sha_),
         out);
}

void BudgetStore::send_waiting(base::Instant now, net::Actions& out) {
    while (up_ && !to_settle_.empty() && flights_.size() < kMaxOnTheWire) {
        const std::uint64_t id = to_settle_.front();
        to_settle_.pop_front();
        call(now, Operation::kSettle, id, false, out);
    }
    while (up_ && !renewals_.empty() && renewals_.front().at <= now &&
           flights_.size() < kMaxOnTheWire) {
        const std::uint64_t id = renewals_.front().id;
        renewals_.pop_front();
        const auto at = open_.find(id);
        if (at == open_.end() || at->second.settling) continue;
        call(now, Operation::kRenew, id, false, out);
        renewals_.push_back({now + kRenewAfter, id});
    }
}

// From the store
// -------------------------------------------------------------------------------------------------

void BudgetStore::received(base::Instant now, std::string_view bytes, net::Actions& out) {
    const net::ConnectionId of = connection_;
    if (const auto fed = reader_.feed(bytes); !fed)
        return give_up(now, "it is no Redis: " + error_words(fed.error()), false, out);
    while (connection_ == of) {
        auto reply = reader_.next();
        if (!reply)
            return give_up(now, "it is no Redis: " + error_words(reply.error()), false, out);
        if (!*reply) break;
        if (flights_.empty()) return give_up(now, "it says what was not asked", false, out);
        const Flight flight = flights_.front();
        flights_.pop_front();
        progress_ = now;
        replied(now, flight, **reply, out);
    }
    send_waiting(now, out);
}

void BudgetStore::replied(base::Instant now, const Flight& flight, const Reply& reply,
                          net::Actions& out) {
    if (flight.step != Flight::Step::kCall) return greeted(now, flight, reply, out);
    // Its scripts were flushed: the text itself is sent, which loads it again.
    if (is_no_script(reply)) {
        const auto at = open_.find(flight.id);
        // What has been overtaken by its end, or by its time, is not asked for any more.
        const bool wanted = at != open_.end() &&
                            (flight.operation == Operation::kReserve
                                 ? at->second.waiting
                                 : at->second.settling == (flight.operation == Operation::kSettle));
        if (wanted) call(now, flight.operation, flight.id, true, out);
        return;
    }
    const auto verdict = read_verdict(reply);
    if (!verdict) return call_failed(now, flight, reply, out);
    called(now, flight, *verdict);
}

/// A command that the store does not know is repeated in its error, a password with it: of those
/// only the kind is told.
void BudgetStore::greeted(base::Instant now, const Flight& flight, const Reply& reply,
                          net::Actions& out) {
    const bool error = reply.kind == Reply::Kind::kError;
    if (flight.step == Flight::Step::kAuth && error)
        return give_up(now,
                       fmt::format("it refuses the user or password ({})",
                                   error_words(reply.text.substr(0, reply.text.find(' ')))),
                       false, out);
    if (error) return give_up(now, error_words(reply.text), false, out);
    if (flight.step != Flight::Step::kLoad) return;
    if (reply.kind != Reply::Kind::kText || reply.text.size() != kShaDigits)
        return give_up(now, "it does not load scripts", false, out);
    sha_ = reply.text;
    came_up(now, out);
}

void BudgetStore::called(base::Instant now, const Flight& flight, const Verdict& verdict) {
    const auto at = open_.find(flight.id);
    if (at == open_.end()) return;
    Open& open = at->second;
    if (flight.operation == Operation::kSettle) return forget(flight.id, false);
    open.held = open.held || verdict.granted;
    if (!open.waiting || flight.operation == Operation::kRenew) return;
    using What = gateway::StoreAnswer::What;
    answer(now, open,
           {.id = flight.id,
            .what = verdict.granted ? What::kGranted : What::kRefused,
            .window = verdict.window,
            .left = verdict.left,
            .retry_after = verdict.retry_after});
    if (!verdict.granted) forget(flight.id, false);
}

/// Whatever the reason (loading, out of memory, a replica, a cluster's other node), this store does
/// not count now.
void BudgetStore::call_failed(base::Instant now, const Flight& flight, const Reply& reply,
                              net::Actions& out) {
    if (const auto at = open_.find(flight.id);
        flight.operation == Operation::kSettle && at != open_.end()) {
        if (++at->second.errors >= kMaxSettleErrors)
            forget(flight.id, true);
        else
            to_settle_.push_front(flight.id);
    }
    give_up(now,
            reply.kind == Reply::Kind::kError ? error_words(reply.text)
                                              : "its reply is none of the budget script",
            false, out);
}

// When it breaks
// -------------------------------------------------------------------------------------------------

void BudgetStore::give_up(base::Instant now, std::string words, bool good, net::Actions& out) {
    if (connection_ != 0)
        out.emplace_back(net::Close{.id = connection_, .kind = net::CloseKind::kFin});
    lost(now, std::move(words), good, out);
}

void BudgetStore::lost(base::Instant now, std::string words, bool good, net::Actions& out) {
    for (auto flight = flights_.rbegin(); flight != flights_.rend(); ++flight) {
        if (flight->step != Flight::Step::kCall || flight->operation != Operation::kSettle)
            continue;
        const auto at = open_.find(flight->id);
        if (at == open_.end()) continue;
        at->second.again = true;
        to_settle_.push_front(flight->id);
    }
    flights_.clear();
    connection_ = 0;
    words_ = std::move(words);
    const bool at_once = good && up_ && now - since_ >= kGoodConnection;
    up_ = false;
    trying_ = at_once;
    if (at_once) {
        failures_ = 0;
        return connect(now, out);
    }
    lose_waiting(now);
    retry_later(now, out);
}

void BudgetStore::retry_later(base::Instant now, net::Actions&) {
    if (retired_)  // their reservations run out by themselves
        while (!to_settle_.empty()) forget(to_settle_.front(), true), to_settle_.pop_front();
    retry_at_ = now + std::min<base::Duration>(kFirstPause * (1LL << std::min(failures_, 10)),
                                               kLongestPause);
    ++failures_;
}

}  // namespace fullstop::adapters::redis
