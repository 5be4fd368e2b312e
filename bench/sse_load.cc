// A load of streamed chat answers for measuring what stands between client and mock_sse_server: N
// users, each asking again as soon as its answer has ended, for S seconds. Every text event carries
// the moment it was sent, so each gives a one-way delay. An answer counts as bad unless all its
// events, its finish reason, [DONE] and the last chunk came, in framing that holds. Prints one JSON
// object. One epoll loop; ask sched_setscheduler for it from outside (chrt).
//
//   sse_load --port P --users N --seconds S --events E [--spread-us U] [--core C]
//
// U: the users' first requests are spread over it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Options {
    std::int64_t port = 0, users = 4, seconds = 5, events = 64, spread_us = 0, core = -1;
};

/// An answer still running this long after the end of the load is given up, and bad.
constexpr std::int64_t kPatienceNs = 10'000'000'000;

std::int64_t now_ns() {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

/// What the answers of all users came to.
struct Totals {
    std::int64_t answers = 0, bad = 0, events = 0, bytes = 0, connects = 0;
    std::vector<std::uint32_t> delays_ns, first_ns;
};

std::uint32_t clamp(std::int64_t ns) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 0, UINT32_MAX));
}

/// One response: head, chunk framing, lines.
class Answer {
public:
    void begin(std::int64_t now) { *this = Answer{}, asked_ = now; }

    /// False when the framing is broken or something follows the last chunk.
    bool take(std::string_view bytes, std::int64_t now, Totals& totals) {
        while (!bytes.empty()) {
            if (over_) return false;
            if (state_ == State::kData) {
                const std::string_view piece = bytes.substr(0, left_);
                bytes.remove_prefix(piece.size());
                left_ -= piece.size();
                text(piece, now, totals);
                if (left_ == 0) state_ = State::kDataEnd;
                continue;
            }
            const auto end = bytes.find('\n');
            line_.append(bytes.substr(0, end));
            if (end == std::string_view::npos) return line_.size() < 65536;
            bytes.remove_prefix(end + 1);
            if (line_.ends_with('\r')) line_.pop_back();
            const bool good = framing_line();
            line_.clear();
            if (!good) return false;
        }
        return true;
    }
    bool over() const { return over_; }
    bool closes() const { return closes_; }
    bool whole(std::int64_t events) const {
        return over_ && events_ == events && finish_ == 1 && done_ == 1 && !error_;
    }

private:
    enum class State { kStatus, kHead, kSize, kData, kDataEnd, kTrailer };

    bool framing_line() {
        switch (state_) {
            case State::kStatus: state_ = State::kHead; return line_.starts_with("HTTP/1.1 200");
            case State::kHead:
                if (line_.empty()) return state_ = State::kSize, chunked_;
                std::ranges::transform(line_, line_.begin(), [](char c) {
                    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
                });
                chunked_ = chunked_ || line_ == "transfer-encoding: chunked";
                closes_ = closes_ || line_ == "connection: close";
                return true;
            case State::kSize: {
                const auto [end, error] =
                    std::from_chars(line_.data(), line_.data() + line_.size(), left_, 16);
                state_ = left_ == 0 ? State::kTrailer : State::kData;
                return error == std::errc() && end == line_.data() + line_.size();
            }
            case State::kDataEnd: state_ = State::kSize; return line_.empty();
            case State::kTrailer: over_ = line_.empty(); return true;
            case State::kData: break;
        }
        return false;
    }

    void text(std::string_view piece, std::int64_t now, Totals& totals) {
        while (true) {
            const auto end = piece.find('\n');
            if (end == std::string_view::npos) return void(event_.append(piece));
            if (event_.empty()) {
                event(piece.substr(0, end), now, totals);
            } else {
                event_.append(piece.substr(0, end));
                event(event_, now, totals);
                event_.clear();
            }
            piece.remove_prefix(end + 1);
        }
    }

    void event(std::string_view line, std::int64_t now, Totals& totals) {
        constexpr std::string_view kContent = "\"content\":\"";
        if (line.empty()) return;
        if (line == "data: [DONE]") return void(++done_);
        error_ = error_ || line.find("\"error\"") != std::string_view::npos;
        if (line.find("\"finish_reason\":\"stop\"") != std::string_view::npos) ++finish_;
        const auto at = line.find(kContent);
        if (at == std::string_view::npos || line.size() == at + kContent.size() ||
            line[at + kContent.size()] == '"')
            return;
        std::int64_t stamp = 0;
        std::from_chars(line.data() + at + kContent.size(), line.data() + line.size(), stamp);
        totals.delays_ns.push_back(clamp(now - stamp));
        if (events_++ == 0) totals.first_ns.push_back(clamp(now - asked_));
        ++totals.events;
    }

    State state_ = State::kStatus;
    std::int64_t asked_ = 0, events_ = 0, finish_ = 0, done_ = 0;
    std::size_t left_ = 0;
    std::string line_, event_;
    bool chunked_ = false, closes_ = false, over_ = false, error_ = false;
};

struct User {
    int fd = -1;
    bool waiting = false;  ///< for the rest of an answer
    bool connecting = false;
    std::int64_t starts = 0;
    Answer answer;
};

