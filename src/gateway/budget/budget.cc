// Three kinds of windows, asked together and taken together.
#include "gateway/budget/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serving/limits.h"

namespace fullstop::gateway {
namespace {

constexpr const char* kOfAll = "the budget of all";
std::string name_of_key(const std::string& client) {
    return client.empty() ? "the budget of requests without a key" : "the budget of this key";
}
std::string name_of_route(const std::string& route) { return "the budget of " + route; }

}  // namespace

std::string refusal_message(const std::string& what, const TokenWindow& limit, std::int64_t left,
                            std::int64_t tokens) {
    return fmt::format("{} is {} tokens in {:g} s; {} are left, and this request may need {}", what,
                       limit.tokens, base::to_seconds(limit.window),
                       std::max<std::int64_t>(0, left), tokens);
}

std::int64_t Window::step_of(base::Instant now) const {
    const base::Duration step =
        std::max<base::Duration>(limit_.window / kWindowSteps, base::Duration(1));
    return now.time_since_epoch() / step;
}

void Window::advance(base::Instant now) {
    const std::int64_t to = step_of(now);
    for (std::int64_t moved = std::min<std::int64_t>(to - step_, kWindowSteps); moved > 0;
         --moved) {
        std::int64_t& oldest = steps_[static_cast<std::size_t>((to - moved + 1) % kWindowSteps)];
        spent_ -= std::exchange(oldest, 0);
    }
    step_ = std::max(step_, to);
}

std::int64_t Window::left(base::Instant now) {
    advance(now);
    return limit_.tokens - reserved_ - spent_;
}

std::optional<base::Duration> Window::until_fits(std::int64_t tokens, base::Instant now) {
    std::int64_t room = left(now);
    if (room >= tokens) return base::Duration{};
    if (tokens > limit_.tokens) return std::nullopt;
    const base::Duration step = limit_.window / kWindowSteps;
    for (std::int64_t ahead = 1; ahead <= kWindowSteps; ++ahead) {
        room += steps_[static_cast<std::size_t>((step_ + ahead) % kWindowSteps)];
        if (room >= tokens) return base::Instant(step * (step_ + ahead)) - now;
    }
    return limit_.window;  // what runs holds it: at the latest a window after that has ended
}

void Window::settle(std::int64_t reserved, std::int64_t used, base::Instant now) {
    advance(now);
    reserved_ -= reserved;
    spent_ += used;
    steps_[static_cast<std::size_t>(step_ % kWindowSteps)] += used;
}

void Budget::configure(Budgets limits) {
    limits_ = std::move(limits);
    const auto same_time = [](const Window& window, const TokenWindow& limit) {
        return window.limit().window == limit.window;
    };
    // The steps of a window belong to its length: with another length the count begins anew.
    if (overall_ && limits_.overall && same_time(*overall_, *limits_.overall))
        overall_->set_limit(*limits_.overall);
    else
        overall_.reset();
    std::erase_if(clients_, [&](const auto& each) {
        return !limits_.per_key || !same_time(each.second, *limits_.per_key);
    });
    for (auto& [client, window] : clients_) window.set_limit(*limits_.per_key);
    std::erase_if(routes_, [&](const auto& each) {
        const auto limit = limits_.routes.find(each.first);
        return limit == limits_.routes.end() || !same_time(each.second, limit->second);
    });
    for (auto& [route, window] : routes_) window.set_limit(limits_.routes.at(route));
}

std::vector<Budget::Named> Budget::windows(const std::string& client, const std::string& route,
                                           base::Instant now) {
    std::vector<Named> out;
    if (limits_.overall) {
        if (!overall_) overall_.emplace(*limits_.overall);
        out.push_back({&*overall_, kOfAll});
    }
    if (limits_.per_key) {
        if (clients_.size() >= serving::kMaxClients && !clients_.contains(client))
            for (auto at = clients_.begin(); at != clients_.end();)
                at = at->second.idle(now) ? clients_.erase(at) : std::next(at);
        out.push_back(
            {&clients_.try_emplace(client, *limits_.per_key).first->second, name_of_key(client)});
    }
    if (const auto limit = limits_.routes.find(route); limit != limits_.routes.end())
        out.push_back(
            {&routes_.try_emplace(route, limit->second).first->second, name_of_route(route)});
    return out;
}

std::vector<SharedWindow> Budget::shared_windows(const std::string& client,
                                                 const std::string& route) const {
    std::vector<SharedWindow> out;
    if (limits_.overall) out.push_back({"overall", *limits_.overall, kOfAll});
    if (limits_.per_key)
        out.push_back(
            {"key:" + (client.empty() ? "none" : client), *limits_.per_key, name_of_key(client)});
    if (const auto limit = limits_.routes.find(route); limit != limits_.routes.end())
        out.push_back({"route:" + route, limit->second, name_of_route(route)});
    return out;
}

std::optional<Budget::Refusal> Budget::reserve(const std::string& client, const std::string& route,
                                               std::int64_t tokens, base::Instant now) {
    const std::vector<Named> all = windows(client, route, now);
    std::optional<Refusal> worst;
    for (const Named& each : all) {
        const auto wait = each.window->until_fits(tokens, now);
        if (wait && wait->count() == 0) continue;
        std::string message =
            refusal_message(each.what, each.window->limit(), each.window->left(now), tokens);
        if (!worst || !wait || (worst->retry_after && *wait > *worst->retry_after))
            worst = Refusal{std::move(message), wait};
        if (!wait) break;
    }
    if (worst) return worst;
    for (const Named& each : all) each.window->reserve(tokens);
    return std::nullopt;
}

void Budget::settle(const std::string& client, const std::string& route, std::int64_t reserved,
                    std::int64_t used, base::Instant now) {
    for (const Named& each : windows(client, route, now)) each.window->settle(reserved, used, now);
}

}  // namespace fullstop::gateway
