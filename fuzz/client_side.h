// Clients of a service, as a host with real sockets has them: bytes come in any form, requests
// leave the reader one by one, and each response is held to RFC 9112 by a reader of its own, which
// is stricter than those of the program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/asio/server/request_reader.h"
#include "net/service.h"

namespace fullstop::fuzz {

/// What a client got, read strictly; whatever breaks a rule is a finding.
struct Response {
    int status = 0;
    std::map<std::string, std::string> headers;  ///< lower-case names
    std::string body;                            ///< without its framing
    bool whole = false;                          ///< by its framing
    bool until_close = false;
    bool is(std::string_view type) const {
        const auto found = headers.find("content-type");
        return found != headers.end() && found->second.starts_with(type);
    }
};
Response strictly_read(std::string_view raw, bool head_only);

/// The data of each event of a stream, and whether the body ends where one does.
struct Events {
    std::vector<std::string> data;
    bool cut = false;
};
Events events_of(std::string_view body);

/// JSON in UTF-8, as our own words have to be.
bool is_json(std::string_view text);

struct Asked {
    std::size_t client = 0;
    net::ServiceRequest request;  ///< as the service got it
    std::string raw;              ///< what came back so far
    bool closed = false;
};

/// A number of connections, each with at most one request under way.
class ClientSide {
public:
    static constexpr std::size_t kClients = 8;
    /// The service is shown a head, and says whether it wants the body; then it gets the request.
    /// Both call take() with what it does.
    using Head = std::function<bool(const net::ServiceRequest&)>;
    using Serve = std::function<void(net::ServiceRequest)>;
    using Ended = std::function<void(const Asked&, const Response&, const net::ServiceClose&)>;
    ClientSide(Head head, Serve serve, Ended ended);

    void sends(std::size_t client, std::string_view bytes);
    /// The request that was under way; 0: none.
    net::ConnectionId leaves(std::size_t client);
    net::ConnectionId under_way(std::size_t client) const {
        const Client& who = clients_[client % kClients];
        return who.asked ? who.request : 0;
    }
    const Asked& asked(net::ConnectionId id) const { return asked_.at(id); }

    /// What the service does for its clients.
    void take(const net::ServiceActions& actions);
    /// Reads on where a response has ended. Not within a call of the service.
    void read_on();
    std::size_t open() const;

private:
    struct Client {
        std::unique_ptr<adapters::asio::RequestReader> reader;
        std::string bytes;
        net::ConnectionId request = 0;
        bool asked = false;  ///< the service has the request, or has answered its head
    };
    void read(std::size_t client);
    bool head_is_wanted(std::size_t client);
    void close(const net::ServiceClose& close);
    static std::unique_ptr<adapters::asio::RequestReader> new_reader();

    Head head_;
    Serve serve_;
    Ended ended_;
    std::vector<Client> clients_;
    std::map<net::ConnectionId, Asked> asked_;
    net::ConnectionId last_ = 0;
};

}  // namespace fullstop::fuzz
