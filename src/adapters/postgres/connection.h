// One connection to PostgreSQL through libpq's asynchronous calls, so that every wait has a limit
// and ends when the program wants to. It belongs to one thread. What goes wrong is a Failure;
// explain() in trouble.h puts it in words.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "adapters/postgres/limits.h"
#include "adapters/postgres/target.h"
#include "base/time.h"
#include "store/database.h"

struct pg_conn;
struct pg_result;

namespace fullstop::adapters::postgres {

struct Failure : std::runtime_error {
    Failure(const std::string& words, std::string sql_state, bool connection_lost)
        : std::runtime_error(words), state(std::move(sql_state)), lost(connection_lost) {}
    std::string state;  ///< SQLSTATE; empty: libpq's own
    bool lost;          ///< nothing more can be asked of this connection
};

class Connection final : public store::Database {
public:
    /// Connects, within kConnectTimeout or the URL's connect_timeout. `ending`: waits end when it
    /// becomes true.
    Connection(const Target& target, const std::atomic<bool>& ending);
    ~Connection() override;

    /// Text without values; may hold several statements.
    void run(const std::string& sql);
    void execute(const store::Statement& statement, std::span<const store::Value> values) override;
    void select(const store::Statement& statement, std::span<const store::Value> values,
                const std::function<void(const store::Row&)>& each) override;
    void begin_reading() override { run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); }
    void end_reading() noexcept override;
    /// How long it may be silent while it owes a reply [kReplyTimeout].
    void limit_replies(base::Duration limit) { reply_limit_ = limit; }
    /// False after a failure that nothing can follow.
    bool usable() const;

private:
    struct Close {
        void operator()(pg_conn* connection) const;
    };
    using Rows = std::function<void(const store::Row&)>;

    void connect(base::Duration limit);
    void wait(bool writable, base::Duration limit);
    void flush();
    void send(int accepted);
    const std::string& prepared(const store::Statement& statement);
    void send_prepared(const store::Statement& statement, std::span<const store::Value> values);
    void take_results(const Rows* each);
    [[noreturn]] void fail(const std::string& words, bool lost);

    const std::atomic<bool>& ending_;
    base::Duration reply_limit_ = kReplyTimeout;
    std::unique_ptr<pg_conn, Close> connection_;
    std::map<const store::Statement*, std::string> prepared_;
};

}  // namespace fullstop::adapters::postgres
