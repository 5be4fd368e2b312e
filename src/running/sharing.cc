// A store may be asked while it is being called itself: then its actions join those of the call
// that runs.
#include "running/sharing.h"

#include <utility>

#include "adapters/redis/budget_store.h"
#include "adapters/redis/instance.h"

namespace fullstop::running {

class Sharing::Link final : public net::Part {
public:
    Link(adapters::asio::Host& host, const gateway::SharedStore& where, std::function<void()> told)
        : host_(host), told_(std::move(told)), store_(where, adapters::redis::random_instance()) {}

    void start(base::Instant now, net::Actions& out) override {
        started_ = true;
        call(out, [&] {
            store_.start(now, out);
            for (const auto& ask : std::exchange(early_, {})) store_.ask(now, ask, out);
            if (retired_) store_.retire(now, out);
        });
    }
    void on(const net::Event& event, net::Actions& out) override {
        call(out, [&] { store_.on(event, out); });
    }
    bool done() const override { return store_.done(); }

    void ask(base::Instant now, const gateway::StoreAsk& ask) {
        if (!started_)
            early_.push_back(ask);
        else if (call_ != nullptr)
            store_.ask(now, ask, *call_);
        else
            host_.act(*this, [&](base::Instant, net::Actions& out) { store_.ask(now, ask, out); });
    }
    void retire() {
        retired_ = true;
        if (started_)
            host_.act(*this,
                      [&](base::Instant now, net::Actions& out) { store_.retire(now, out); });
    }
    bool knows(std::uint64_t id) const { return store_.knows(id); }
    bool idle() const { return early_.empty() && store_.idle(); }
    adapters::redis::BudgetStore& store() { return store_; }
    const adapters::redis::BudgetStore& store() const { return store_; }

private:
    template <class Do>
    void call(net::Actions& out, const Do& what) {
        call_ = &out;
        what();
        told_();
        call_ = nullptr;
    }

    adapters::asio::Host& host_;
    std::function<void()> told_;
    adapters::redis::BudgetStore store_;
    std::vector<gateway::StoreAsk> early_;  ///< before the host started it
    net::Actions* call_ = nullptr;
    bool started_ = false, retired_ = false;
};

Sharing::Sharing(adapters::asio::Host& host, std::function<void()> told)
    : host_(host), told_(std::move(told)) {}
Sharing::~Sharing() = default;

void Sharing::configure(const std::optional<gateway::SharedStore>& store) {
    auto place = store;
    if (place) place->on_loss = {};  // the gateway's business
    if (place == where_) return;
    where_ = place;
    if (current_ != nullptr) current_->retire();
    current_ = nullptr;
    if (!store) return;
    current_ = links_.emplace_back(std::make_unique<Link>(host_, *store, told_)).get();
    host_.add(*current_, adapters::asio::Host::Wait::kCompanion);
}

/// An end is told to the store that was asked.
void Sharing::ask(base::Instant now, const gateway::StoreAsk& ask) {
    Link* to = current_;
    if (const auto* settle = std::get_if<gateway::StoreSettle>(&ask))
        for (const auto& link : links_)
            if (link->knows(settle->id)) to = link.get();
    if (to != nullptr) to->ask(now, ask);
}

std::vector<gateway::StoreAnswer> Sharing::take_answers() {
    std::vector<gateway::StoreAnswer> out;
    for (const auto& link : links_)
        for (const auto& answer : link->store().take_answers()) out.push_back(answer);
    return out;
}

gateway::StoreState Sharing::state() const {
    return current_ != nullptr ? current_->store().state() : gateway::StoreState{};
}

bool Sharing::idle() const {
    for (const auto& link : links_)
        if (!link->idle()) return false;
    return true;
}

}  // namespace fullstop::running
