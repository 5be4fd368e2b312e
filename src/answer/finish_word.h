// What a server's finish word means. Dialects differ in words (finish_reason, done_reason,
// stop_type, eos_reason, stop_reason, llama-server's flags of 2023 to 2024); everything that reads
// an end takes the meaning from this one table.
#pragma once

#include <string_view>

namespace fullstop::answer {

enum class FinishKind {
    kNone,        ///< no finish word
    kStop,        ///< stop, eos, end_turn: the model ended
    kStopString,  ///< stop_sequence, word: the word itself names a stop string
    kToolCalls,   ///< ended to have tools called
    kLength,      ///< a limit or the window
    kAbort,
    kError,
    kRepetition,
    kFilter,
    kLoad,   ///< Ollama: nothing was asked
    kOther,  ///< a word nobody documented
};

/// "" and "null" are no word.
FinishKind finish_kind(std::string_view word);

/// The word says that the end token came, and not only that the answer stopped.
bool names_end_token(std::string_view word);

}  // namespace fullstop::answer
