// A mock chat server for benchmarks: every connection gets the same answer as server-sent events,
// paced or as fast as the client reads. One epoll loop and prepared bytes, so that it is never the
// bottleneck. Each text event carries the server's CLOCK_MONOTONIC nanoseconds as its text: the
// client's receive moment minus that is the client's error. GET /v1/models lists one model and says
// how many answers and text events were sent; other GETs but /health are refused. Left out: what
// the request asks for (any POST will do), errors, other dialects.
//
//   mock_sse_server [--port P] [--events N] [--gap-us G] [--first-us F] [--keep-alive 1] [--core C]
//
// G = 0: in bulk. F: pause before the first byte (some proxies lose a response that comes before
// they have sent the whole request). With --keep-alive a connection carries further requests,
// unless one asks to close. Ends on SIGTERM.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

struct Options {
    int port = 0, core = -1;
    std::int64_t events = 256, gap_ns = 0, first_ns = 0;
    bool keep_alive = false;
};

/// Bytes prepared ahead of a client in bulk; enough for the kernel's buffers, little enough to be
/// made in a millisecond.
constexpr std::size_t kBatchBytes = 64 * 1024;

std::int64_t now_ns() {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

std::string chunk(const std::string& event) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", event.size());
    return size + event + "\r\n";
}

std::string event(const std::string& delta, const char* finish) {
    return chunk(
        "data: "
        "{\"id\":\"chatcmpl-bench-0123456789abcdef\",\"object\":\"chat.completion.chunk\","
        "\"created\":1764460800,\"model\":\"mock-model-1b\","
        "\"system_fingerprint\":\"b1-mock\",\"choices\":[{\"index\":0,\"delta\":" +
        delta + ",\"logprobs\":null,\"finish_reason\":" + finish + "}]}\n\n");
}

std::string opening(bool keep) {
    return std::string(
               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
               "chunked\r\n") +
           (keep ? "" : "Connection: close\r\n") + "\r\n" +
           event("{\"role\":\"assistant\",\"content\":\"\"}", "null");
}
std::string text_event() {
    return event("{\"content\":\"" + std::to_string(now_ns()) + " \"}", "null");
}
std::string closing(std::int64_t events) {
    const std::string count = std::to_string(events);
    return event("{}", "\"stop\"") +
           chunk(
               "data: "
               "{\"id\":\"chatcmpl-bench-0123456789abcdef\",\"object\":\"chat.completion.chunk\","
               "\"created\":1764460800,\"model\":\"mock-model-1b\","
               "\"choices\":[],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":" +
               count + ",\"total_tokens\":" + std::to_string(events + 16) + "}}\n\n") +
           chunk("data: [DONE]\n\n") + "0\r\n\r\n";
}

std::string plain(const char* status, const std::string& body) {
    return std::string("HTTP/1.1 ") + status +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\nConnection: close\r\n\r\n" + body;
}

struct Stream {
    std::string request, unsent;
    std::size_t sent = 0;
    std::int64_t events = 0;
    bool answering = false, opened = false, closing = false, keep = false;
};

/// Head and body have come. Only lengths are understood, and field names as common clients write
/// them.
bool is_whole(std::string_view request) {
    const auto end = request.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    for (const std::string_view name : {"\r\nContent-Length: ", "\r\ncontent-length: "})
        if (const auto at = request.find(name); at < end)
            return request.size() >=
                   end + 4 + std::strtoul(request.data() + at + name.size(), nullptr, 10);
    return true;
}

bool asks_to_close(std::string_view request) {
    const auto head = request.substr(0, request.find("\r\n\r\n"));
    return head.find("onnection: close") != std::string_view::npos ||
           head.find("onnection: Close") != std::string_view::npos;
}

class Mock {
public:
    explicit Mock(const Options& options) : options_(options) {}
    int run();

private:
    bool listen();
    void watch(int fd, std::uint32_t events, int how) {
        epoll_event e{};
        e.events = events;
        e.data.fd = fd;
        epoll_ctl(epoll_, how, fd, &e);
    }
    void accept();
    void readable(int fd);
    void write(int fd);
    void refill(Stream& stream);
    void open(Stream& stream);
    std::string plain_answer(std::string_view request) const;
    /// The next text event, or the end after the last one; counts what is sent.
    void append(Stream& stream);
    void tick();
    void drop(int fd) {
        streams_.erase(fd);
        ::close(fd);
    }
    void arm();

    Options options_;
    int listener_ = -1, epoll_ = -1, timer_ = -1;
    std::int64_t answers_sent_ = 0, events_sent_ = 0;
    std::unordered_map<int, Stream> streams_;
    using Due = std::pair<std::int64_t, int>;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

bool Mock::listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 4096) != 0 ||
        ::getsockname(listener_, plain, &size) != 0)
        return false;
    std::printf("listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return true;
}

