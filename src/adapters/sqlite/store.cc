// Statements for rows. Every function is one transaction, and every exception of SQLite ends here as an Error.
#include "adapters/sqlite/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <optional>

#include "adapters/sqlite/connection.h"
#include "adapters/sqlite/encoding.h"
#include "adapters/sqlite/fields.h"
#include "adapters/sqlite/record_row.h"
#include "adapters/sqlite/trouble.h"

namespace fullstop::adapters::sqlite {
namespace {

constexpr const char* kInsertRecord =
    "INSERT INTO records (run, id, arm, concurrency, prompt, seed, repeat, reason, transport, tokens, ended_ns, text, reasoning, tool_calls, recorded, gaps, "
    "capture, arrivals) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kInsertSample =
    "INSERT INTO samples (run, at_ns, arm, kv_used, running, waiting, preemptions, free_bytes, server_bytes, counters) VALUES (?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kSelectRecords = "SELECT text, reasoning, tool_calls, recorded, gaps, capture, arrivals FROM records WHERE run = ? ORDER BY seq";
constexpr const char* kSelectRecordsOnly = "SELECT text, reasoning, tool_calls, recorded, gaps, x'', x'' FROM records WHERE run = ? ORDER BY seq";
constexpr const char* kSelectSamples =
    "SELECT at_ns, arm, kv_used, running, waiting, preemptions, free_bytes, server_bytes, counters FROM samples WHERE run = ? ORDER BY seq";
constexpr const char* kSelectRun =
    "SELECT id, started_ns, elapsed_ns, fullstop_version, fullstop_build, url, model, api, experiment, arms, server_before, server_after, notes, interrupted, "
    "finished FROM runs WHERE id = ?";
constexpr const char* kSelectList =
    "SELECT id, started_ns, elapsed_ns, url, model, (SELECT count(*) FROM records WHERE run = runs.id), finished, interrupted FROM runs "
    "ORDER BY started_ns DESC, rowid DESC";

/// Binds values one after the other.
class Binder {
public:
    explicit Binder(SQLite::Statement& statement) : statement_(statement) {}
    Binder& integer(std::int64_t value) { return statement_.bind(++index_, value), *this; }
    Binder& text(std::string_view value) { return statement_.bind(++index_, std::string(value)), *this; }
    Binder& blob(const std::string& value) { return statement_.bind(++index_, value.data(), static_cast<int>(value.size())), *this; }
    Binder& maybe(const std::optional<std::int64_t>& value) { return value ? integer(*value) : null(); }
    Binder& maybe(const std::optional<std::string>& value) { return value ? text(*value) : null(); }
    Binder& maybe(const std::optional<double>& value) {
        if (!value) return null();
        return statement_.bind(++index_, *value), *this;
    }

private:
    Binder& null() { return statement_.bind(++index_), *this; }
    SQLite::Statement& statement_;
    int index_ = 0;
};

std::string bytes_of(const SQLite::Column& column) {
    const auto* data = static_cast<const char*>(column.getBlob());
    return data == nullptr ? std::string() : std::string(data, static_cast<std::size_t>(column.getBytes()));
}
std::optional<double> real_of(const SQLite::Column& column) { return column.isNull() ? std::nullopt : std::optional(column.getDouble()); }

/// The columns that change while a run goes on, in the order of both statements below.
void bind_changing(Binder& binder, const answer::Run& run) {
    binder.integer(run.elapsed.count()).text(run.model).text(to_text(run.experiment)).text(to_text(run.arms));
    binder.text(to_text(run.server_before)).text(to_text(run.server_after)).text(to_text(run.notes)).integer(run.interrupted ? 1 : 0);
}

answer::Run run_of(SQLite::Statement& row) {
    answer::Run run;
    run.id = bytes_of(row.getColumn(0));
    run.started.unix_ns = row.getColumn(1).getInt64();
    run.elapsed = base::Duration(row.getColumn(2).getInt64());
    run.fullstop_version = bytes_of(row.getColumn(3));
    run.fullstop_build = bytes_of(row.getColumn(4));
    run.url = bytes_of(row.getColumn(5));
    run.model = bytes_of(row.getColumn(6));
    expect(from_word(bytes_of(row.getColumn(7)), run.api), "a known api");
    from_text(bytes_of(row.getColumn(8)), run.experiment);
    from_text(bytes_of(row.getColumn(9)), run.arms);
    from_text(bytes_of(row.getColumn(10)), run.server_before);
    from_text(bytes_of(row.getColumn(11)), run.server_after);
    from_text(bytes_of(row.getColumn(12)), run.notes);
    run.interrupted = row.getColumn(13).getInt() != 0;
    return run;
}

void read_records(SQLite::Database& database, answer::Run& run, Captures captures) {
    SQLite::Statement rows(database, captures == Captures::kLoaded ? kSelectRecords : kSelectRecordsOnly);
    rows.bind(1, run.id);
    while (rows.executeStep()) {
        answer::Record& record = run.records.emplace_back();
        record.text = bytes_of(rows.getColumn(0));
        record.reasoning = bytes_of(rows.getColumn(1));
        record.tool_calls = bytes_of(rows.getColumn(2));
        from_row({.recorded = bytes_of(rows.getColumn(3)), .gaps = bytes_of(rows.getColumn(4)), .arrivals = bytes_of(rows.getColumn(6))}, record);
        record.capture.bytes = bytes_of(rows.getColumn(5));
    }
}

void read_samples(SQLite::Database& database, answer::Run& run) {
    SQLite::Statement rows(database, kSelectSamples);
    rows.bind(1, run.id);
    while (rows.executeStep()) {
        answer::Sample& sample = run.samples.emplace_back();
        sample.at = base::Duration(rows.getColumn(0).getInt64());
        sample.arm = bytes_of(rows.getColumn(1));
        sample.kv_used = real_of(rows.getColumn(2));
        sample.running = real_of(rows.getColumn(3));
        sample.waiting = real_of(rows.getColumn(4));
        sample.preemptions = real_of(rows.getColumn(5));
        sample.free_bytes = real_of(rows.getColumn(6));
        sample.server_bytes = real_of(rows.getColumn(7));
        from_text(bytes_of(rows.getColumn(8)), sample.counters);
    }
}

/// What can still be said of a run whose process died.
void mark_unfinished(answer::Run& run) {
    run.interrupted = true;
    for (const answer::Record& record : run.records)
        if (record.timeline.ended) run.elapsed = std::max(run.elapsed, *record.timeline.ended);
    run.notes.push_back(fmt::format("the measuring process ended before the run did: {} answers were stored, those in flight are lost", run.records.size()));
}

/// `id` itself, the run that alone begins with it, or the newest. Empty: none. Two: several begin with it.
std::vector<std::string> matching(SQLite::Database& database, std::string_view id) {
    const bool last = id == "last";
    SQLite::Statement rows(database, last ? "SELECT id FROM runs ORDER BY started_ns DESC, rowid DESC LIMIT 1"
                                          : "SELECT id FROM runs WHERE id = ?1 OR substr(id, 1, length(?1)) = ?1 ORDER BY id = ?1 DESC LIMIT 2");
    if (!last) rows.bind(1, std::string(id));
    std::vector<std::string> found;
    while (rows.executeStep()) found.push_back(bytes_of(rows.getColumn(0)));
    if (found.size() == 2 && found[0] == id) found.pop_back();
    return found;
}

}  // namespace

struct Store::State {
    std::filesystem::path file;
    std::unique_ptr<SQLite::Database> database;
    // Compiled once: add_record stands in the path of the measurement. They must go before the database.
    std::optional<SQLite::Statement> insert_record;
    std::optional<SQLite::Statement> insert_sample;

