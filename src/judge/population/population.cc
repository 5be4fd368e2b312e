#include "judge/population/population.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "judge/signs/end_kind.h"

namespace fullstop::judge {
namespace {

using answer::Record;
using Group = std::vector<const Record*>;

/// Output tokens that had come by `at`: text events are spread over the stream, tokens in
/// proportion.
std::int64_t output_by(const Record& record, base::Duration at) {
    const std::int64_t all = record.length_tokens().value_or(record.text_events);
    if (!record.timeline.first_token || *record.timeline.first_token > at) return 0;
    base::Duration moment = *record.timeline.first_token;
    std::int64_t events = 1;
    for (const base::Duration gap : record.timeline.gaps) {
        moment += gap;
        if (moment > at) break;
        ++events;
    }
    const auto total = static_cast<std::int64_t>(record.timeline.gaps.size()) + 1;
    return events >= total ? all : all * events / total;
}

void weigh(Cluster& cluster, const Group& group, const PromptTokens& prompts) {
    std::int64_t sum = 0;
    bool known = true;
    for (const Record* record : group) {
        if (!is_timed(*record) || *record->timeline.sent > cluster.at ||
            *record->timeline.ended + kSimultaneous < cluster.at)
            continue;
        ++cluster.live;
        const auto prompt = prompt_tokens_of(*record, &prompts);
        known = known && prompt.has_value();
        sum += prompt.value_or(0) + output_by(*record, cluster.at);
    }
    if (known && cluster.live > 0) cluster.tokens_live = sum;
}

std::vector<Cluster> clusters_of(Group members, const Group& group, const PromptTokens& prompts) {
    std::erase_if(members, [](const Record* record) { return !is_timed(*record); });
    std::ranges::sort(members, {}, [](const Record* record) { return *record->timeline.ended; });
    std::vector<Cluster> clusters;
    for (const Record* record : members) {
        const base::Duration at = *record->timeline.ended;
        if (clusters.empty() ||
            at - *clusters.back().members.front()->timeline.ended > kSimultaneous)
            clusters.push_back({});
        clusters.back().members.push_back(record);
        clusters.back().at = at;
    }
    std::erase_if(clusters, [](const Cluster& cluster) { return cluster.members.size() < 2; });
    for (Cluster& cluster : clusters) weigh(cluster, group, prompts);
    return clusters;
}

template <class Value>
std::optional<Invariant> invariant(const Group& group, const Value& value, double relative,
                                   double absolute) {
    std::vector<double> values;
    for (const Record* record : group)
        if (const auto v = value(*record)) values.push_back(*v);
    if (values.size() < 2) return std::nullopt;
    const auto [low, high] = std::ranges::minmax(values);
    double sum = 0;
    for (const double v : values) sum += v;
    const double mean = sum / static_cast<double>(values.size());
    if (high - low > std::max(absolute, relative * mean)) return std::nullopt;
    return Invariant{mean, high - low, static_cast<std::int64_t>(values.size())};
}

std::optional<double> milliseconds(const std::optional<base::Duration>& duration) {
    if (!duration) return std::nullopt;
    return base::to_ms(*duration);
}

/// Another request whose moment lies within the simultaneity window of `at`. Requests that all
/// start together lock onto nothing: the moment must differ from the answer's own start.
const Record* locked(const Record& victim, const Group& group,
                     const std::function<std::optional<base::Duration>(const Record&)>& moment) {
    for (const Record* other : group) {
        if (other == &victim) continue;
        const auto at = moment(*other);
        if (!at || *at <= *victim.timeline.sent + kSimultaneous) continue;
        const base::Duration away = *victim.timeline.ended - *at;
        if (away >= -kSimultaneous / 5 && away <= kSimultaneous) return other;
    }
    return nullptr;
}

void find_locks(Population& population, const Group& group, const Group& victims) {
    for (const Record* victim : victims) {
        if (!is_timed(*victim)) continue;
        // In a closed loop the next request starts because this answer ended: only one that had
        // started before can be a cause.
        const auto arrived = [victim](const Record& r) -> std::optional<base::Duration> {
            if (!r.timeline.started || *r.timeline.started >= *victim->timeline.ended)
                return std::nullopt;
            return r.timeline.sent;
        };
        if (const Record* other = locked(*victim, group, arrived))
            population.arrivals[victim] = other;
        const auto left = [](const Record& r) -> std::optional<base::Duration> {
            if (r.disconnect.by != answer::Disconnect::By::kUs ||
                r.end.transport != answer::Transport::kClosedByUs)
                return std::nullopt;
            return r.timeline.ended;
        };
        if (const Record* other = locked(*victim, group, left))
            population.departures[victim] = other;
    }
}

void find_invariants(Population& population, const Group& victims, const Group& limited,
                     const PromptTokens& prompts) {
    // Scheduling jitter of a busy loopback machine stays below 2 % of a timer of seconds.
    population.elapsed_ms = invariant(
        victims,
        [](const Record& r) { return is_timed(r) ? milliseconds(r.elapsed()) : std::nullopt; },
        0.02, 250);
    population.silence_ms = invariant(
        victims,
        [](const Record& r) { return is_timed(r) ? milliseconds(r.last_silence()) : std::nullopt; },
        0.02, 250);
    const auto output = [](const Record& r) -> std::optional<double> {
        const auto length = r.length_tokens();
        return length ? std::optional(static_cast<double>(*length)) : std::nullopt;
    };
    const auto total = [&](const Record& r) -> std::optional<double> {
        const auto tokens = total_tokens_of(r, &prompts);
        return tokens ? std::optional(static_cast<double>(*tokens)) : std::nullopt;
    };
    population.limit_output = invariant(limited, output, 0, 1);
    population.limit_total = invariant(limited, total, 0, 2);
    const auto generation = [](const Record& r) -> std::optional<double> {
        if (!is_timed(r) || !r.timeline.first_token || !r.timeline.last_token) return std::nullopt;
        return base::to_ms(*r.timeline.last_token - *r.timeline.first_token);
    };
    population.limit_generation_ms = invariant(limited, generation, 0.02, 100);
}

}  // namespace

Population examine(const Group& group, const PromptTokens& prompts) {
    Group victims, limited, quiet;
    for (const Record* record : group) {
        if (is_victim(*record)) victims.push_back(record);
        if (end_kind(*record) == EndKind::kLength && !record->end.error) limited.push_back(record);
        if (looks_natural(*record)) quiet.push_back(record);
    }
    Population population;
    population.clusters = clusters_of(victims, group, prompts);
    population.quiet_clusters = clusters_of(quiet, group, prompts);
    find_invariants(population, victims, limited, prompts);
    Group wordless;  // some servers write their terminator after an end that they forced
    for (const Record* record : group)
        if (is_victim(*record) ||
            (end_kind(*record) == EndKind::kNone && record->end.terminator && is_timed(*record)))
            wordless.push_back(record);
    find_locks(population, group, wordless);
    return population;
}

std::optional<Invariant> usual_limit(const Group& group) {
    std::map<std::int64_t, std::int64_t> lengths;
    std::int64_t limited = 0;
    for (const Record* record : group) {
        if (end_kind(*record) != EndKind::kLength || record->end.error) continue;
        ++limited;
        if (const auto length = record->length_tokens()) ++lengths[*length];
    }
    if (lengths.empty()) return std::nullopt;
    const auto most =
        std::ranges::max_element(lengths, {}, [](const auto& entry) { return entry.second; });
    if (most->second * 2 <= limited) return std::nullopt;
    return Invariant{static_cast<double>(most->first), 0, most->second};
}

const Cluster* cluster_of(const std::vector<Cluster>& clusters, const Record& record) {
    for (const Cluster& cluster : clusters)
        if (std::ranges::find(cluster.members, &record) != cluster.members.end()) return &cluster;
    return nullptr;
}

std::optional<std::int64_t> prompt_tokens_of(const Record& record, const PromptTokens* prompts) {
    if (record.prompt_tokens) return (*record.prompt_tokens).count;
    if (!prompts) return std::nullopt;
    const auto found = prompts->find(record.request.prompt_id);
    return found == prompts->end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> total_tokens_of(const Record& record, const PromptTokens* prompts) {
    const auto prompt = prompt_tokens_of(record, prompts);
    const auto output = record.length_tokens();
    if (!prompt || !output) return std::nullopt;
    return *prompt + *output;
}

}  // namespace fullstop::judge
