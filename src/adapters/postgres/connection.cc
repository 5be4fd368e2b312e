// Values and rows travel in PostgreSQL's binary form: big-endian integers and doubles, bytes as
// they are.
#include "adapters/postgres/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <vector>

#include "adapters/postgres/libpq.h"
#include "adapters/postgres/limits.h"
#include "adapters/postgres/text_escape.h"
#include "adapters/postgres/trouble.h"
#include "store/encoding.h"

namespace fullstop::adapters::postgres {
namespace {

using Clock = std::chrono::steady_clock;
using Result = std::unique_ptr<PGresult, decltype(&::PQclear)>;

std::string big_endian(std::uint64_t value) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i)
        bytes[static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * (7 - i)) & 0xFF);
    return bytes;
}

/// The values of one call, in the form that libpq takes them.
class Parameters {
public:
    explicit Parameters(std::span<const store::Value> values)
        : null_(values.size()), formats_(values.size(), 1) {
        bytes_.reserve(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            null_[i] = std::holds_alternative<std::monostate>(values[i]);
            bytes_.push_back(std::visit(Encoder(), values[i]));
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            pointers_.push_back(null_[i] ? nullptr : bytes_[i].c_str());
            lengths_.push_back(static_cast<int>(bytes_[i].size()));
        }
    }
    int count() const { return static_cast<int>(pointers_.size()); }
    const char* const* pointers() const { return pointers_.data(); }
    const int* lengths() const { return lengths_.data(); }
    const int* formats() const { return formats_.data(); }

private:
    struct Encoder {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(std::int64_t value) const {
            return big_endian(static_cast<std::uint64_t>(value));
        }
        std::string operator()(double value) const {
            return big_endian(std::bit_cast<std::uint64_t>(value));
        }
        std::string operator()(store::Text value) const { return escaped(value.bytes); }
        std::string operator()(store::Blob value) const { return std::string(value.bytes); }
    };
    std::vector<std::string> bytes_;
    std::vector<bool> null_;
    std::vector<const char*> pointers_;
    std::vector<int> lengths_, formats_;
};

class CurrentRow final : public store::Row {
public:
    explicit CurrentRow(const PGresult* result) : result_(result) {}
    std::int64_t integer(int column) const override {
        return static_cast<std::int64_t>(number(column));
    }
    std::optional<double> real(int column) const override {
        if (pq().PQgetisnull(result_, 0, column) != 0) return std::nullopt;
        return std::bit_cast<double>(number(column));
    }
    std::string text(int column) const override { return unescaped(bytes(column)); }
    std::string blob(int column) const override { return std::string(bytes(column)); }

private:
    std::string_view bytes(int column) const {
        return {pq().PQgetvalue(result_, 0, column),
                static_cast<std::size_t>(pq().PQgetlength(result_, 0, column))};
    }
    std::uint64_t number(int column) const {
        const std::string_view raw = bytes(column);
        store::expect(raw.size() == 8, "a number of eight bytes");
        std::uint64_t value = 0;
        for (const char byte : raw) value = value << 8 | static_cast<unsigned char>(byte);
        return value;
    }
    const PGresult* result_;
};

base::Duration connect_limit(const Target& target) {
    const auto given = target.options.find("connect_timeout");
    const int seconds = given == target.options.end() ? 0 : std::atoi(given->second.c_str());
    return seconds > 0 ? std::chrono::seconds(seconds) : kConnectTimeout;
}

}  // namespace

void Connection::Close::operator()(pg_conn* connection) const { pq().PQfinish(connection); }

Connection::Connection(const Target& target, const std::atomic<bool>& ending) : ending_(ending) {
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : target.options)
        keys.push_back(key.c_str()), values.push_back(value.c_str());
    keys.push_back(nullptr), values.push_back(nullptr);
    connection_.reset(pq().PQconnectStartParams(keys.data(), values.data(), 0));
    if (!connection_) throw Failure("no memory for a connection", "", true);
    pq().PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    pq().PQsetErrorVerbosity(connection_.get(),
                             PQERRORS_VERBOSE);  // so that a refused connection tells its SQLSTATE
    connect(connect_limit(target));
    pq().PQsetnonblocking(connection_.get(), 1);
    pq().PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
}

Connection::~Connection() = default;

void Connection::connect(base::Duration limit) {
    const auto end = Clock::now() + limit;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;  // before the first call, says libpq
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED || pq().PQstatus(connection_.get()) == CONNECTION_BAD) {
            const Refusal refusal = read_refusal(pq().PQerrorMessage(connection_.get()));
            throw Failure(refusal.words, refusal.state, true);
        }
        wait(next == PGRES_POLLING_WRITING,
             std::max<base::Duration>(end - Clock::now(), base::Duration::zero()));
        next = pq().PQconnectPoll(connection_.get());
    }
}

