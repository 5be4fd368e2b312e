// Name, socket, bind, listen; and why not, in words.
#include "adapters/asio/server/listener.h"

#include <errno.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/resolver.h"
#include "adapters/asio/limits.h"

namespace fullstop::adapters::asio {
namespace {

/// As much as the kernel allows (net.core.somaxconn): a probe opens all its connections in one
/// moment.
constexpr int kBacklog = 4096;

base::Error listen_error(int error, const ServerOptions& options) {
    const std::string where = fmt::format("{}:{}", options.host, options.port);
    const auto usage = [](std::string message, std::string hint) {
        return base::Error{base::ErrorKind::kUsage, std::move(message), std::move(hint)};
    };
    switch (error) {
        case EADDRINUSE:
            return usage(fmt::format("cannot listen on {}: the port is taken", where),
                         "choose another port, or 0 to let the system pick a free one");
        case EACCES:
        case EPERM:
            return usage(fmt::format("cannot listen on {}: not permitted", where),
                         "ports below 1024 need privileges; choose a higher one");
        case EADDRNOTAVAIL:
            return usage(
                fmt::format("cannot listen on {}: this machine has no such address", where),
                "127.0.0.1 serves this machine only, 0.0.0.0 all networks");
        default:
            return {base::ErrorKind::kInternal,
                    fmt::format("cannot listen on {}: {}", where, system_words(error)), ""};
    }
}

}  // namespace

base::Result<int> open_listener(const ServerOptions& options) {
    const Lookup lookup = Resolver::look_up_now(options.host, options.port);
    if (lookup.addresses.empty())
        return base::usage_error(
            fmt::format("cannot listen on {}: {}", options.host, lookup.trouble),
            "give an address of this machine");
    const Address& address = lookup.addresses.front();
    const int fd =
        ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return std::unexpected(listen_error(errno, options));
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, address.get(), address.size) == 0 && ::listen(fd, kBacklog) == 0) return fd;
    const int error = errno;
    ::close(fd);
    return std::unexpected(listen_error(error, options));
}

std::uint16_t port_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    // sin_port and sin6_port stand at the same place.
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::size_t connections_for_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return kMaxServedConnections;
    return std::max<std::size_t>(limit.rlim_cur, kReservedDescriptors + 2) / 2 -
           kReservedDescriptors / 2;
}

}  // namespace fullstop::adapters::asio
