// Counters of the store as Prometheus text, and its name for people.
#include "gateway/budget/shared_budget.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace fullstop::gateway {
namespace {

constexpr std::array kOutcomes = {"granted", "refused", "lost_passed", "lost_refused"};

}  // namespace

std::string shown(const SharedStore& store) {
    const bool six = store.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}/{}", six ? "[" : "", store.host, six ? "]" : "", store.port,
                       store.database);
}

void StoreMetrics::asked(Outcome outcome, base::Duration took) {
    ++outcomes_[static_cast<std::size_t>(outcome)];
    seconds_.add(base::to_seconds(took));
}

void StoreMetrics::write(std::string& out, const StoreState& state) const {
    const auto put = std::back_inserter(out);
    const auto number = [&](std::string_view name, std::string_view type, std::string_view help,
                            std::int64_t value) {
        serving::introduce_metric(out, name, type, help);
        fmt::format_to(put, "{} {}\n", name, value);
    };
    number("fullstop_gateway_budget_store_up", "gauge",
           "0 while the store of shared budgets does not answer", state.up ? 1 : 0);
    const std::string_view asks = "fullstop_gateway_budget_asks_total",
                           seconds = "fullstop_gateway_budget_ask_seconds";
    serving::introduce_metric(
        out, asks, "counter",
        "Requests by what the store said; lost: it said nothing, and on_loss let them "
        "pass or refused them");
    for (std::size_t i = 0; i < kOutcomes.size(); ++i)
        fmt::format_to(put, "{}{{outcome=\"{}\"}} {}\n", asks, kOutcomes[i], outcomes_[i]);
    serving::introduce_metric(out, seconds, "histogram",
                              "From asking the store until it answered or was given up");
    seconds_.write(out, seconds, "");
    number("fullstop_gateway_budget_settlements_kept", "gauge",
           "Settlements that the store has not confirmed yet",
           static_cast<std::int64_t>(state.kept));
    number("fullstop_gateway_budget_settlements_dropped_total", "counter",
           "Settlements that were forgotten: too many, or the store refused them", state.dropped);
}

}  // namespace fullstop::gateway
