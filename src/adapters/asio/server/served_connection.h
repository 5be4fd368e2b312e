// One client of the server: reads a request, lets the service answer it, and either keeps the
// connection for the next one or ends it the way the service said. One request at a time; bytes
// that come early wait, within a bound.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/unsent.h"
#include "adapters/asio/descriptor.h"
#include "adapters/asio/server/request_reader.h"
#include "adapters/asio/server/response_fitting.h"
#include "adapters/asio/server/server.h"
#include "net/limits.h"
#include "net/service.h"

namespace fullstop::adapters::asio {

class ServedConnection;

/// What a served connection asks of its server.
class ConnectionKeeper {
public:
    virtual net::ConnectionId new_request(ServedConnection& connection) = 0;
    virtual bool head(const net::ServiceRequest& request) = 0;
    virtual void request(net::ServiceRequest request) = 0;
    virtual void request_over(net::ConnectionId id) = 0;
    virtual void client_left(net::ConnectionId id) = 0;
    virtual void client_dropped(net::ConnectionId id) = 0;  ///< the same, for want of memory
    virtual void client_lags(net::ConnectionId id, bool lags) = 0;
    /// The connection is closed; the keeper forgets it, which may destroy it once its handlers have
    /// run.
    virtual void closed(ServedConnection& connection) = 0;
    virtual net::MemoryBudget& memory() = 0;
    virtual bool draining() const = 0;
    virtual const ServerOptions& options() const = 0;
    virtual std::array<char, net::kReadBytes>& buffer() = 0;

protected:
    ~ConnectionKeeper() = default;
};

class ServedConnection : public std::enable_shared_from_this<ServedConnection> {
public:
    /// Owns `fd`. `tls` may be null.
    ServedConnection(Loop& loop, ConnectionKeeper& keeper, int fd, const TlsContext* tls);

    void start();
    void send(std::string bytes);                   ///< of the running answer
    void answered(net::CloseKind kind, bool keep);  ///< the running answer is over
    void close_if_idle();                           ///< no request has begun
    bool is_waiting() const {
        return state_ == State::kReading || state_ == State::kShaking;
    }  ///< for a whole request
    bool has_begun() const { return reader_.has_begun() || !early_.empty(); }
    std::chrono::steady_clock::time_point waiting_since() const { return waiting_since_; }
    void make_room();  ///< closes a waiting connection
    void drop();       ///< the server goes away: reset, nothing is told

private:
    enum class State { kShaking, kReading, kAnswering, kFlushing, kLingering, kClosed };

    void pump();
    bool shake();
    void advance();
    void read_turn();
    bool head_is_wanted();
    void on_end();
    void take_in(std::string_view bytes);
    bool count();
    void let_go_for_others();
    void request_over();
    void refuse(int status, std::string_view message);
    void flush();
    void flush_some();
    void after_write();
    void note_lag();
    void flushed();
    void lose_client(bool reset);
    void close(bool reset);
    void wait_readable();
    void wait_writable();
    void pump_soon();
    void arm(base::Duration in);
    void on_timeout();
    bool reads_pause() const {
        return early_.size() >= kMaxEarlyBytes &&
               (state_ == State::kAnswering || state_ == State::kFlushing);
    }

    ConnectionKeeper* keeper_;
    Descriptor socket_;
    SteadyTimer timer_;
    std::unique_ptr<Channel> channel_;
    RequestReader reader_;
    State state_;
    net::ConnectionId request_ = 0;
    std::chrono::steady_clock::time_point waiting_since_ = std::chrono::steady_clock::now();
    net::MemoryBudget::Hold hold_;
    std::size_t received_ =
        0;  ///< bytes of a request that is not whole, or that wait behind a running answer
    std::string early_;  ///< of those, not yet taken by the reader
    Unsent unsent_;
    bool keep_ = false, client_ended_ = false, request_timed_ = false, lags_ = false;
    std::unique_ptr<ResponseFitting> fitting_;  ///< for clients and responses that need it
    bool begun_ = false;                        ///< some of the response was sent
    bool body_unread_ = false;                  ///< the service answered to the head alone
    net::CloseKind close_kind_ = net::CloseKind::kFin;
    bool waiting_to_read_ = false, waiting_to_write_ = false;
};

}  // namespace fullstop::adapters::asio
