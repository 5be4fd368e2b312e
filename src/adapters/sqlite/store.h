// Runs on disk: one SQLite file, written answer by answer, read back exactly as it was recorded, so that a stored run can
// be judged again. Each answer is its own transaction in a write-ahead log: a killed process loses at most the answers
// that were in flight. It stores no verdict and no secret; deleting old runs is the user's.
//
// One Store is one connection and belongs to one thread. Several processes may use one file at once.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer/run.h"
#include "base/result.h"
#include "base/units.h"

namespace fullstop::adapters::sqlite {

/// What the list of runs shows.
struct RunEntry {
    std::string id;
    base::WallTime started;
    base::Duration elapsed{};
    std::string url;
    std::string model;
    std::int64_t answers = 0;
    bool finished = false;     ///< false: the process ended before the run did
    bool interrupted = false;  ///< by the user
};

/// Whether a loaded run brings the raw bytes of its answers.
enum class Captures { kLeft, kLoaded };

class Store {
public:
    enum class Access {
        kWrite,  ///< creates folder and file (private to the user) when missing
        kRead,   ///< changes nothing; works on read-only media
    };

    /// Errors (usage): the file is no SQLite file, belongs to another program, was made by a newer fullstop, is locked, or
    /// its folder cannot be written. At `largest` bytes (rounded down to pages) a write is refused with its own message.
    static base::Result<Store> open(const std::filesystem::path& file, Access access, base::Bytes largest = kLargestFile);

    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store();

    /// Everything of `run` but its records and samples. The id must be new.
    base::Result<void> begin_run(const answer::Run& run);
    /// In the order in which answers end. An error leaves what was stored before intact; the caller may go on.
    base::Result<void> add_record(std::string_view run_id, const answer::Record& record);
    base::Result<void> add_sample(std::string_view run_id, const answer::Sample& sample);
    /// Everything that changed since begin_run but records and samples: extensions of the order, elapsed, notes, facts.
    base::Result<void> update_run(const answer::Run& run);
    /// update_run, and from now on the run counts as complete.
    base::Result<void> finish_run(const answer::Run& run);

    /// `id`, a beginning of an id that only one run has, or "last". A run whose process died is marked interrupted, with a
    /// note, and its elapsed time is that of its last answer. Raw bytes are most of a store, and judge needs none.
    base::Result<answer::Run> load(std::string_view id, Captures captures = Captures::kLeft) const;
    /// Newest first.
    base::Result<std::vector<RunEntry>> list() const;

    const std::filesystem::path& file() const;

    /// A run is about 10 MB, so this holds several hundred; a loop that probes for weeks stops here and not when the
    /// user's disk is full.
    static constexpr base::Bytes kLargestFile{8LL * 1024 * 1024 * 1024};

private:
    struct State;
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::sqlite
