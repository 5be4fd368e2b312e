// Statements are built once, from the lists of columns; SQL that stands here as text names columns
// only to look for runs.
#include "store/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "store/columns.h"
#include "store/encoding.h"

namespace fullstop::store {
namespace {

template <class Columns>
Statement insert_into(const char* table, const Columns& columns) {
    std::string names, places;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        fmt::format_to(std::back_inserter(names), "{}{}", i == 0 ? "" : ", ",
                       columns[i].facts.name);
        fmt::format_to(std::back_inserter(places), "{}${}", i == 0 ? "" : ", ", i + 1);
    }
    return {fmt::format("INSERT INTO {} ({}) VALUES ({})", table, names, places)};
}

template <class Columns, class Written>
std::vector<Value> values_of(const Columns& columns, const Written& row) {
    std::vector<Value> values;
    values.reserve(columns.size());
    for (const auto& column : columns) values.push_back(column.write(row));
    return values;
}

/// The columns that are read, by `wanted`.
template <class Written, class Read>
class Selection {
public:
    using Each = Column<Written, Read>;
    template <class Wanted>
    Selection(std::span<const Each> all, Wanted wanted, std::string_view from) {
        std::string names;
        for (const Each& column : all) {
            if (column.read == nullptr || !wanted(column)) continue;
            names += (columns_.empty() ? "" : ", ") + std::string(column.facts.name);
            columns_.push_back(&column);
        }
        statement_.sql = fmt::format("SELECT {} {}", names, from);
    }
    const Statement& statement() const { return statement_; }
    void read(const Row& row, Read& to) const {
        for (std::size_t i = 0; i < columns_.size(); ++i)
            columns_[i]->read(row, static_cast<int>(i), to);
    }

private:
    Statement statement_;
    std::vector<const Each*> columns_;
};

/// One moment of the database, even while others write.
class Moment {
public:
    explicit Moment(Database& database) : database_(database) { database_.begin_reading(); }
    ~Moment() { database_.end_reading(); }
    Moment(const Moment&) = delete;
    Moment& operator=(const Moment&) = delete;

private:
    Database& database_;
};

constexpr auto kAll = [](const auto&) { return true; };

void read_records(Database& database, answer::Run& run, Captures captures) {
    constexpr const char* kFrom = "FROM records WHERE run = $1 ORDER BY seq";
    static const Selection<RecordRow, answer::Record> whole(record_columns(), kAll, kFrom);
    static const Selection<RecordRow, answer::Record> without(
        record_columns(),
        [](const RecordColumn& column) { return column.use != RecordColumn::Use::kCapture; },
        kFrom);
    const auto& selection = captures == Captures::kLoaded ? whole : without;
    database.select(selection.statement(), std::array{Value(Text{run.id})},
                    [&](const Row& row) { selection.read(row, run.records.emplace_back()); });
}

void read_samples(Database& database, answer::Run& run) {
    static const Selection<SampleRow, answer::Sample> selection(
        sample_columns(), kAll, "FROM samples WHERE run = $1 ORDER BY seq");
    database.select(selection.statement(), std::array{Value(Text{run.id})},
                    [&](const Row& row) { selection.read(row, run.samples.emplace_back()); });
}

/// What can still be said of a run whose process died.
void mark_unfinished(answer::Run& run) {
    run.interrupted = true;
    for (const answer::Record& record : run.records)
        if (record.timeline.ended) run.elapsed = std::max(run.elapsed, *record.timeline.ended);
    run.notes.push_back(
        fmt::format("the measuring process ended before the run did: {} answers were stored, those "
                    "in flight are lost",
                    run.records.size()));
}

/// SET name = $1, ... WHERE id = the last one.
Statement update_statement() {
    std::string set;
    int count = 0;
    for (const RunColumn& column : run_columns())
        if (column.use == RunColumn::Use::kChanges) {
            ++count;
            fmt::format_to(std::back_inserter(set), "{}{} = ${}", count == 1 ? "" : ", ",
                           column.facts.name, count);
        }
    return {fmt::format("UPDATE runs SET {} WHERE id = ${}", set, count + 1)};
}

}  // namespace

