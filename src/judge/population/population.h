// What only several answers show: who ended together, which quantity stayed the same over all
// victims, whose end fell on another's arrival or departure. Pure arithmetic over one level (10.3
// of the method); causes interpret it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answer/record.h"

namespace fullstop::judge {

/// Prompt tokens by prompt id, from any answer of the run whose server reported them: killed
/// streams carry no usage.
using PromptTokens = std::map<std::string, std::int64_t>;

/// Ends this close together count as one event: a decode step of a busy small model takes 20 to 60
/// ms.
inline constexpr base::Duration kSimultaneous = std::chrono::milliseconds(50);

/// Answers that ended in one instant.
struct Cluster {
    base::Duration at{};
    std::vector<const answer::Record*> members;
    std::int64_t live = 0;                    ///< answers that were running then, members included
    std::optional<std::int64_t> tokens_live;  ///< sum of their prompt and output tokens then
};

/// A quantity that all victims share.
struct Invariant {
    double value = 0;   ///< mean
    double spread = 0;  ///< largest minus smallest
    std::int64_t answers = 0;
};

struct Population {
    std::vector<Cluster> clusters;          ///< of victims, two members or more
    std::vector<Cluster> quiet_clusters;    ///< of answers that look finished, two members or more
    std::optional<Invariant> elapsed_ms;    ///< of victims
    std::optional<Invariant> silence_ms;    ///< of victims
    std::optional<Invariant> limit_output;  ///< C over answers that ended by a limit
    std::optional<Invariant> limit_total;   ///< P + C over the same
    std::optional<Invariant> limit_generation_ms;
    std::map<const answer::Record*, const answer::Record*>
        arrivals;  ///< victim -> the request whose arrival its end fell on
    std::map<const answer::Record*, const answer::Record*>
        departures;  ///< victim -> the client whose leaving its end fell on
};

/// The length that most of these have, of those that a limit ended; absent without a majority. Near
/// the end of a level fewer run at once, so a limit that moves with load leaves some other lengths.
std::optional<Invariant> usual_limit(const std::vector<const answer::Record*>& group);

Population examine(const std::vector<const answer::Record*>& group, const PromptTokens& prompts);

/// The cluster of `clusters` that holds `record`, or null.
const Cluster* cluster_of(const std::vector<Cluster>& clusters, const answer::Record& record);

/// P of the answer: reported, else what the same prompt cost elsewhere.
std::optional<std::int64_t> prompt_tokens_of(const answer::Record& record,
                                             const PromptTokens* prompts);
/// P + C at its end.
std::optional<std::int64_t> total_tokens_of(const answer::Record& record,
                                            const PromptTokens* prompts);

}  // namespace fullstop::judge
