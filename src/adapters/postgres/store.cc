// Two connections: the worker's, and this one for what is asked for and waited for. Every Failure
// ends here as an Error.
#include "adapters/postgres/store.h"

#include <atomic>
#include <type_traits>
#include <utility>

#include "adapters/postgres/connection.h"
#include "adapters/postgres/schema.h"
#include "adapters/postgres/trouble.h"
#include "store/encoding.h"
#include "store/run_tables.h"

namespace fullstop::adapters::postgres {

struct Store::State {
    Target target;
    OutboxLimits limits;
    base::Duration patience = kReplyTimeout;  ///< with the database's silence
    std::atomic<bool> ending = false;         ///< never: whoever waits here is waited for
    std::unique_ptr<Connection> connection;
    std::unique_ptr<Outbox> outbox;

    void be_patient(base::Duration limit) {
        patience = limit;
        if (connection) connection->limit_replies(limit);
    }
    /// One transaction, or reading. A connection that died since its last use is replaced.
    template <class Work>
    auto attempt(const char* doing, Work work) -> base::Result<std::invoke_result_t<Work>> {
        using Value = std::invoke_result_t<Work>;
        try {
            const bool used_before = connection && connection->usable();
            if (!used_before) connect();
            try {
                return done<Value>(work);
            } catch (const Failure& failure) {
                if (!failure.lost || !used_before) throw;
                connect();
                return done<Value>(work);
            }
        } catch (const Failure& failure) {
            return std::unexpected(explain(failure, target, doing));
        } catch (const store::Unreadable& trouble) {
            return std::unexpected(damaged(target, trouble.what()));
        }
    }

private:
    template <class Value, class Work>
    static base::Result<Value> done(Work& work) {
        if constexpr (std::is_void_v<Value>)
            return work(), base::Result<void>();
        else
            return work();
    }
    void connect() {
        connection = std::make_unique<Connection>(target, ending);
        connection->limit_replies(patience);
        use_schema(*connection);
    }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;

base::Result<std::unique_ptr<Store>> Store::open(const std::string& url, store::Access access,
                                                 OutboxLimits limits) {
    auto target = parse_url(url);
    if (!target) return std::unexpected(target.error());
    auto state = std::make_unique<State>();
    state->target = std::move(*target);
    state->limits = limits;
    const auto ready = state->attempt(
        "opening it", [&] { return prepare(*state->connection, state->target, access); });
    if (!ready) return std::unexpected(ready.error());
    if (!*ready) return std::unexpected(ready->error());
    if (access == store::Access::kWrite)
        state->outbox = std::make_unique<Outbox>(state->target, limits);
    return std::unique_ptr<Store>(new Store(std::move(state)));
}

std::string Store::name() const { return state_->target.name; }
store::Backlog Store::backlog() const {
    return state_->outbox ? state_->outbox->backlog() : store::Backlog();
}

base::Result<void> Store::begin_run(const answer::Run& run) {
    auto begun =
        state_->attempt("storing the run", [&] { store::insert_run(*state_->connection, run); });
    if (begun) state_->outbox->expect_run(run.id);
    return begun;
}

base::Result<void> Store::add_record(std::string_view run_id, const answer::Record& record) {
    return state_->outbox->put(run_id, record);
}
base::Result<void> Store::add_sample(std::string_view run_id, const answer::Sample& sample) {
    return state_->outbox->put(run_id, sample);
}

base::Result<void> Store::update_run(const answer::Run& run) {
    return state_->attempt("storing the run",
                           [&] { store::update_run(*state_->connection, run, false); });
}

base::Result<void> Store::finish_run(const answer::Run& run) {
    auto written = state_->outbox->flush();
    if (!written && state_->outbox->backlog().waiting > 0)
        return written;                        // it is away, and has been waited for
    state_->be_patient(state_->limits.flush);  // a program that ends waits for nobody long
    auto finished = state_->attempt("storing the run",
                                    [&] { store::update_run(*state_->connection, run, true); });
    state_->be_patient(kReplyTimeout);
    return written ? finished : written;
}

base::Result<answer::Run> Store::load(std::string_view id, store::Captures captures) const {
    const auto found = state_->attempt(
        "looking for a run", [&] { return store::matching_runs(*state_->connection, id); });
    if (!found) return std::unexpected(found.error());
    if (found->size() != 1) return std::unexpected(store::not_one_run(id, found->size(), name()));
    return state_->attempt("reading a run", [&] {
        return store::read_run(*state_->connection, found->front(), captures);
    });
}

base::Result<std::vector<store::RunEntry>> Store::list() const {
    return state_->attempt("listing the runs",
                           [&] { return store::list_runs(*state_->connection); });
}

}  // namespace fullstop::adapters::postgres
