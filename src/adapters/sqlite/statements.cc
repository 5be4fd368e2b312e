// Values are copied by SQLite, so that they need not outlive the call.
#include "adapters/sqlite/statements.h"

namespace fullstop::adapters::sqlite {
namespace {

void bind(SQLite::Statement& statement, std::span<const store::Value> values) {
    struct Binder {
        SQLite::Statement& statement;
        int index;
        void operator()(std::monostate) const { statement.bind(index); }
        void operator()(std::int64_t value) const { statement.bind(index, value); }
        void operator()(double value) const { statement.bind(index, value); }
        void operator()(store::Text value) const {
            statement.bind(index, std::string(value.bytes));
        }
        void operator()(store::Blob value) const {
            statement.bind(index, value.bytes.data(), static_cast<int>(value.bytes.size()));
        }
    };
    for (std::size_t i = 0; i < values.size(); ++i)
        std::visit(Binder{.statement = statement, .index = static_cast<int>(i) + 1}, values[i]);
}

class CurrentRow final : public store::Row {
public:
    explicit CurrentRow(SQLite::Statement& statement) : statement_(statement) {}
    std::int64_t integer(int column) const override {
        return statement_.getColumn(column).getInt64();
    }
    std::optional<double> real(int column) const override {
        const SQLite::Column value = statement_.getColumn(column);
        return value.isNull() ? std::nullopt : std::optional(value.getDouble());
    }
    std::string text(int column) const override { return blob(column); }
    std::string blob(int column) const override {
        const SQLite::Column value = statement_.getColumn(column);
        const auto* data = static_cast<const char*>(value.getBlob());
        return data == nullptr ? std::string()
                               : std::string(data, static_cast<std::size_t>(value.getBytes()));
    }

private:
    SQLite::Statement& statement_;
};

}  // namespace

void Statements::execute(const store::Statement& statement, std::span<const store::Value> values) {
    SQLite::Statement& compiled =
        compiled_.try_emplace(&statement, *connection_, statement.sql).first->second;
    compiled.tryReset();  // a failure of the call before has already been reported
    bind(compiled, values);
    compiled.exec();
}

void Statements::select(const store::Statement& statement, std::span<const store::Value> values,
                        const std::function<void(const store::Row&)>& each) {
    SQLite::Statement rows(*connection_, statement.sql);
    bind(rows, values);
    const CurrentRow row(rows);
    while (rows.executeStep()) each(row);
}

}  // namespace fullstop::adapters::sqlite
