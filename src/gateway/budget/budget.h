// Tokens that may be used within a time: by everybody, by one API key, on one route. What a request
// may come to is set aside before it starts, and corrected by its usage when it ends, so that
// answers under way never overshoot. A request that does not fit is refused before anything is
// sent; none is ever cut for a budget.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/budget/shared_budget.h"
#include "gateway/policy.h"

namespace fullstop::gateway {

/// One sliding window, moved on in kWindowSteps steps.
class Window {
public:
    explicit Window(TokenWindow limit) : limit_(limit) {}
    void set_limit(TokenWindow limit) { limit_ = limit; }
    const TokenWindow& limit() const { return limit_; }

    std::int64_t left(base::Instant now);
    /// How long until `tokens` fit, if nothing else starts; absent: never, they exceed the limit
    /// itself.
    std::optional<base::Duration> until_fits(std::int64_t tokens, base::Instant now);
    void reserve(std::int64_t tokens) { reserved_ += tokens; }
    void settle(std::int64_t reserved, std::int64_t used, base::Instant now);
    bool idle(base::Instant now) { return reserved_ == 0 && left(now) == limit_.tokens; }

private:
    std::int64_t step_of(base::Instant now) const;
    void advance(base::Instant now);

    TokenWindow limit_;
    std::int64_t reserved_ = 0, spent_ = 0, step_ = 0;
    std::array<std::int64_t, kWindowSteps> steps_{};  ///< spent, by step modulo
};

/// Which budget, its size and what is left.
std::string refusal_message(const std::string& what, const TokenWindow& limit, std::int64_t left,
                            std::int64_t tokens);

class Budget {
public:
    explicit Budget(Budgets limits) : limits_(std::move(limits)) {}
    /// What was used so far stays used.
    void configure(Budgets limits);

    struct Refusal {
        std::string message;                        ///< which budget, its size and what is left
        std::optional<base::Duration> retry_after;  ///< absent: it can never fit
    };
    /// Nothing is set aside when it is refused.
    std::optional<Refusal> reserve(const std::string& client, const std::string& route,
                                   std::int64_t tokens, base::Instant now);
    void settle(const std::string& client, const std::string& route, std::int64_t reserved,
                std::int64_t used, base::Instant now);
    /// The same windows by their names in a store that several gateways share.
    std::vector<SharedWindow> shared_windows(const std::string& client,
                                             const std::string& route) const;
    bool any() const { return limits_.overall || limits_.per_key || !limits_.routes.empty(); }

private:
    struct Named {
        Window* window;
        std::string what;
    };
    std::vector<Named> windows(const std::string& client, const std::string& route,
                               base::Instant now);

    Budgets limits_;
    std::optional<Window> overall_;
    std::map<std::string, Window> clients_, routes_;
};

}  // namespace fullstop::gateway
