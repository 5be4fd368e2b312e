// Kernel receive stamps: asked for, read with the bytes, and moved from the wall clock to the
// monotonic line.
#include "adapters/asio/client/stamp.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "adapters/asio/clock.h"

namespace fullstop::adapters::asio {
namespace {

/// The kernel's own slewing (adjtime, NTP) never exceeds 500 parts per million; more is a step.
constexpr std::int64_t kSlewPerMillion = 500;
/// Slack of one comparison of two offsets, beyond the doubt of the readings: vDSO granularity and
/// rounding.
constexpr base::Duration kOffsetSlack = std::chrono::microseconds(5);
/// Readings further apart than this were interrupted; another try is cheaper than the doubt.
constexpr base::Duration kGoodDoubt = std::chrono::microseconds(2);
constexpr int kReadingTries = 3;

std::int64_t offset_ns(const ClockPair& pair) {
    return pair.real_ns - pair.monotonic.time_since_epoch().count();
}

/// A datagram socket on loopback that hears itself; -1 when there is no loopback.
int open_echo() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (fd < 0 || (::bind(fd, plain, size) == 0 && ::getsockname(fd, plain, &size) == 0 &&
                   ::connect(fd, plain, size) == 0))
        return fd;
    ::close(fd);
    return -1;
}

}  // namespace

ClockPair read_clock_pair() {
    const SystemClock clock;
    ClockPair best{.monotonic = {}, .real_ns = 0, .doubt = base::Duration::max()};
    for (int i = 0; i < kReadingTries && best.doubt > kGoodDoubt; ++i) {
        const base::Instant before = clock.now();
        const std::int64_t real = clock.wall().unix_ns;
        const base::Instant after = clock.now();
        if (after - before < best.doubt)
            best = {.monotonic = after, .real_ns = real, .doubt = after - before};
    }
    return best;
}

void StampConverter::note(const ClockPair& now) {
    if (!last_) {
        steady_since_ = now.monotonic;
    } else {
        const base::Duration moved(std::abs(offset_ns(now) - offset_ns(*last_)));
        const base::Duration allowed =
            (now.monotonic - last_->monotonic) * kSlewPerMillion / 1'000'000 + now.doubt +
            last_->doubt + kOffsetSlack;
        if (moved > allowed) steady_since_ = now.monotonic;
    }
    last_ = now;
}

std::optional<base::Instant> StampConverter::convert(std::int64_t stamp_real_ns,
                                                     const ClockPair& now) {
    note(now);
    const base::Instant at(base::Duration(stamp_real_ns - offset_ns(now)));
    if (at < steady_since_ || at > now.monotonic + now.doubt + kOffsetSlack) return std::nullopt;
    return std::min(at, now.monotonic);
}

bool enable_receive_stamps(int fd) {
    const unsigned flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
}

StampKeeper::StampKeeper(bool wanted) : fd_(wanted ? open_echo() : -1) {
    if (fd_ < 0 || !enable_receive_stamps(fd_)) return;
    const SystemClock clock;
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
    for (const base::Instant end = clock.now() + kWarmUp; clock.now() < end;
         ::nanosleep(&pause, nullptr)) {
        char byte = 0;
        std::int64_t stamp = 0;
        if (::send(fd_, &byte, 1, 0) != 1) return;
        if (receive(fd_, {&byte, 1}, stamp) == 1 && stamp != 0) return;
    }
}

StampKeeper::~StampKeeper() {
    if (fd_ >= 0) ::close(fd_);
}

std::int64_t receive(int fd, std::span<char> into, std::int64_t& stamp_real_ns) {
    stamp_real_ns = 0;
    iovec part{.iov_base = into.data(), .iov_len = into.size()};
    alignas(cmsghdr) std::array<char, 128>
        control;  // scm_timestamping is three timespecs: 48 bytes and its header
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = 0;
    do got = recvmsg(fd, &message, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return got;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING) continue;
        timespec software{};  // the first of the three; the others are hardware stamps
        std::memcpy(&software, CMSG_DATA(c), sizeof software);
        stamp_real_ns =
            static_cast<std::int64_t>(software.tv_sec) * 1'000'000'000 + software.tv_nsec;
    }
    return got;
}

std::int64_t receive(int fd, std::span<char> into) {
    ssize_t got = 0;
    do got = ::recv(fd, into.data(), into.size(), 0);
    while (got < 0 && errno == EINTR);
    return got;
}

}  // namespace fullstop::adapters::asio
