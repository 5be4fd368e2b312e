#include "judge/population/outage.h"

#include <algorithm>
#include <optional>

#include "judge/population/population.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"

namespace fullstop::judge {
namespace {

using answer::Record;
using Group = std::vector<const Record*>;

/// The last sign of life that the server gave to this answer by itself: its break is none.
std::optional<base::Duration> last_sign(const Record& record) {
    const auto& at = record.timeline;
    if (at.last_token) return at.last_token;
    return at.first_byte ? at.first_byte : at.headers;
}

}  // namespace

bool is_turned_away(const Record& record) {
    return record.end.transport == answer::Transport::kRefused ||
           (failing_status(record) >= 500 && !has_content(record));
}

Outages outages_of(const Group& answers) {
    Group broken, refused;
    for (const Record* record : answers) {
        if (is_turned_away(*record) && record->timeline.started)
            refused.push_back(record);
        else if (is_timed(*record) && (transport_broken(*record) || record->end.error))
            broken.push_back(record);
    }
    // Was anything answered after the break, of all that had been asked before the refusal?
    const auto alive = [&](const Record& broke, const Record& refusal) {
        return std::ranges::any_of(answers, [&](const Record* other) {
            const auto sign = is_turned_away(*other) ? std::nullopt : last_sign(*other);
            return sign && *sign > *broke.timeline.ended + kSimultaneous &&
                   other->timeline.started && *other->timeline.started < *refusal.timeline.started;
        });
    };
    Outages outages;
    for (const Record* refusal : refused) {
        const Record* death = nullptr;
        for (const Record* broke : broken)
            if (*broke->timeline.ended <= *refusal->timeline.started + kSimultaneous &&
                (death == nullptr || *broke->timeline.ended > *death->timeline.ended))
                death = broke;
        if (death == nullptr || alive(*death, *refusal)) continue;
        const auto with_it = [&](const Record& broke) {
            return *broke.timeline.ended <= *death->timeline.ended &&
                   *death->timeline.ended - *broke.timeline.ended <= kSimultaneous;
        };
        Outage outage{death->request.concurrency, death};
        for (const Record* broke : broken)
            if (with_it(*broke) && broke->end.error) outage.death = broke;
        outages[refusal] = outage;
        for (const Record* broke : broken)
            if (with_it(*broke)) outages[broke] = outage;
    }
    return outages;
}

}  // namespace fullstop::judge
