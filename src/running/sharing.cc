// A store answers when it is asked or when its connection says something; the gateway hears of it
// in a turn of its own.
#include "running/sharing.h"

#include <utility>

#include "adapters/redis/budget_store.h"
#include "adapters/redis/instance.h"

namespace fullstop::running {

class Sharing::Link final : public net::Part {
public:
    Link(Sharing& sharing, const gateway::SharedStore& where)
        : sharing_(sharing), store_(where, adapters::redis::random_instance()) {}

    void start(base::Instant now, net::Actions& out) override {
        started_ = true;
        store_.start(now, out);
        for (const auto& ask : std::exchange(early_, {})) store_.ask(now, ask, out);
        if (retired_) store_.retire(now, out);
        sharing_.due();
    }
    void on(const net::Event& event, net::Actions& out) override {
        store_.on(event, out);
        sharing_.due();
    }
    bool done() const override { return store_.done(); }

    void ask(base::Instant now, const gateway::StoreAsk& ask) {
        if (!started_) return early_.push_back(ask);
        net::Actions actions;
        store_.ask(now, ask, actions);
        sharing_.host_.act(*this, std::move(actions));
        sharing_.due();
    }
    void retire(base::Instant now) {
        if (std::exchange(retired_, true) || !started_) return;
        net::Actions actions;
        store_.retire(now, actions);
        sharing_.host_.act(*this, std::move(actions));
    }
    bool knows(std::uint64_t id) const { return store_.knows(id); }
    bool idle() const { return early_.empty() && store_.idle(); }
    adapters::redis::BudgetStore& store() { return store_; }

private:
    Sharing& sharing_;
    adapters::redis::BudgetStore store_;
    std::vector<gateway::StoreAsk> early_;  ///< before the host started it
    bool started_ = false, retired_ = false;
};

Sharing::Sharing(adapters::asio::Loop& loop, adapters::asio::Host& host, Says says)
    : Member(loop.turns()), clock_(loop.clock()), host_(host), says_(std::move(says)) {}
Sharing::~Sharing() = default;

void Sharing::configure(const std::optional<gateway::SharedStore>& store) {
    auto place = store;
    if (place) place->on_loss = {};  // the gateway's business
    if (place == where_) return;
    where_ = place;
    if (current_ != nullptr) current_->retire(clock_.now());
    current_ = nullptr;
    if (store) {
        current_ = links_.emplace_back(std::make_unique<Link>(*this, *store)).get();
        host_.add(*current_, adapters::asio::Host::Wait::kCompanion);
    }
    due();
}

/// An end is told to the store that was asked.
void Sharing::ask(base::Instant now, const gateway::StoreAsk& ask) {
    Link* to = current_;
    if (const auto* settle = std::get_if<gateway::StoreSettle>(&ask))
        for (const auto& link : links_)
            if (link->knows(settle->id)) to = link.get();
    if (to != nullptr) to->ask(now, ask);
}

void Sharing::take_turn() {
    std::vector<gateway::StoreAnswer> answers;
    for (const auto& link : links_)
        for (const auto& answer : link->store().take_answers()) answers.push_back(answer);
    says_(current_ != nullptr ? current_->store().state() : gateway::StoreState{}, answers);
}

bool Sharing::idle() const {
    for (const auto& link : links_)
        if (!link->idle()) return false;
    return true;
}

}  // namespace fullstop::running
