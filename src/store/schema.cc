// What a column means stands in the text as a comment, for those who open the database by hand.
#include "store/schema.h"

#include <fmt/format.h>

#include <iterator>

namespace fullstop::store {
namespace {

template <class Columns>
std::vector<ColumnFacts> facts_of(const Columns& columns) {
    std::vector<ColumnFacts> out;
    for (const auto& column : columns) out.push_back(column.facts);
    return out;
}

const char* type_of(ColumnType type, const Dialect& dialect) {
    switch (type) {
        case ColumnType::kInteger: return dialect.integer;
        case ColumnType::kReal: return dialect.real;
        case ColumnType::kText: return dialect.text;
        case ColumnType::kBlob: return dialect.blob;
    }
    return "";
}

const char* rule_of(ColumnRule rule) {
    switch (rule) {
        case ColumnRule::kRequired: return " NOT NULL";
        case ColumnRule::kOptional: return "";
        case ColumnRule::kKey: return " PRIMARY KEY NOT NULL";
        case ColumnRule::kRun: return " NOT NULL REFERENCES runs(id) ON DELETE CASCADE";
    }
    return "";
}

}  // namespace

std::vector<Table> tables() {
    return {{.name = "runs", .numbered = false, .columns = facts_of(run_columns())},
            {.name = "records", .numbered = true, .columns = facts_of(record_columns())},
            {.name = "samples", .numbered = true, .columns = facts_of(sample_columns())}};
}

std::string create_statements(const Dialect& dialect) {
    std::string sql;
    const auto put = std::back_inserter(sql);
    for (const Table& table : tables()) {
        fmt::format_to(put, "CREATE TABLE {} (\n", table.name);
        if (table.numbered) fmt::format_to(put, "    seq {},\n", dialect.number);
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            const ColumnFacts& column = table.columns[i];
            fmt::format_to(put, "    {} {}{}{}", column.name, type_of(column.type, dialect),
                           rule_of(column.rule), i + 1 < table.columns.size() ? "," : "");
            if (*column.meaning != '\0') fmt::format_to(put, " -- {}", column.meaning);
            sql += '\n';
        }
        fmt::format_to(put, "){};\n", dialect.suffix);
        if (table.numbered)
            fmt::format_to(put, "CREATE INDEX {0}_by_run ON {0}(run);\n", table.name);
    }
    return sql;
}

}  // namespace fullstop::store
