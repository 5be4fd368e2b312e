// One cause speaks about one answer: what it claims, on which evidence, and what the answer's
// surroundings were.
//
// Every cause is a function Record x Context -> maybe a Claim, in a file of its own. conclude()
// asks all of them in the order of decision; the first decisive claim is the cause, the others are
// kept as alternatives.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "answer/record.h"
#include "judge/population/outage.h"
#include "judge/population/population.h"
#include "judge/verdict.h"

namespace fullstop::judge {

/// What surrounds one answer. Everything may be empty; a cause that needs more stays silent or
/// lowers its confidence.
struct Context {
    std::vector<const answer::Record*>
        siblings;  ///< answers of the same arm, phase and level, itself included
    std::vector<const answer::Record*> baselines;  ///< the same (prompt, seed) alone
    std::vector<const answer::Record*> alone;      ///< every answer of the arm at concurrency 1
    const std::vector<const answer::Record*>* run = nullptr;  ///< every answer of every arm
    const answer::ServerFacts* server = nullptr;  ///< as it described itself before the load
    const answer::ServerFacts* server_after = nullptr;
    const Population* population = nullptr;       ///< of the siblings
    const Population* arm_population = nullptr;   ///< of the arm at every concurrency
    const Outages* outages = nullptr;             ///< of the arm
    const PromptTokens* prompt_tokens = nullptr;  ///< what prompts are known to cost, by id
    std::optional<std::int64_t> preemptions;      ///< of the level, by the server's counter
    const answer::Prompt* prompt = nullptr;
    bool interrupted = false;      ///< the run was
    bool closed_by_probe = false;  ///< this answer (own_end.h)
    bool fell_silent = false;      ///< this answer (own_end.h)
    /// By concurrency: the length at which most answers that a limit ended have ended there.
    std::map<int, Invariant> limits = {};
};

struct Claim {
    answer::Cause cause = answer::Cause::kUnexplained;
    answer::Confidence confidence = answer::Confidence::kUnresolved;
    std::vector<Evidence> evidence = {};
    std::vector<Remedy> remedies = {};
    std::string next = {};
    std::optional<answer::Layer> layer = {};  ///< absent: the layer of the cause
    std::optional<bool> shortened = {};       ///< absent: by the effect of the cause
    bool decisive = true;                     ///< false: a candidate only
    std::string why_not = {};                 ///< why a candidate is no more than that
};

struct CauseTest {
    std::string_view name;
    std::optional<Claim> (*claim)(const answer::Record&, const Context&);
};

/// Transport facts are the hardest evidence, then error objects, then populations, then arithmetic,
/// then the model.
std::span<const CauseTest> decision_order();

struct Conclusion {
    Finding finding;
    std::vector<Remedy> remedies;
};

Conclusion conclude(const answer::Record& record, const Context& context);

/// What conclude() sets when a claim does not say: true for shortened causes, absent for refused
/// and undecided ones.
std::optional<bool> shortened_by(answer::Cause cause);

}  // namespace fullstop::judge
