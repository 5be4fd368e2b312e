// What an answer's own end facts say, before any cause is named: the kind of its finish word
// (answer/finish_word.h), and whether the answer looks whole.
#pragma once

#include <string>
#include <vector>

#include "answer/finish_word.h"
#include "answer/record.h"

namespace fullstop::judge {

using EndKind = answer::FinishKind;

EndKind end_kind(const answer::Record& record);

/// The raw word, or "none".
std::string reason_word(const answer::Record& record);

/// Finish word stop or tool call, no error, transport not broken: what every client would call
/// finished.
bool looks_natural(const answer::Record& record);

/// Its own end facts say that somebody else ended it: error, broken body, no reason and no
/// terminator, abort. A limit (kLength) is no victim by itself, and neither is an answer that we
/// closed.
bool is_victim(const answer::Record& record);

bool transport_broken(const answer::Record& record);

/// Any text, reasoning or tool call arrived.
bool has_content(const answer::Record& record);

/// No text and no tool call came, where most answers to the same request alone had one.
bool came_empty(const answer::Record& record, const std::vector<const answer::Record*>& baselines);

/// What was asked is in the record (a bare response does not hold it): then a limit that is not
/// there was not asked for.
bool request_known(const answer::Record& record);

/// The moments come from a real clock (a bare body has none, and its zeros must not look like
/// simultaneity).
bool is_timed(const answer::Record& record);

}  // namespace fullstop::judge
