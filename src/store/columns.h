// The tables of a store: every column named once, with its type, what it holds, and how it is
// written and read. Tables, statements and both ways of every database are made from these lists.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "answer/run.h"
#include "store/database.h"

namespace fullstop::store {

/// Raise it when a table changes; fields inside `recorded`, `experiment` and the like may be added
/// without, since a reader leaves unknown ones aside and gives missing ones their default. A newer
/// version is refused, never guessed at.
inline constexpr int kSchemaVersion = 1;

enum class ColumnType { kInteger, kReal, kText, kBlob };
enum class ColumnRule {
    kRequired,
    kOptional,
    kKey,
    kRun,  ///< of the run that the row belongs to, and goes with
};

struct ColumnFacts {
    const char* name;
    ColumnType type;
    ColumnRule rule;
    const char* meaning;  ///< "" where the name says it
};

/// A row to be written: what is recorded, and beside it what had to be encoded.
struct RunRow {
    const answer::Run& run;
    bool finished = false;
    std::string experiment, arms, server_before, server_after, notes;
};
struct RecordRow {
    std::string_view run;
    const answer::Record& record;
    std::string recorded, gaps, arrivals;
};
struct SampleRow {
    std::string_view run;
    const answer::Sample& sample;
    std::string counters;
};

/// A run that is read, and what is not part of a Run.
struct ReadRun {
    answer::Run run;
    bool finished = false;
};

template <class Written, class Read>
struct Column {
    ColumnFacts facts;
    Value (*write)(const Written&);
    /// Null: another column tells it too. Throws Unreadable.
    void (*read)(const Row& row, int index, Read& to);
    enum class Use {
        kAlways,
        kChanges,
        kCapture
    } use = Use::kAlways;  ///< kChanges: while a run goes on; kCapture: raw bytes
};
using RunColumn = Column<RunRow, ReadRun>;
using RecordColumn = Column<RecordRow, answer::Record>;
using SampleColumn = Column<SampleRow, answer::Sample>;

std::span<const RunColumn> run_columns();
std::span<const RecordColumn> record_columns();
std::span<const SampleColumn> sample_columns();

RunRow to_row(const answer::Run& run);
RecordRow to_row(std::string_view run, const answer::Record& record);
SampleRow to_row(std::string_view run, const answer::Sample& sample);

}  // namespace fullstop::store
