// Runs on disk: one SQLite file. Each answer is its own transaction in a write-ahead log: a killed
// process loses at most the answers that were in flight.
//
// One Store is one connection and belongs to one thread. Several processes may use one file at
// once.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "store/store.h"

namespace fullstop::adapters::sqlite {

class Store final : public store::Store {
public:
    /// kWrite makes folder and file, private to the user; kRead works on read-only media too.
    /// Errors (usage): the file is no SQLite file, belongs to another program, was made by a newer
    /// fullstop, is locked, or its folder cannot be written. At `largest` bytes (rounded down to
    /// pages) a write is refused with its own message.
    static base::Result<Store> open(const std::filesystem::path& file, store::Access access,
                                    base::Bytes largest = kLargestFile);

    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store() override;

    base::Result<void> begin_run(const answer::Run& run) override;
    base::Result<void> add_record(std::string_view run_id, const answer::Record& record) override;
    base::Result<void> add_sample(std::string_view run_id, const answer::Sample& sample) override;
    base::Result<void> update_run(const answer::Run& run) override;
    base::Result<void> finish_run(const answer::Run& run) override;
    base::Result<answer::Run> load(
        std::string_view id, store::Captures captures = store::Captures::kLeft) const override;
    base::Result<std::vector<store::RunEntry>> list() const override;
    std::string name() const override;

    /// A run is about 10 MB, so this holds several hundred; a loop that probes for weeks stops here
    /// and not when the user's disk is full.
    static constexpr base::Bytes kLargestFile{8LL * 1024 * 1024 * 1024};

private:
    struct State;
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::sqlite