/// Until the socket can be read, or written where that is asked for.
void Connection::wait(bool writable, base::Duration limit) {
    const auto end = Clock::now() + limit;
    while (!ending_) {
        const auto left = end - Clock::now();
        if (left <= base::Duration::zero())
            fail(fmt::format("no reply within {:g} s", base::to_seconds(limit)), true);
        pollfd socket{.fd = pq().PQsocket(connection_.get()),
                      .events = static_cast<short>(writable ? POLLIN | POLLOUT : POLLIN),
                      .revents = 0};
        if (pq().PQstatus(connection_.get()) != CONNECTION_OK)
            socket.events = static_cast<short>(writable ? POLLOUT : POLLIN);
        const auto slice = std::chrono::ceil<std::chrono::milliseconds>(
            std::min<base::Duration>(left, kLookForEnd));
        if (poll(&socket, 1, static_cast<int>(slice.count())) > 0) return;
    }
    fail("the program ends", true);
}

void Connection::fail(const std::string& words, bool lost) {
    if (lost) connection_.reset();
    throw Failure(words, "", lost);
}

bool Connection::usable() const {
    return connection_ && pq().PQstatus(connection_.get()) == CONNECTION_OK;
}

void Connection::flush() {
    for (int left = pq().PQflush(connection_.get()); left != 0;
         left = pq().PQflush(connection_.get())) {
        if (left < 0) fail(one_line(pq().PQerrorMessage(connection_.get())), true);
        wait(true, reply_limit_);
        // While it cannot take more it may be waiting for us to read.
        if (pq().PQconsumeInput(connection_.get()) == 0)
            fail(one_line(pq().PQerrorMessage(connection_.get())), true);
    }
}

/// After one of libpq's calls that hand over a statement.
void Connection::send(int accepted) {
    if (accepted == 0) {
        const std::string words = one_line(pq().PQerrorMessage(connection_.get()));
        fail(words, pq().PQstatus(connection_.get()) != CONNECTION_OK);
    }
}

void Connection::take_results(const Rows* each) {
    flush();
    std::optional<Failure> failure;
    std::exception_ptr unreadable;  // the rest is taken off the line all the same
    while (true) {
        while (pq().PQisBusy(connection_.get()) != 0) {
            wait(false, reply_limit_);
            if (pq().PQconsumeInput(connection_.get()) == 0)
                fail(one_line(pq().PQerrorMessage(connection_.get())), true);
        }
        const Result result(pq().PQgetResult(connection_.get()), pq().PQclear);
        if (!result) break;
        const ExecStatusType status = pq().PQresultStatus(result.get());
        if (status == PGRES_SINGLE_TUPLE && each != nullptr && !unreadable) {
            try {
                (*each)(CurrentRow(result.get()));
            } catch (...) {
                unreadable = std::current_exception();
            }
        } else if (status == PGRES_FATAL_ERROR && !failure) {
            const char* state = pq().PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
            failure.emplace(one_line(pq().PQresultErrorMessage(result.get())),
                            state == nullptr ? "" : state, false);
        }
    }
    if (failure) throw Failure(failure->what(), failure->state, !usable());
    if (unreadable) std::rethrow_exception(unreadable);
}

void Connection::run(const std::string& sql) {
    if (!usable()) throw Failure("the connection is gone", "", true);
    send(pq().PQsendQuery(connection_.get(), sql.c_str()));
    take_results(nullptr);
}

const std::string& Connection::prepared(const store::Statement& statement) {
    const auto found = prepared_.find(&statement);
    if (found != prepared_.end()) return found->second;
    const std::string name = fmt::format("fullstop_{}", prepared_.size());
    send(pq().PQsendPrepare(connection_.get(), name.c_str(), statement.sql.c_str(), 0, nullptr));
    take_results(nullptr);
    return prepared_[&statement] = name;
}

void Connection::send_prepared(const store::Statement& statement,
                               std::span<const store::Value> values) {
    if (!usable()) throw Failure("the connection is gone", "", true);
    const std::string& name = prepared(statement);
    const Parameters parameters(values);
    send(pq().PQsendQueryPrepared(connection_.get(), name.c_str(), parameters.count(),
                                  parameters.pointers(), parameters.lengths(), parameters.formats(),
                                  1));
}

void Connection::execute(const store::Statement& statement, std::span<const store::Value> values) {
    send_prepared(statement, values);
    take_results(nullptr);
}

void Connection::select(const store::Statement& statement, std::span<const store::Value> values,
                        const Rows& each) {
    send_prepared(statement, values);
    pq().PQsetSingleRowMode(connection_.get());  // a run's rows need not fit into memory twice
    take_results(&each);
}

void Connection::end_reading() noexcept {
    try {
        run("COMMIT");
    } catch (const Failure&) {
        connection_.reset();  // it would stay inside a transaction
    }
}

}  // namespace fullstop::adapters::postgres
