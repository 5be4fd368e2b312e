// One Record as the columns of its row, and back: bytes that need not be JSON have columns of their own.
#pragma once

#include <string>

#include "answer/record.h"

namespace fullstop::adapters::sqlite {

struct RecordRow {
    std::string recorded;  ///< JSON
    std::string gaps;      ///< blobs
    std::string arrivals;
};

RecordRow to_row(const answer::Record& record);
/// Fills everything but text, reasoning, tool_calls and capture.bytes, which are columns as they are. Throws Unreadable.
void from_row(const RecordRow& row, answer::Record& record);

}  // namespace fullstop::adapters::sqlite
