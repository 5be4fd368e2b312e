// Where runs are kept, whatever keeps them: written answer by answer, read back exactly as it was
// recorded, so that a stored run can be judged again. It stores no verdict and no secret; deleting
// old runs is the user's. One Store belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/run.h"
#include "base/result.h"

namespace fullstop::store {

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

enum class Access {
    kWrite,  ///< creates what is missing
    kRead,   ///< changes nothing
};

/// Of the records and readings that a store took but writes later.
struct Backlog {
    std::int64_t waiting = 0;
    std::int64_t lost = 0;               ///< taken, and then refused by the database
    std::optional<base::Error> refusal;  ///< why the last of those was
    std::optional<base::Error> trouble;  ///< why nothing is written at the moment
};

class Store {
public:
    virtual ~Store() = default;

    /// Everything of `run` but its records and samples. The id must be new.
    virtual base::Result<void> begin_run(const answer::Run& run) = 0;
    /// In the order in which answers end. An error: this one is not kept; what was taken before is,
    /// and the caller may go on.
    virtual base::Result<void> add_record(std::string_view run_id,
                                          const answer::Record& record) = 0;
    virtual base::Result<void> add_sample(std::string_view run_id,
                                          const answer::Sample& sample) = 0;
    /// Everything that changed since begin_run but records and samples: extensions of the order,
    /// elapsed, notes, facts.
    virtual base::Result<void> update_run(const answer::Run& run) = 0;
    /// update_run, and from now on the run counts as complete. An error also when anything that was
    /// taken could not be written.
    virtual base::Result<void> finish_run(const answer::Run& run) = 0;

    /// `id`, a beginning of an id that only one run has, or "last". A run whose process died is
    /// marked interrupted, with a note, and its elapsed time is that of its last answer. Raw bytes
    /// are most of a store, and judge needs none.
    virtual base::Result<answer::Run> load(std::string_view id,
                                           Captures captures = Captures::kLeft) const = 0;
    /// Newest first.
    virtual base::Result<std::vector<RunEntry>> list() const = 0;

    /// For people: a file's name, or a URL without its password.
    virtual std::string name() const = 0;
    virtual Backlog backlog() const { return {}; }

protected:
    Store() = default;
    Store(Store&&) = default;
    Store& operator=(Store&&) = default;
};

}  // namespace fullstop::store
