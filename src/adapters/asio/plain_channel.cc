// A plain TCP socket as a channel.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <system_error>

#include "adapters/asio/channel.h"
#include "adapters/asio/client/stamp.h"

namespace fullstop::adapters::asio {
namespace {

class PlainChannel final : public Channel {
public:
    PlainChannel(int fd, bool stamps) : fd_(fd), stamps_(stamps) {}

    Io handshake() override { return {}; }

    Io read(std::span<char> into, std::int64_t& stamp_real_ns) override {
        const std::int64_t got = stamps_ ? receive(fd_, into, stamp_real_ns) : receive(fd_, into);
        if (got > 0) return {.bytes = static_cast<std::size_t>(got), .text = {}};
        if (got == 0) return {.status = Io::Status::kEnd, .text = {}};
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return {.status = Io::Status::kWantRead, .text = {}};
        return {.status = Io::Status::kReset, .error = errno, .text = system_words(errno)};
    }

    Io write(std::string_view bytes) override {
        ssize_t put = 0;
        do put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        while (put < 0 && errno == EINTR);
        if (put >= 0) return {.bytes = static_cast<std::size_t>(put), .text = {}};
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return {.status = Io::Status::kWantWrite, .text = {}};
        return {.status = Io::Status::kReset, .error = errno, .text = system_words(errno)};
    }

    bool holds_bytes() const override { return false; }
    void say_goodbye() override {}

private:
    int fd_;
    bool stamps_;
};

}  // namespace

std::unique_ptr<Channel> plain_channel(int fd, bool stamps) {
    return std::make_unique<PlainChannel>(fd, stamps);
}

std::string system_words(int error) { return std::system_category().message(error); }

}  // namespace fullstop::adapters::asio
