// A fault as data: when it strikes, whom, and what it does. One plant for all that
// tests/plants/*.toml describe, so that a fault needs no C++ of its own. What the words of those
// files mean stands here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plants/plants.h"

namespace fullstop::simulator {

struct Fault {
    /// `when`: the moment of an answer's life, or of the house, at which it strikes.
    enum class When {
        kArrival,   ///< "arrival": the request came in
        kBegin,     ///< "begin": before the first token
        kToken,     ///< "token": at token `token`, or at `place` of the text
        kTime,      ///< "time": `after` the request came in; with token = -1 only before the first
        kSilence,   ///< "silence": no token for `after`, the wait for the first one included
        kTogether,  ///< "together": everything that runs, every `steps` decode steps under load
        kPool,      ///< "pool": everything that runs, when together it holds over `tokens`
        kOtherArrives,  ///< "other arrives": everything that has begun, when a request comes in
        kOtherLeaves,   ///< "other leaves": everything that runs, when a client goes away
        kEnding,        ///< "ending": its own ending is about to be written
    };
    /// `does`: what it does to the answer.
    enum class Does {
        kEnd,      ///< "end": with `ending`
        kStall,    ///< "stall": silent for `pause`, saying `says` first and `each_second` while it
                   ///< lasts
        kLose,     ///< "lose": generated and counted, but not delivered
        kMix,      ///< "mix": goes on with another answer's text
        kGarble,   ///< "garble": one token for ever
        kCap,      ///< "cap": ends with `ending` after `tokens`, or after what `caps` says
        kThink,    ///< "think": `tokens` of thinking, `words` of the answer, then `ending`
        kRunAway,  ///< "run away": repeats itself up to `tokens`, whatever the limit
        kDie,  ///< "die": the process is gone for `pause`; for `loading` it refuses with `refusal`
    };

    When when = When::kToken;
    Does does = Does::kEnd;
    int from = 1, to = std::numeric_limits<int>::max();  ///< requests in the house while it strikes
    double share = 1;                                    ///< of the answers, or of the occasions
    bool once = false;                                   ///< in the whole run
    std::vector<std::string> prompts;  ///< of these questions only (ids); empty: of all
    std::int64_t longer = 0;           ///< of answers meant to have more tokens than this
    int per_minute = 0;                ///< "arrival": beyond so many let in within a minute
    bool at_sentence = false;          ///< "token": moved on to the next full stop
    std::pair<double, double> place = {0.1, 0.7};  ///< of the text, drawn between
    std::int64_t token = 0, tokens = 0, words = 0;
    int steps = 40;
    base::Duration after{}, pause{}, loading{};
    std::vector<std::pair<int, std::int64_t>> caps;  ///< from so many requests: so many tokens
    std::string only_reason;  ///< "ending": only where this is the reason; "-": where none is
    std::string says, each_second;
    Ending ending, refusal;
};

PlantPtr fault(Fault fault);

}  // namespace fullstop::simulator
