// A handful of upstreams: each question looks at all of them.
#include "gateway/placement/placement.h"

#include <algorithm>
#include <tuple>

namespace fullstop::gateway {
namespace {

/// Rendezvous hashing: when an upstream comes or goes, only its own sessions move. SplitMix64's
/// mixing of both numbers.
std::uint64_t weight(std::uint64_t affinity, const std::string& name) {
    std::uint64_t z = affinity;
    for (const char c : name) {
        z = (z ^ static_cast<unsigned char>(c)) * 0xBF58476D1CE4E5B9ULL;
        z ^= z >> 29;
    }
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

}  // namespace

void Upstreams::configure(const std::vector<UpstreamOptions>& options) {
    std::set<UpstreamId> named;
    for (const UpstreamOptions& each : options) {
        const auto same = std::ranges::find_if(all_, [&](const auto& known) {
            return !known.second->retired() && known.second->options().url.text == each.url.text &&
                   !named.contains(known.first);
        });
        if (same != all_.end()) {
            same->second->configure(each);
            named.insert(same->first);
        } else {
            named.insert(next_);
            all_.emplace(next_++, std::make_unique<Upstream>(each));
        }
    }
    for (const auto& [id, upstream] : all_)
        if (!named.contains(id)) upstream->retire();
    sweep();
}

Upstream* Upstreams::find(UpstreamId id) {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second.get();
}

std::vector<UpstreamId> Upstreams::eligible(const Work& work,
                                            const std::set<UpstreamId>& tried) const {
    const auto fits = [&](bool by_model) {
        std::vector<UpstreamId> out;
        for (const auto& [id, upstream] : all_)
            if (upstream->takes_new() && !tried.contains(id) &&
                (!by_model || upstream->serves(work.model)))
                out.push_back(id);
        return out;
    };
    // A name that nobody lists is the upstream's to refuse: many servers take any.
    const bool listed = !work.model.empty() && std::ranges::any_of(all_, [&](const auto& each) {
        return each.second->takes_new() && each.second->names_models() &&
               each.second->serves(work.model);
    });
    return fits(listed);
}

std::optional<Upstreams::Choice> Upstreams::choose(const std::vector<UpstreamId>& among,
                                                   const Work& work,
                                                   std::optional<std::int64_t> max_tokens,
                                                   const std::set<UpstreamId>& claimed,
                                                   double affinity, base::Instant now) const {
    // When all are failing, one is better than none: the one that was failing longest ago.
    const bool any_usable =
        std::ranges::any_of(among, [&](UpstreamId id) { return all_.at(id)->health.usable(now); });
    UpstreamId preferred = 0;
    if (work.affinity != 0)
        for (const UpstreamId id : among)
            if (all_.at(id)->health.usable(now) &&
                (preferred == 0 || weight(work.affinity, all_.at(id)->name()) >
                                       weight(work.affinity, all_.at(preferred)->name())))
                preferred = id;
    std::optional<Choice> best;
    std::tuple<base::Instant, double, std::int64_t> best_key;
    for (const UpstreamId id : among) {
        const Upstream& upstream = *all_.at(id);
        if (any_usable && !upstream.health.usable(now)) continue;
        const std::int64_t need = upstream.need(work, max_tokens);
        if (work.answer && (claimed.contains(id) || !upstream.has_room(need))) continue;
        const double cost = upstream.busy(now) - (id == preferred ? affinity : 0);
        const std::tuple key(any_usable ? base::Instant{} : upstream.health.until(), cost,
                             upstream.served());
        if (best && key >= best_key) continue;
        best = Choice{id, need};
        best_key = key;
    }
    return best;
}

std::optional<base::Instant> Upstreams::next_trial(base::Instant now) const {
    std::optional<base::Instant> first;
    for (const auto& [id, upstream] : all_)
        if (upstream->health.open() && upstream->health.until() > now &&
            (!first || upstream->health.until() < *first))
            first = upstream->health.until();
    return first;
}

std::optional<std::int64_t> Upstreams::slots() const {
    std::int64_t sum = 0;
    for (const auto& [id, upstream] : all_) {
        if (!upstream->takes_new()) continue;
        const auto slots = upstream->slots();
        if (!slots) return std::nullopt;
        sum += *slots;
    }
    return sum;
}

std::int64_t Upstreams::running() const {
    std::int64_t sum = 0;
    for (const auto& [id, upstream] : all_) sum += upstream->running();
    return sum;
}

void Upstreams::sweep() {
    std::erase_if(all_, [](const auto& each) {
        return each.second->retired() && each.second->running() == 0;
    });
}

}  // namespace fullstop::gateway
