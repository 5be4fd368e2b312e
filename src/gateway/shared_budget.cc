// Counters of the store as Prometheus text, and its name for people.
#include "gateway/shared_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace fullstop::gateway {
namespace {

constexpr std::array kOutcomes = {"granted", "refused", "lost_passed", "lost_refused"};

}  // namespace

std::string shown(const SharedStore& store) {
    const bool six = store.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}/{}", six ? "[" : "", store.host, six ? "]" : "", store.port, store.database);
}

void StoreMetrics::asked(Outcome outcome, base::Duration took) {
    const double seconds = base::to_seconds(took);
    ++outcomes_[static_cast<std::size_t>(outcome)];
    ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin())];
    sum_ += seconds;
}

void StoreMetrics::write(std::string& out, const StoreState& state) const {
    const auto put = std::back_inserter(out);
    const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
        fmt::format_to(put, "# HELP fullstop_gateway_budget_{0} {2}\n# TYPE fullstop_gateway_budget_{0} {1}\n", name, type, help);
    };
    head("store_up", "gauge", "0 while the store of shared budgets does not answer");
    fmt::format_to(put, "fullstop_gateway_budget_store_up {}\n", state.up ? 1 : 0);
    head("asks_total", "counter", "Requests by what the store said; lost: it said nothing, and on_loss let them pass or refused them");
    for (std::size_t i = 0; i < kOutcomes.size(); ++i)
        fmt::format_to(put, "fullstop_gateway_budget_asks_total{{outcome=\"{}\"}} {}\n", kOutcomes[i], outcomes_[i]);
    head("ask_seconds", "histogram", "From asking the store until it answered or was given up");
    std::int64_t below = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i)
        fmt::format_to(put, "fullstop_gateway_budget_ask_seconds_bucket{{le=\"{}\"}} {}\n", kBounds[i], below += counts_[i]);
    below += counts_.back();
    fmt::format_to(put,
                   "fullstop_gateway_budget_ask_seconds_bucket{{le=\"+Inf\"}} {0}\nfullstop_gateway_budget_ask_seconds_sum {1}\n"
                   "fullstop_gateway_budget_ask_seconds_count {0}\n",
                   below, sum_);
    head("settlements_kept", "gauge", "Settlements that the store has not confirmed yet");
    fmt::format_to(put, "fullstop_gateway_budget_settlements_kept {}\n", state.kept);
    head("settlements_dropped_total", "counter", "Settlements that were forgotten: too many, or the store refused them");
    fmt::format_to(put, "fullstop_gateway_budget_settlements_dropped_total {}\n", state.dropped);
}

}  // namespace fullstop::gateway
