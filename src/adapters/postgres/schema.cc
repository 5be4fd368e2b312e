// Looked at without a lock first, so that a start costs nobody a wait and reading needs no right to
// create anything.
#include "adapters/postgres/schema.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "store/schema.h"

namespace fullstop::adapters::postgres {
namespace {

constexpr store::Dialect kDialect{.integer = "BIGINT",
                                  .real = "DOUBLE PRECISION",
                                  .text = "TEXT",
                                  .blob = "BYTEA",
                                  .number = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
                                  .suffix = ""};
/// "FSTP": of the advisory lock under which the tables are made.
constexpr int kLock = 0x46535450;

struct State {
    std::string encoding;
    bool read_only = false, there = false, empty = false;
};

State look(Connection& connection) {
    static const store::Statement statement{
        "SELECT current_setting('server_encoding'), CASE current_setting('transaction_read_only') "
        "WHEN 'on' THEN 1::bigint ELSE 0 END, "
        "(SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
        "c.relnamespace WHERE n.nspname = 'fullstop' AND c.relname = "
        "'schema_version'), "
        "(SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
        "c.relnamespace WHERE n.nspname = 'fullstop')"};
    State state;
    connection.select(statement, {}, [&](const store::Row& row) {
        state = {.encoding = row.text(0),
                 .read_only = row.integer(1) != 0,
                 .there = row.integer(2) != 0,
                 .empty = row.integer(3) == 0};
    });
    return state;
}

std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
    return out + "'";
}

std::string meanings() {
    std::string sql;
    for (const store::Table& table : store::tables())
        for (const store::ColumnFacts& column : table.columns)
            if (*column.meaning != '\0')
                fmt::format_to(std::back_inserter(sql), "COMMENT ON COLUMN {}.{} IS {};\n",
                               table.name, column.name, quoted(column.meaning));
    return sql;
}

void create(Connection& connection) {
    connection.run(fmt::format("BEGIN; SELECT pg_catalog.pg_advisory_xact_lock({})", kLock));
    if (!look(connection).there)  // or another program was faster
        connection.run(fmt::format(
            "CREATE SCHEMA IF NOT EXISTS {0}; SET LOCAL search_path TO {0}, pg_catalog; {1}{2}"
            "CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version "
            "VALUES ({3})",
            kSchemaName, store::create_statements(kDialect), meanings(), store::kSchemaVersion));
    connection.run("COMMIT");
}

base::Result<void> check_version(Connection& connection, const Target& target) {
    static const store::Statement statement{"SELECT max(version) FROM schema_version"};
    std::int64_t version = 0;
    connection.select(statement, {}, [&](const store::Row& row) { version = row.integer(0); });
    if (version == store::kSchemaVersion) return {};
    return base::usage_error(
        fmt::format("the store {} was made by {} fullstop (schema {}; this one reads {})",
                    target.name, version > store::kSchemaVersion ? "a newer" : "another", version,
                    store::kSchemaVersion),
        version > store::kSchemaVersion
            ? "use the newer fullstop, or name another database with --store"
            : "name another database with --store");
}

/// So that a missing right is found before the first answer is paid for.
void check_rights(Connection& connection, store::Access access) {
    static const store::Statement statement{
        "SELECT count(*) FROM unnest(ARRAY['runs', 'records', 'samples']) AS t WHERE NOT "
        "has_table_privilege('fullstop.' || t, 'SELECT') "
        "OR (CAST($1 AS BIGINT) <> 0 AND NOT (has_table_privilege('fullstop.' || t, 'INSERT') AND "
        "(t <> 'runs' OR has_table_privilege('fullstop.' || t, "
        "'UPDATE'))))"};
    std::int64_t closed = 0;
    const store::Value writes = std::int64_t{access == store::Access::kWrite ? 1 : 0};
    connection.select(statement, std::array{writes},
                      [&](const store::Row& row) { closed = row.integer(0); });
    if (closed != 0)
        throw Failure(fmt::format("no right to {} its tables",
                                  access == store::Access::kWrite ? "write" : "read"),
                      "42501", false);
}

}  // namespace

void use_schema(Connection& connection) {
    connection.run(fmt::format("SET search_path TO {}, pg_catalog", kSchemaName));
}

base::Result<void> prepare(Connection& connection, const Target& target, store::Access access) {
    const State state = look(connection);
    if (state.encoding != "UTF8")
        return base::usage_error(
            fmt::format("the store {} has the encoding {}, and answers are UTF-8", target.name,
                        state.encoding),
            "create a database for it: createdb --encoding UTF8 --template template0 NAME");
    if (!state.there && !state.empty)
        return base::usage_error(
            fmt::format("the store {} has a schema '{}' that is not ours; it was left alone",
                        target.name, kSchemaName),
            "name another database with --store");
    if (!state.there && access == store::Access::kRead)
        return base::usage_error(fmt::format("there is no store of runs in {} yet", target.name),
                                 "name it with --store when probing, or for a gateway, first");
    if (state.read_only && access == store::Access::kWrite)
        throw Failure("read-only", "25006", false);
    if (!state.there) create(connection);
    use_schema(connection);
    if (auto ours = check_version(connection, target); !ours) return ours;
    check_rights(connection, access);
    return {};
}

}  // namespace fullstop::adapters::postgres