    template <class Work>
    auto attempt(const char* doing, Work work) const -> base::Result<std::invoke_result_t<Work>> {
        using Value = std::invoke_result_t<Work>;
        try {
            if constexpr (std::is_void_v<Value>)
                return work(), base::Result<void>();
            else
                return work();
        } catch (const SQLite::Exception& exception) {
            return std::unexpected(explain(exception, file, doing, sqlite3_system_errno(database->getHandle())));
        } catch (const Unreadable& trouble) {
            return std::unexpected(damaged(file, trouble.what()));
        }
    }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const std::filesystem::path& Store::file() const { return state_->file; }

base::Result<Store> Store::open(const std::filesystem::path& file, Access access, base::Bytes largest) {
    auto database = connect(file, access, largest);
    if (!database) return std::unexpected(database.error());
    auto state = std::make_unique<State>();
    state->file = file;
    state->database = std::move(*database);
    return Store(std::move(state));
}

base::Result<void> Store::begin_run(const answer::Run& run) {
    return state_->attempt("storing the run", [&] {
        SQLite::Statement insert(
            *state_->database,
            "INSERT INTO runs (id, started_ns, fullstop_version, fullstop_build, url, api, elapsed_ns, model, experiment, arms, server_before, "
            "server_after, notes, interrupted, finished) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,0)");
        Binder binder(insert);
        binder.text(run.id).integer(run.started.unix_ns).text(run.fullstop_version).text(run.fullstop_build).text(run.url).text(to_string(run.api));
        bind_changing(binder, run);
        insert.exec();
    });
}

base::Result<void> Store::add_record(std::string_view run_id, const answer::Record& record) {
    return state_->attempt("storing an answer", [&] {
        if (!state_->insert_record) state_->insert_record.emplace(*state_->database, kInsertRecord);
        SQLite::Statement& insert = *state_->insert_record;
        insert.tryReset();  // a failed one before has already been reported
        const RecordRow row = to_row(record);
        const answer::Request& asked = record.request;
        const auto ended = record.timeline.ended ? std::optional(record.timeline.ended->count()) : std::nullopt;
        Binder(insert)
            .text(run_id)
            .text(asked.id)
            .text(asked.arm)
            .integer(asked.concurrency)
            .text(asked.prompt_id)
            .integer(asked.seed)
            .integer(asked.repeat)
            .maybe(record.end.reason)
            .text(to_string(record.end.transport))
            .maybe(record.length_tokens())
            .maybe(ended)
            .text(record.text)
            .text(record.reasoning)
            .text(record.tool_calls)
            .text(row.recorded)
            .blob(row.gaps)
            .blob(record.capture.bytes)
            .blob(row.arrivals);
        insert.exec();
    });
}

base::Result<void> Store::add_sample(std::string_view run_id, const answer::Sample& sample) {
    return state_->attempt("storing a reading", [&] {
        if (!state_->insert_sample) state_->insert_sample.emplace(*state_->database, kInsertSample);
        SQLite::Statement& insert = *state_->insert_sample;
        insert.tryReset();
        Binder(insert)
            .text(run_id)
            .integer(sample.at.count())
            .text(sample.arm)
            .maybe(sample.kv_used)
            .maybe(sample.running)
            .maybe(sample.waiting)
            .maybe(sample.preemptions)
            .maybe(sample.free_bytes)
            .maybe(sample.server_bytes)
            .text(to_text(sample.counters));
        insert.exec();
    });
}

base::Result<void> Store::update_run(const answer::Run& run) {
    return state_->attempt("storing the run", [&] {
        SQLite::Statement update(*state_->database,
                                 "UPDATE runs SET elapsed_ns = ?, model = ?, experiment = ?, arms = ?, server_before = ?, server_after = ?, notes = ?, "
                                 "interrupted = ? WHERE id = ?");
        Binder binder(update);
        bind_changing(binder, run);
        binder.text(run.id);
        update.exec();
    });
}

base::Result<void> Store::finish_run(const answer::Run& run) {
    if (auto updated = update_run(run); !updated) return updated;
    return state_->attempt("storing the run", [&] {
        SQLite::Statement finish(*state_->database, "UPDATE runs SET finished = 1 WHERE id = ?");
        Binder(finish).text(run.id);
        finish.exec();
    });
}

base::Result<answer::Run> Store::load(std::string_view id, Captures captures) const {
    const auto found = state_->attempt("looking for a run", [&] { return matching(*state_->database, id); });
    if (!found) return std::unexpected(found.error());
    if (found->size() != 1)
        return base::usage_error(found->size() > 1 ? fmt::format("several runs begin with '{}'", id)
                                 : id == "last"    ? fmt::format("the store {} holds no run yet", state_->file.string())
                                                   : fmt::format("there is no run '{}' in the store {}", id, state_->file.string()),
                                 "'fullstop report --list' shows the runs");
    return state_->attempt("reading a run", [&] {
        SQLite::Transaction moment(*state_->database);  // one moment of the file, even while another process writes
        SQLite::Statement row(*state_->database, kSelectRun);
        row.bind(1, found->front());
        expect(row.executeStep(), "the run that was just found");
        answer::Run run = run_of(row);
        read_records(*state_->database, run, captures);
        read_samples(*state_->database, run);
        if (row.getColumn(14).getInt() == 0) mark_unfinished(run);
        return run;
    });
}

base::Result<std::vector<RunEntry>> Store::list() const {
    return state_->attempt("listing the runs", [&] {
        SQLite::Statement rows(*state_->database, kSelectList);
        std::vector<RunEntry> entries;
        while (rows.executeStep()) {
            entries.push_back({.id = bytes_of(rows.getColumn(0)),
                               .started = {rows.getColumn(1).getInt64()},
                               .elapsed = base::Duration(rows.getColumn(2).getInt64()),
                               .url = bytes_of(rows.getColumn(3)),
                               .model = bytes_of(rows.getColumn(4)),
                               .answers = rows.getColumn(5).getInt64(),
                               .finished = rows.getColumn(6).getInt() != 0,
                               .interrupted = rows.getColumn(7).getInt() != 0});
        }
        return entries;
    });
}

}  // namespace fullstop::adapters::sqlite
