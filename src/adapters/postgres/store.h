// Runs in PostgreSQL, in the same tables as in a file. Answers and readings are taken without a
// wait and written by a thread of their own (outbox.h): neither a relay nor a measurement waits for
// a database. Everything else waits for it, with limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/postgres/outbox.h"
#include "store/store.h"

namespace fullstop::adapters::postgres {

class Store final : public store::Store {
public:
    /// Errors: usage (the URL, the password, the database, its rights, its schema), unreachable.
    static base::Result<std::unique_ptr<Store>> open(const std::string& url, store::Access access,
                                                     OutboxLimits limits = {});
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
    store::Backlog backlog() const override;

private:
    struct State;
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::postgres