class Load {
public:
    explicit Load(const Options& options)
        : options_(options), users_(static_cast<std::size_t>(options.users)) {}
    int run();

private:
    void connect(std::size_t user);
    void ask(std::size_t user);
    void readable(std::size_t user);
    void ended(std::size_t user, bool good, bool reusable);
    std::string request() const;
    void print() const;

    Options options_;
    int epoll_ = -1;
    std::int64_t begun_ = 0, until_ = 0;
    std::vector<User> users_;
    std::string request_ = request();
    Totals totals_;
};

std::string Load::request() const {
    const std::string body =
        R"({"model":"mock-model-1b","stream":true,"max_tokens":512,"messages":[{"role":"user","content":"Name the planets in order."}]})";
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
           "application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

void Load::connect(std::size_t user) {
    User& u = users_[user];
    if (u.fd >= 0) ::close(u.fd);
    u.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(u.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
    ++totals_.connects;
    u.connecting = true;
    if (::connect(u.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS)
        std::perror("sse_load: connect");
    epoll_event e{};
    e.events = EPOLLIN | EPOLLOUT | EPOLLET;
    e.data.u64 = user;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, u.fd, &e);
}

void Load::ask(std::size_t user) {
    User& u = users_[user];
    u.waiting = true;
    u.answer.begin(now_ns());
    if (::send(u.fd, request_.data(), request_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request_.size()))
        ended(user, false, false);
}

void Load::readable(std::size_t user) {
    User& u = users_[user];
    char buffer[65536];
    while (u.fd >= 0 && !u.connecting) {
        const ssize_t got = ::recv(u.fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) {
            if (u.waiting) return ended(user, false, false);
            ::close(std::exchange(u.fd, -1));
            return;
        }
        totals_.bytes += got;
        if (!u.waiting ||
            !u.answer.take({buffer, static_cast<std::size_t>(got)}, now_ns(), totals_))
            return ended(user, false, false);
        if (u.answer.over()) ended(user, u.answer.whole(options_.events), !u.answer.closes());
    }
}

void Load::ended(std::size_t user, bool good, bool reusable) {
    User& u = users_[user];
    u.waiting = false;
    ++totals_.answers;
    if (!good) ++totals_.bad;
    if (!reusable && u.fd >= 0) ::close(std::exchange(u.fd, -1));
    if (now_ns() >= until_) return;
    if (totals_.bad > 1000) return;  // it is broken; no storm of connections
    u.fd >= 0 ? ask(user) : connect(user);
}

int Load::run() {
    if (options_.core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(options_.core), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    begun_ = now_ns();
    until_ = begun_ + options_.seconds * 1'000'000'000;
    std::size_t started = 0;
    const auto starts_at = [&](std::size_t user) {
        return begun_ +
               options_.spread_us * 1000 * static_cast<std::int64_t>(user) / options_.users;
    };
    std::vector<epoll_event> ready(256);
    while (true) {
        while (started < users_.size() && starts_at(started) <= now_ns()) connect(started++);
        const bool busy =
            std::ranges::any_of(users_, [](const User& u) { return u.waiting || u.connecting; });
        if (started == users_.size() && !busy) break;
        if (now_ns() > until_ + kPatienceNs) {
            for (const User& u : users_) totals_.bad += u.waiting, totals_.answers += u.waiting;
            break;
        }
        const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()),
                                     started < users_.size() ? 0 : 100);
        for (int i = 0; i < count; ++i) {
            const auto user = static_cast<std::size_t>(ready[static_cast<std::size_t>(i)].data.u64);
            const std::uint32_t events = ready[static_cast<std::size_t>(i)].events;
            if (users_[user].connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
                users_[user].connecting = false;
                ask(user);
            }
            if ((events & EPOLLIN) != 0) readable(user);
        }
    }
    print();
    return 0;
}

double percentile_us(std::vector<std::uint32_t> values, double share) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)] / 1000.0;
}

void Load::print() const {
    std::printf(
        "{\"seconds\":%.3f,\"answers\":%lld,\"bad\":%lld,\"events\":%lld,\"bytes\":%lld,"
        "\"connects\":%lld,\"delay_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
        "\"max\":%.1f},\"first_us\":{\"p50\":%.1f,\"p99\":%.1f}}\n",
        static_cast<double>(now_ns() - begun_) / 1e9, static_cast<long long>(totals_.answers),
        static_cast<long long>(totals_.bad), static_cast<long long>(totals_.events),
        static_cast<long long>(totals_.bytes), static_cast<long long>(totals_.connects),
        percentile_us(totals_.delays_ns, 0.5), percentile_us(totals_.delays_ns, 0.9),
        percentile_us(totals_.delays_ns, 0.99), percentile_us(totals_.delays_ns, 1),
        percentile_us(totals_.first_ns, 0.5), percentile_us(totals_.first_ns, 0.99));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const long value = std::strtol(argv[i + 1], nullptr, 10);
        if (name == "--port") options.port = value;
        if (name == "--users") options.users = value;
        if (name == "--seconds") options.seconds = value;
        if (name == "--events") options.events = value;
        if (name == "--spread-us") options.spread_us = value;
        if (name == "--core") options.core = value;
    }
    return Load(options).run();
}
