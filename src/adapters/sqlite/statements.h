// Statements of an SQLite connection. Those that write are compiled once: storing an answer stands
// in the path of the measurement. Included by the store's own sources only, since it shows
// SQLiteCpp.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <memory>
#include <optional>

#include "store/database.h"

namespace fullstop::adapters::sqlite {

class Statements final : public store::Database {
public:
    explicit Statements(std::unique_ptr<SQLite::Database> connection)
        : connection_(std::move(connection)) {}
    SQLite::Database& connection() { return *connection_; }

    void execute(const store::Statement& statement, std::span<const store::Value> values) override;
    void select(const store::Statement& statement, std::span<const store::Value> values,
                const std::function<void(const store::Row&)>& each) override;
    void begin_reading() override { moment_.emplace(*connection_); }
    void end_reading() noexcept override { moment_.reset(); }

private:
    std::unique_ptr<SQLite::Database> connection_;
    std::map<const store::Statement*, SQLite::Statement> compiled_;  ///< goes before the connection
    std::optional<SQLite::Transaction> moment_;
};

}  // namespace fullstop::adapters::sqlite
