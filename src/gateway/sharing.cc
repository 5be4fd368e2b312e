// Budgets that several gateways share. A request that fits this gateway's own counts asks the
// common store and waits for the answer; without an answer the policy decides. The own counts go on
// meanwhile, so that they hold when the store is down.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/gateway.h"

namespace fullstop::gateway {

/// False: the store's answer decides (answered()).
bool Gateway::ask_store(Live::iterator at, base::Instant now, Actions& out) {
    if (!options_.policy.budgets.shared) return true;
    Entry& entry = at->second;
    const Work& work = entry.exchange->work();
    entry.asking = budget_.shared_windows(work.client, work.path);
    if (entry.asking.empty()) return true;
    entry.shared = true;
    out.store.emplace_back(
        StoreReserve{.id = at->first, .tokens = entry.reserved, .windows = entry.asking});
    watch(*at, now, out);
    return false;
}

void Gateway::answered(const StoreAnswer& answer, base::Instant now, Actions& out) {
    const auto at = live_.find(answer.id);
    if (at == live_.end()) return;  // its client has left; the store has heard of that
    Entry& entry = at->second;
    const std::vector<SharedWindow> asked = std::exchange(entry.asking, {});
    if (asked.empty()) return;
    using Outcome = StoreMetrics::Outcome;
    switch (answer.what) {
        case StoreAnswer::What::kLost: return without_store(at, answer.took, now, out);
        case StoreAnswer::What::kGranted:
            store_metrics_.asked(Outcome::kGranted, answer.took);
            return wait_or_refuse(at, now, out);
        case StoreAnswer::What::kRefused: break;
    }
    store_metrics_.asked(Outcome::kRefused, answer.took);
    entry.shared = false;
    const SharedWindow& window = asked[std::min(answer.window, asked.size() - 1)];
    over_budget(at, refusal_message(window.what, window.limit, answer.left, entry.reserved),
                answer.retry_after, now, out);
}

void Gateway::without_store(Live::iterator at, base::Duration took, base::Instant now,
                            Actions& out) {
    const auto& shared = options_.policy.budgets.shared;
    const bool passes = !shared || shared->on_loss == SharedStore::OnLoss::kOpen;
    store_metrics_.asked(
        passes ? StoreMetrics::Outcome::kLostPassed : StoreMetrics::Outcome::kLostRefused, took);
    if (passes) return wait_or_refuse(at, now, out);
    const std::string why = store_.trouble.empty() ? "" : ": " + store_.trouble;
    refuse(
        at, 503,
        fmt::format("the store of shared budgets at {} does not answer{}; on_loss is fail_closed",
                    shown(*shared), why),
        kStoreRetryAfter, now, out);
}

void Gateway::over_budget(Live::iterator at, const std::string& message,
                          std::optional<base::Duration> retry_after, base::Instant now,
                          Actions& out) {
    refuse(at, 429, message,
           retry_after ? std::optional(std::min(*retry_after, kMaxRetryAfter)) : std::nullopt, now,
           out);
}

}  // namespace fullstop::gateway
