// What keeping runs needs of a database: statements with values in, rows out. The SQL is written
// once (run_tables.cc), in the words that SQLite and PostgreSQL share, with $1, $2, ... for the
// values. Whatever goes wrong is the adapter's own exception, which passes through here and becomes
// an Error at the adapter's edge.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace fullstop::store {

/// A text of any bytes: servers send broken UTF-8 and zeros, and what was recorded comes back as it
/// was.
struct Text {
    std::string_view bytes;
};
struct Blob {
    std::string_view bytes;
};
/// What a column takes; the bytes live at least as long as the call.
using Value = std::variant<std::monostate, std::int64_t, double, Text, Blob>;

/// Lives as long as the program: adapters compile each once and know it by its address.
struct Statement {
    std::string sql;
};

class Row {
public:
    virtual ~Row() = default;
    virtual std::int64_t integer(int column) const = 0;
    virtual std::optional<double> real(int column) const = 0;  ///< absent: NULL
    virtual std::string text(int column) const = 0;
    virtual std::string blob(int column) const = 0;
};

class Database {
public:
    virtual ~Database() = default;
    virtual void execute(const Statement& statement, std::span<const Value> values) = 0;
    virtual void select(const Statement& statement, std::span<const Value> values,
                        const std::function<void(const Row&)>& each) = 0;
    /// Between the two, all reading sees one moment of the database, even while others write.
    virtual void begin_reading() = 0;
    virtual void end_reading() noexcept = 0;
};

}  // namespace fullstop::store
