// Host name -> addresses, with a time limit of its own. getaddrinfo cannot be cancelled, so each
// name is looked up on a thread of its own that nobody waits for: a hung name server delays neither
// other names nor the end of the program. Lookups of a name already being looked up join it; so
// threads are bounded by the number of distinct names.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/asio/loop.h"

namespace fullstop::adapters::asio {

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    std::string text() const;  ///< "127.0.0.1:8080", "[::1]:8080"
};

struct Lookup {
    std::vector<Address> addresses;  ///< in the system's order of preference
    std::string trouble;             ///< why there are none, in words
};

class Resolver {
public:
    explicit Resolver(Loop& loop);
    ~Resolver();

    /// The addresses of a literal ("127.0.0.1", "::1", "[::1]"); empty when `host` is a name.
    static std::vector<Address> literal(const std::string& host, std::uint16_t port);
    /// Waits for the answer: for a server's own address, before anything runs.
    static Lookup look_up_now(const std::string& host, std::uint16_t port);
    /// `done` is called on the loop, unless the resolver is gone by then. The caller keeps the time
    /// limit.
    void look_up(const std::string& host, std::uint16_t port,
                 std::function<void(const Lookup&)> done);

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace fullstop::adapters::asio
