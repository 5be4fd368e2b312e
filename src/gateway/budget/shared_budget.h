// Budgets that several gateways share: the questions to their common store and its answers, as
// values. The gateway asks before a request may wait, for all its windows at once, and settles when
// the request ends; adapters/redis reaches the store. Each gateway also keeps its own counts, which
// hold when the store is down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "gateway/policy.h"
#include "serving/prometheus_text.h"

namespace fullstop::gateway {

struct SharedWindow {
    std::string name;  ///< the same in every gateway; a client is named by a digest
    TokenWindow limit;
    std::string what;  ///< for people
};
/// All of the windows, or none. It is answered once (StoreAnswer), at the latest after the store's
/// timeout.
struct StoreReserve {
    std::uint64_t id = 0;  ///< of the request; unique in this process
    std::int64_t tokens = 0;
    std::vector<SharedWindow> windows;
};
/// Ends what was asked with this id, granted or not, answered or not; not sent after a refusal.
struct StoreSettle {
    std::uint64_t id = 0;
    std::int64_t used = 0;
};
using StoreAsk = std::variant<StoreReserve, StoreSettle>;

struct StoreAnswer {
    enum class What { kGranted, kRefused, kLost };
    std::uint64_t id = 0;
    What what = What::kLost;
    std::size_t window = 0;  ///< kRefused: which of them, and how much it has left
    std::int64_t left = 0;
    std::optional<base::Duration> retry_after = {};  ///< absent: it can never fit
    base::Duration took{};
};

/// How the store is.
struct StoreState {
    bool up = false;
    std::string trouble;       ///< why it is not up, without any secret
    std::size_t kept = 0;      ///< settlements that the store has not confirmed yet
    std::int64_t dropped = 0;  ///< settlements that were forgotten
    bool operator==(const StoreState&) const = default;
};

/// What the gateway did with its store so far, for its pages.
class StoreMetrics {
public:
    enum class Outcome { kGranted, kRefused, kLostPassed, kLostRefused };
    void asked(Outcome outcome, base::Duration took);
    void write(std::string& out, const StoreState& state) const;

private:
    /// From a store on this machine to the default timeout.
    static constexpr std::array<double, 7> kBounds = {0.0005, 0.001, 0.005, 0.02, 0.1, 0.25, 0.5};
    std::array<std::int64_t, 4> outcomes_{};
    serving::Histogram seconds_{kBounds};
};

/// HOST:PORT/DATABASE.
std::string shown(const SharedStore& store);

}  // namespace fullstop::gateway
