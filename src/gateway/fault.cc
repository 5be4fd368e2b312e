// How an exchange ends when an exception was thrown for it.
#include "gateway/fault.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"
#include "gateway/gateway.h"

namespace fullstop::gateway {

void Gateway::end_by_fault(net::ConnectionId id, std::string_view what, Came came,
                           std::string bytes, base::Instant now, Actions& out) {
    const auto at = live_.find(id);
    note_fault(at == live_.end() ? nullptr : at->second.exchange.get(), what, came.bytes);
    if (at == live_.end()) return;
    Exchange& exchange = *at->second.exchange;
    try {
        if (!exchange.over()) exchange.fault(what, now, bytes);
    } catch (const std::exception&) {
        exchange.drop();
    }
    settle(at, std::move(bytes), came.link, now, out);
}

void Gateway::note_fault(const Exchange* exchange, std::string_view what, std::string_view bytes) {
    metrics_.fault();
    if (!options_.fault) return;
    Fault fault{.what = std::string(what), .bytes = std::string(bytes.substr(0, kMaxFaultBytes))};
    if (exchange != nullptr) {
        fault.request_id = exchange->request_id(), fault.method = exchange->method(),
        fault.path = exchange->work().path;
        fault.request_bytes = exchange->asked_bytes(), fault.relayed_bytes = exchange->relayed();
    }
    options_.fault(fault);
}

void Gateway::keep_record(const Exchange& exchange, const std::optional<End>& end,
                          base::Instant now) {
    if (!options_.ended || !exchange.work().answer) return;
    try {
        options_.ended(exchange.as_record(options_.started, now, end));
    } catch (const std::exception& thrown) {
        note_fault(&exchange, thrown.what(), "");
    }
}

std::string fault_line(const Fault& fault) {
    return fmt::format(
        "a fault of this gateway ended one request, please report it: {}; {} {}, request {} of {} "
        "bytes, {} bytes relayed, at: {}\n",
        base::printable(fault.what), base::printable(fault.method), base::printable(fault.path),
        base::printable(fault.request_id), fault.request_bytes, fault.relayed_bytes,
        base::printable(fault.bytes));
}

}  // namespace fullstop::gateway
