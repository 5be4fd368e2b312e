// Every function is one transaction, and every exception of SQLite ends here as an Error.
#include "adapters/sqlite/store.h"

#include <sqlite3.h>

#include <type_traits>

#include "adapters/sqlite/connection.h"
#include "adapters/sqlite/statements.h"
#include "adapters/sqlite/trouble.h"
#include "store/encoding.h"
#include "store/run_tables.h"

namespace fullstop::adapters::sqlite {

struct Store::State {
    std::filesystem::path file;
    std::unique_ptr<Statements> database;

    template <class Work>
    auto attempt(const char* doing, Work work) const -> base::Result<std::invoke_result_t<Work>> {
        using Value = std::invoke_result_t<Work>;
        try {
            if constexpr (std::is_void_v<Value>)
                return work(), base::Result<void>();
            else
                return work();
        } catch (const SQLite::Exception& exception) {
            return std::unexpected(explain(
                exception, file, doing, sqlite3_system_errno(database->connection().getHandle())));
        } catch (const store::Unreadable& trouble) {
            return std::unexpected(damaged(file, trouble.what()));
        }
    }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

std::string Store::name() const { return state_->file.string(); }

base::Result<Store> Store::open(const std::filesystem::path& file, store::Access access,
                                base::Bytes largest) {
    auto database = connect(file, access, largest);
    if (!database) return std::unexpected(database.error());
    auto state = std::make_unique<State>();
    state->file = file;
    state->database = std::make_unique<Statements>(std::move(*database));
    return Store(std::move(state));
}

base::Result<void> Store::begin_run(const answer::Run& run) {
    return state_->attempt("storing the run", [&] { store::insert_run(*state_->database, run); });
}

base::Result<void> Store::add_record(std::string_view run_id, const answer::Record& record) {
    return state_->attempt("storing an answer",
                           [&] { store::insert_record(*state_->database, run_id, record); });
}

base::Result<void> Store::add_sample(std::string_view run_id, const answer::Sample& sample) {
    return state_->attempt("storing a reading",
                           [&] { store::insert_sample(*state_->database, run_id, sample); });
}

base::Result<void> Store::update_run(const answer::Run& run) {
    return state_->attempt("storing the run",
                           [&] { store::update_run(*state_->database, run, false); });
}

base::Result<void> Store::finish_run(const answer::Run& run) {
    return state_->attempt("storing the run",
                           [&] { store::update_run(*state_->database, run, true); });
}

base::Result<answer::Run> Store::load(std::string_view id, store::Captures captures) const {
    const auto found = state_->attempt("looking for a run",
                                       [&] { return store::matching_runs(*state_->database, id); });
    if (!found) return std::unexpected(found.error());
    if (found->size() != 1) return std::unexpected(store::not_one_run(id, found->size(), name()));
    return state_->attempt("reading a run", [&] {
        return store::read_run(*state_->database, found->front(), captures);
    });
}

base::Result<std::vector<store::RunEntry>> Store::list() const {
    return state_->attempt("listing the runs", [&] { return store::list_runs(*state_->database); });
}

}  // namespace fullstop::adapters::sqlite
