// What can be said of answers that somebody saved, without an experiment: which cause ended each,
// on which bytes of which file, what else it could have been, and what to measure next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer/record.h"
#include "judge/verdict.h"

namespace fullstop::report {

/// Bytes of a file that the cause stands on; "" when nothing in it can be pointed at (an end that
/// is missing stands at the file's last bytes).
struct Place {
    std::size_t line = 0;    ///< from 1
    std::size_t offset = 0;  ///< in bytes, from 0
    std::string quote = {};
};

struct Explanation {
    std::string file;  ///< as the user named it; "answer 2 of FILE" when it holds several
    answer::Record record;
    judge::Finding finding;
    Place place;
};

struct Explanations {
    std::vector<Explanation> answers;
    judge::TogetherJudgement together;
};

/// Where in `file` the end of `record` stands: its error, else its finish word, else the last
/// bytes.
Place place_of(const answer::Record& record, std::string_view file);

/// `fullstop.explanation/1` of one answer, `fullstop.explanations/1` of several.
std::string to_json(const Explanations& explanations);

/// A screen for one answer; a few lines for each of several.
std::string to_terminal(const Explanations& explanations, bool colour);

}  // namespace fullstop::report
