// A counter is read about once a second, so an increase belongs to somebody whose answers were
// under way since the reading before.
#include "judge/population/readings.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fullstop::judge {
namespace {

using base::Duration;

/// A reading has the time at which its round of questions began; its counter is older than this
/// behind it.
constexpr Duration kReadingTakes = std::chrono::milliseconds(250);

bool under_way(const answer::Record& record, Duration from, Duration to) {
    const auto& timeline = record.timeline;
    return timeline.sent && timeline.ended && *timeline.sent < to && *timeline.ended > from;
}

class Turns {
public:
    Turns(const answer::Run& run, const std::string& arm, int concurrency)
        : run_(run), arm_(arm), concurrency_(concurrency) {}

    bool mine(const answer::Record& record) const {
        return record.request.arm == arm_ && record.request.concurrency == concurrency_;
    }
    bool mine_between(Duration from, Duration to) const {
        return std::ranges::any_of(run_.records, [&](const auto& record) {
            return mine(record) && under_way(record, from, to);
        });
    }
    /// Nobody had a higher concurrency then: who is paused makes room for others.
    bool mine_alone_between(Duration from, Duration to) const {
        return mine_between(from, to) &&
               std::ranges::none_of(run_.records, [&](const auto& record) {
                   return !mine(record) && record.request.concurrency > concurrency_ &&
                          under_way(record, from, to);
               });
    }

private:
    const answer::Run& run_;
    const std::string& arm_;
    int concurrency_;
};

std::optional<std::int64_t> preemptions_in(const std::vector<const answer::Sample*>& readings,
                                           const Turns& turns) {
    std::optional<std::int64_t> all;
    const answer::Sample* before = nullptr;
    for (const answer::Sample* reading : readings) {
        if (!reading->preemptions) continue;
        const answer::Sample* from = std::exchange(before, reading);
        if (from == nullptr || !turns.mine_between(from->at, reading->at + kReadingTakes)) continue;
        const double more = *reading->preemptions - *from->preemptions;
        if (more < 0) return std::nullopt;
        const bool ours =
            more > 0 && turns.mine_alone_between(from->at, reading->at + kReadingTakes);
        all = all.value_or(0) + (ours ? static_cast<std::int64_t>(more) : 0);
    }
    return all;
}

}  // namespace

LevelReadings readings_of(const answer::Run& run, const std::string& arm, int concurrency) {
    std::vector<const answer::Sample*> readings;
    for (const answer::Sample& sample : run.samples)
        if (sample.arm == arm || sample.arm.empty()) readings.push_back(&sample);
    std::ranges::sort(readings, {}, [](const answer::Sample* sample) { return sample->at; });
    const Turns turns(run, arm, concurrency);
    LevelReadings result{.preemptions = preemptions_in(readings, turns)};
    for (const answer::Sample* reading : readings) {
        if (!turns.mine_alone_between(reading->at, reading->at + kReadingTakes)) continue;
        if (reading->kv_used)
            result.kv_used = std::max(result.kv_used.value_or(0), *reading->kv_used);
        if (reading->free_bytes)
            result.free_bytes =
                std::min(result.free_bytes.value_or(*reading->free_bytes), *reading->free_bytes);
    }
    return result;
}

}  // namespace fullstop::judge
