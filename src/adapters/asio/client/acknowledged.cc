// In a file of its own: the kernel's tcp_info knows more than the C library's, and the two cannot
// be included together.
#include "adapters/asio/client/acknowledged.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace fullstop::adapters::asio {

std::uint64_t acknowledged_bytes(int fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_acked : 0;
}

}  // namespace fullstop::adapters::asio