int Mock::run() {
    if (options_.core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(options_.core), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (!listen()) return std::perror("mock_sse_server"), 1;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
    watch(timer_, EPOLLIN, EPOLL_CTL_ADD);
    std::vector<epoll_event> ready(256);
    while (true) {
        const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = ready[static_cast<std::size_t>(i)].data.fd;
            if (fd == listener_) {
                accept();
            } else if (fd == timer_) {
                tick();
            } else {
                if ((ready[static_cast<std::size_t>(i)].events &
                     ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
                    readable(fd);
                if (streams_.contains(fd)) write(fd);
            }
        }
    }
}

void Mock::accept() {
    while (true) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        streams_.emplace(fd, Stream{});
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

void Mock::readable(int fd) {
    Stream& stream = streams_[fd];
    char buffer[16384];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return drop(fd);
    if (got < 0 || stream.answering) return;
    stream.request.append(buffer, static_cast<std::size_t>(got));
    if (!is_whole(stream.request)) return;
    stream.answering = true;
    if (stream.request.starts_with("GET ")) {
        stream.unsent = plain_answer(stream.request);
        stream.opened = stream.closing = true;
        return;
    }
    stream.keep = options_.keep_alive && !asks_to_close(stream.request);
    if (options_.first_ns == 0) open(stream);
    if (options_.first_ns + options_.gap_ns == 0) return;
    due_.emplace(now_ns() + (options_.first_ns != 0 ? options_.first_ns : options_.gap_ns), fd);
    arm();
}

void Mock::open(Stream& stream) {
    stream.opened = true;
    stream.unsent = opening(stream.keep);
}

std::string Mock::plain_answer(std::string_view request) const {
    if (request.starts_with("GET /v1/models"))
        return plain("200 OK",
                     "{\"object\":\"list\",\"data\":[{\"id\":\"mock-model-1b\",\"object\":"
                     "\"model\"}],\"answers\":" +
                         std::to_string(answers_sent_) +
                         ",\"events\":" + std::to_string(events_sent_) + "}");
    if (request.starts_with("GET /health")) return plain("200 OK", "{\"status\":\"ok\"}");
    return plain("404 Not Found", "{}");
}

void Mock::append(Stream& stream) {
    if (stream.events < options_.events) {
        stream.unsent += text_event();
        ++stream.events;
        ++events_sent_;
    } else if (!std::exchange(stream.closing, true)) {
        stream.unsent += closing(options_.events);
        ++answers_sent_;
    }
}

void Mock::refill(Stream& stream) {
    stream.unsent.clear();
    stream.sent = 0;
    while (stream.unsent.size() < kBatchBytes && !stream.closing) append(stream);
}

void Mock::write(int fd) {
    Stream& stream = streams_[fd];
    if (!stream.opened) return;
    while (true) {
        if (stream.sent == stream.unsent.size()) {
            if (stream.closing && stream.keep) return void(stream = {});
            if (stream.closing) return drop(fd);
            if (options_.gap_ns != 0) return;
            refill(stream);
        }
        const ssize_t put = ::send(fd, stream.unsent.data() + stream.sent,
                                   stream.unsent.size() - stream.sent, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) return watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
        if (put < 0) return drop(fd);
        stream.sent += static_cast<std::size_t>(put);
    }
}

void Mock::tick() {
    std::uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_, &expirations, sizeof expirations);
    while (!due_.empty() && due_.top().first <= now_ns()) {
        const auto [at, fd] = due_.top();
        due_.pop();
        const auto found = streams_.find(fd);
        if (found == streams_.end()) continue;
        Stream& stream = found->second;
        if (!stream.answering) continue;  // of an earlier connection with this number
        if (stream.sent == stream.unsent.size()) stream.unsent.clear(), stream.sent = 0;
        if (!stream.opened)
            open(stream);
        else
            append(stream);
        if (options_.gap_ns != 0 && !stream.closing) due_.emplace(at + options_.gap_ns, fd);
        write(fd);
    }
    arm();
}

void Mock::arm() {
    if (due_.empty()) return;
    const itimerspec at{.it_interval = {},
                        .it_value = {.tv_sec = due_.top().first / 1'000'000'000,
                                     .tv_nsec = due_.top().first % 1'000'000'000}};
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const long value = std::strtol(argv[i + 1], nullptr, 10);
        if (name == "--port") options.port = static_cast<int>(value);
        if (name == "--events") options.events = value;
        if (name == "--gap-us") options.gap_ns = value * 1000;
        if (name == "--first-us") options.first_ns = value * 1000;
        if (name == "--keep-alive") options.keep_alive = value != 0;
        if (name == "--core") options.core = static_cast<int>(value);
    }
    return Mock(options).run();
}