void insert_run(Database& database, const answer::Run& run) {
    static const Statement statement = insert_into("runs", run_columns());
    database.execute(statement, values_of(run_columns(), to_row(run)));
}

void insert_record(Database& database, std::string_view run_id, const answer::Record& record) {
    static const Statement statement = insert_into("records", record_columns());
    database.execute(statement, values_of(record_columns(), to_row(run_id, record)));
}

void insert_sample(Database& database, std::string_view run_id, const answer::Sample& sample) {
    static const Statement statement = insert_into("samples", sample_columns());
    database.execute(statement, values_of(sample_columns(), to_row(run_id, sample)));
}

void update_run(Database& database, const answer::Run& run, bool finished) {
    static const Statement statement = update_statement();
    RunRow row = to_row(run);
    row.finished = finished;
    std::vector<Value> values;
    for (const RunColumn& column : run_columns())
        if (column.use == RunColumn::Use::kChanges) values.push_back(column.write(row));
    values.emplace_back(Text{run.id});
    database.execute(statement, values);
}

std::vector<std::string> matching_runs(Database& database, std::string_view id) {
    static const Statement newest{"SELECT id FROM runs ORDER BY started_ns DESC, id DESC LIMIT 1"};
    static const Statement alike{
        "SELECT id FROM runs WHERE id = $1 OR substr(id, 1, length(CAST($1 AS TEXT))) = $1 ORDER "
        "BY CASE WHEN id = $1 THEN 0 ELSE 1 END LIMIT 2"};
    std::vector<std::string> found;
    const auto keep = [&](const Row& row) { found.push_back(row.text(0)); };
    if (id == "last")
        database.select(newest, {}, keep);
    else
        database.select(alike, std::array{Value(Text{id})}, keep);
    if (found.size() == 2 && found[0] == id) found.pop_back();
    return found;
}

base::Error not_one_run(std::string_view id, std::size_t found, const std::string& store_name) {
    return {base::ErrorKind::kUsage,
            found > 1      ? fmt::format("several runs begin with '{}'", id)
            : id == "last" ? fmt::format("the store {} holds no run yet", store_name)
                           : fmt::format("there is no run '{}' in the store {}", id, store_name),
            "'fullstop report --list' shows the runs"};
}

answer::Run read_run(Database& database, const std::string& id, Captures captures) {
    static const Selection<RunRow, ReadRun> selection(run_columns(), kAll,
                                                      "FROM runs WHERE id = $1");
    ReadRun read;
    const Moment moment(database);
    database.select(selection.statement(), std::array{Value(Text{id})},
                    [&](const Row& row) { selection.read(row, read); });
    expect(read.run.id == id, "the run that was just found");
    read_records(database, read.run, captures);
    read_samples(database, read.run);
    if (!read.finished) mark_unfinished(read.run);
    return std::move(read.run);
}

std::vector<RunEntry> list_runs(Database& database) {
    static const Statement statement{
        "SELECT id, started_ns, elapsed_ns, url, model, (SELECT count(*) FROM records WHERE run = "
        "runs.id), finished, interrupted FROM runs "
        "ORDER BY started_ns DESC, id DESC"};
    std::vector<RunEntry> entries;
    database.select(statement, {}, [&](const Row& row) {
        entries.push_back({.id = row.text(0),
                           .started = {row.integer(1)},
                           .elapsed = base::Duration(row.integer(2)),
                           .url = row.text(3),
                           .model = row.text(4),
                           .answers = row.integer(5),
                           .finished = row.integer(6) != 0,
                           .interrupted = row.integer(7) != 0});
    });
    return entries;
}

RowCounts count_rows(Database& database, std::string_view run_id) {
    static const Statement statement{
        "SELECT (SELECT count(*) FROM records WHERE run = $1), (SELECT count(*) FROM samples WHERE "
        "run = $1)"};
    RowCounts counts;
    database.select(statement, std::array{Value(Text{run_id})}, [&](const Row& row) {
        counts = {.records = row.integer(0), .samples = row.integer(1)};
    });
    return counts;
}

}  // namespace fullstop::store
