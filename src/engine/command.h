// What the HTTP side asks of the engine, as values: the two live on different threads and exchange
// only these and events.
#pragma once

#include <string>
#include <variant>

#include "engine/answer_end.h"
#include "engine/engine.h"

namespace fullstop::engine {

/// Show what a conversation becomes as a prompt; nothing is computed.
struct ShowPrompt {
    SequenceId id = 0;
    std::vector<answer::Message> messages = {};
};
/// End one answer: its client left.
struct Cancel {
    SequenceId id = 0;
    answer::Cause cause = answer::Cause::kClientCancelled;
    std::string detail;
};
/// End all answers: the server goes down.
struct CancelAll {
    answer::Cause cause = answer::Cause::kAbortedByServer;
    std::string detail;
};
using Command = std::variant<Submission, ShowPrompt, Cancel, CancelAll>;

/// Carries out `command` between two steps of `engine`.
void apply(Engine& engine, base::Instant now, Command command, EngineEvents& out);

}  // namespace fullstop::engine
