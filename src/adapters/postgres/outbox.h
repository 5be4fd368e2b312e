// Records and readings on their way to the database: put in without a wait, written by a thread of
// its own, kept while the database is away, each written once. What came first is written first.
//
// All functions are for one thread, the store's; the worker is inside.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#include "adapters/postgres/limits.h"
#include "adapters/postgres/target.h"
#include "answer/run.h"
#include "base/result.h"
#include "store/store.h"

namespace fullstop::adapters::postgres {

struct OutboxLimits {
    std::size_t waiting_bytes = kMaxWaitingBytes;
    base::Duration flush = kFlushTimeout;
};

class Outbox {
public:
    Outbox(Target target, OutboxLimits limits);
    /// Does not wait for what has not been written; flush() does.
    ~Outbox();

    /// Of a run that this outbox began to write: nobody else adds to it.
    void expect_run(const std::string& run);
    /// Error: the bound is reached, and it was not taken.
    base::Result<void> put(std::string_view run, std::variant<answer::Record, answer::Sample> item);
    /// Waits, within the limit, until everything is written. Error: what is missing and why; what
    /// waited is dropped, but for a batch under way.
    base::Result<void> flush();
    store::Backlog backlog() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::postgres
