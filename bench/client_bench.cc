// What does our client cost, and how exact are its moments? The real host and the real reader
// against mock_sse_server on the other core: CPU per streamed event (paced and in bulk), and the
// error of receive stamps against the moments that the server wrote into its events, kernel against
// user space, idle and beside a process that burns the same core. Prints one JSON document a line.
// CPU figures hold on a busy machine too; errors are the machine's as much as ours.
//
//   client_bench MOCK_SSE_SERVER [--streams 8] [--paced-events 300] [--bulk-events 20000]
//                [--gap-ms 10]
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/asio/client/host.h"
#include "adapters/asio/clock.h"
#include "adapters/asio/process.h"
#include "net/limits.h"
#include "wire/answer_reader.h"

namespace {

using namespace fullstop;
namespace rim = adapters::asio;

struct Settings {
    std::string mock, self;
    int streams = 8;
    long paced_events = 300, bulk_events = 20000, gap_ms = 10;
};

/// One exchange per stream, all at once; each read goes to the reader, as in a probe, and moves a
/// silence timer.
class Streams final : public net::Part {
public:
    Streams(std::uint16_t port, int count, bool with_errors)
        : port_(port), with_errors_(with_errors), open_(count) {
        for (int i = 0; i < count; ++i) {
            records.push_back(std::make_unique<answer::Record>());
            readers_.push_back(std::make_unique<wire::AnswerReader>(*records.back()));
        }
    }
    void start(base::Instant now, net::Actions& out) override {
        started_ = now;
        for (net::ConnectionId id = 0; id < readers_.size(); ++id) {
            out.push_back(
                net::Connect{id, {.host = "127.0.0.1", .port = port_}, net::kConnectTimeout});
            out.push_back(net::Send{id,
                                    "POST /v1/chat/completions HTTP/1.1\r\nHost: "
                                    "mock\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"});
        }
    }
    void on(const net::Event& event, net::Actions& out) override {
        if (const auto* received = std::get_if<net::Received>(&event.what)) {
            ++reads;
            kernel_reads += received->clock == answer::StampClock::kKernel;
            readers_[received->id]->bytes(received->bytes, event.at - started_, received->clock);
            out.push_back(net::SetTimer{received->id, event.at + net::kSilenceTimeout});
            if (with_errors_) note_errors(received->bytes, event.at);
        } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
            readers_[closed->id]->end({wire::StreamEnd::Kind::kFin}, event.at - started_);
            out.push_back(net::CancelTimer{closed->id});
            --open_;
        } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
            fmt::print(stderr, "client_bench: {}\n", failed->text);
            std::exit(1);
        }
    }
    bool done() const override { return open_ == 0; }

    std::vector<std::unique_ptr<answer::Record>> records;
    std::vector<double> errors_us;
    std::int64_t reads = 0, kernel_reads = 0;

private:
    /// Events cut by a read are passed over: their moment is that of the next read.
    void note_errors(std::string_view bytes, base::Instant at) {
        constexpr std::string_view kMark = "\"content\":\"";
        for (std::size_t found = bytes.find(kMark); found != std::string_view::npos;
             found = bytes.find(kMark, found + 1)) {
            const std::string_view rest = bytes.substr(found + kMark.size());
            const std::size_t end = rest.find(' ');
            if (end == std::string_view::npos || end == 0 || end > 19) continue;
            const long long stamp =
                std::strtoll(std::string(rest.substr(0, end)).c_str(), nullptr, 10);
            if (stamp > 0)
                errors_us.push_back(static_cast<double>(at.time_since_epoch().count() - stamp) /
                                    1000.0);
        }
    }

    std::uint16_t port_;
    bool with_errors_;
    int open_;
    base::Instant started_;
    std::vector<std::unique_ptr<wire::AnswerReader>> readers_;
};

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Not ru_maxrss: that begins with the memory of whoever started this program.
double peak_mb() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024.0;
    return 0;
}

std::unique_ptr<rim::Child> start(const std::string& program, std::vector<std::string> arguments,
                                  std::uint16_t* port = nullptr) {
    auto child = rim::Child::start({.program = program, .arguments = std::move(arguments)});
    if (!child) {
        fmt::print(stderr, "client_bench: {}\n", child.error().message);
        std::exit(1);
    }
    if (port != nullptr) {
        const auto line = (*child)->read_line(std::chrono::seconds(10));
        const std::string text = line ? line->value_or("") : "";
        *port = static_cast<std::uint16_t>(std::atoi(text.substr(text.rfind(':') + 1).c_str()));
    }
    return std::move(*child);
}

struct Measured {
    double cpu_s = 0, wall_s = 0;
    std::unique_ptr<Streams> streams;
};

Measured run(const Settings& settings, long events, long gap_ms, bool kernel, bool with_errors) {
    std::uint16_t port = 0;
    const auto mock = start(settings.mock,
                            {"--events", std::to_string(events), "--gap-us",
                             std::to_string(gap_ms * 1000), "--core", "1"},
                            &port);
    rim::Loop loop;
    auto host = rim::Host::create(loop, {.ca_file = {}, .kernel_stamps = kernel});
    Measured measured{.streams = std::make_unique<Streams>(port, settings.streams, with_errors)};
    (*host)->add(*measured.streams);
    const double cpu = cpu_seconds();
    const base::Instant began = loop.clock().now();
    (*host)->run_until_done();
    measured.cpu_s = cpu_seconds() - cpu;
    measured.wall_s = base::to_seconds(loop.clock().now() - began);
    return measured;
}

void report_cost(const Settings& settings, const char* mode, long events, long gap_ms,
                 bool kernel) {
    const Measured measured = run(settings, events, gap_ms, kernel, false);
    std::int64_t seen = 0;
    for (const auto& record : measured.streams->records) seen += record->text_events;
    fmt::print(
        "{{\"bench\":\"client_cost\",\"mode\":\"{}\",\"clock\":\"{}\",\"streams\":{},\"gap_ms\":{},"
        "\"events\":{},\"reads\":{},\"complete\":{},"
        "\"cpu_us_per_event\":{:.3f},\"cpu_us_per_read\":{:.3f},\"cpu_share\":{:.4f},\"events_per_"
        "s\":{:.0f},\"peak_rss_mb\":{:.1f}}}\n",
        mode, kernel ? "kernel" : "user", settings.streams, gap_ms, seen, measured.streams->reads,
        seen == events * settings.streams ? "true" : "false",
        measured.cpu_s * 1e6 / static_cast<double>(seen),
        measured.cpu_s * 1e6 / static_cast<double>(measured.streams->reads),
        measured.cpu_s / measured.wall_s, static_cast<double>(seen) / measured.wall_s, peak_mb());
}

/// The least any client can do: wait, receive, forget. What the machine itself costs, in the same
/// run.
void report_floor(const Settings& settings, long events, long gap_ms) {
    std::uint16_t port = 0;
    const auto mock = start(settings.mock,
                            {"--events", std::to_string(events), "--gap-us",
                             std::to_string(gap_ms * 1000), "--core", "1"},
                            &port);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const double cpu = cpu_seconds();
    for (int i = 0; i < settings.streams; ++i) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        constexpr std::string_view kRequest = "POST / HTTP/1.1\r\n\r\n";
        if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            ::send(fd, kRequest.data(), kRequest.size(), 0) < 0)
            std::exit(1);
        epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
    }
    std::vector<char> buffer(net::kReadBytes);
    std::vector<epoll_event> ready(64);
    for (int open = settings.streams; open > 0;) {
        const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = ready[static_cast<std::size_t>(i)].data.fd;
            if (::recv(fd, buffer.data(), buffer.size(), 0) > 0) continue;
            ::close(fd);
            --open;
        }
    }
    ::close(epoll);
    const double events_sent = static_cast<double>(events * settings.streams);
    fmt::print(
        "{{\"bench\":\"client_floor\",\"mode\":\"{}\",\"streams\":{},\"gap_ms\":{},\"events\":{:."
        "0f},\"cpu_us_per_event\":{:.3f}}}\n",
        gap_ms == 0 ? "bulk" : "paced", settings.streams, gap_ms, events_sent,
        (cpu_seconds() - cpu) * 1e6 / events_sent);
}

void report_errors(const Settings& settings, bool kernel, bool loaded) {
    std::unique_ptr<rim::Child> burner;
    if (loaded) burner = start(settings.self, {"--burn"});
    const Measured measured = run(settings, settings.paced_events, settings.gap_ms, kernel, true);
    auto& errors = measured.streams->errors_us;
    std::sort(errors.begin(), errors.end());
    const auto at = [&](double q) {
        return errors.empty()
                   ? 0.0
                   : errors[static_cast<std::size_t>(q * static_cast<double>(errors.size() - 1))];
    };
    fmt::print(
        "{{\"bench\":\"stamp_error\",\"clock\":\"{}\",\"cpu_load\":{},\"streams\":{},\"gap_ms\":{},"
        "\"events\":{},\"kernel_share\":{:.4f},"
        "\"error_us\":{{\"min\":{:.1f},\"p50\":{:.1f},\"p99\":{:.1f},\"max\":{:.1f}}}}}\n",
        kernel ? "kernel" : "user", loaded, settings.streams, settings.gap_ms, errors.size(),
        static_cast<double>(measured.streams->kernel_reads) /
            static_cast<double>(measured.streams->reads),
        at(0), at(0.5), at(0.99), at(1));
}

void pin_to_core(std::size_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

int main(int argc, char** argv) {
    pin_to_core(0);
    if (argc == 2 && std::string_view(argv[1]) == "--burn")
        for (volatile std::uint64_t work = 0;; work = work + 1) continue;
    if (argc < 2)
        return fmt::print(stderr,
                          "usage: client_bench MOCK_SSE_SERVER [--streams N] [--paced-events N] "
                          "[--bulk-events N] [--gap-ms N]\n"),
               2;
    Settings settings{.mock = argv[1], .self = argv[0]};
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const long value = std::strtol(argv[i + 1], nullptr, 10);
        if (name == "--streams") settings.streams = static_cast<int>(value);
        if (name == "--paced-events") settings.paced_events = value;
        if (name == "--bulk-events") settings.bulk_events = value;
        if (name == "--gap-ms") settings.gap_ms = value;
    }
    report_floor(settings, settings.paced_events, settings.gap_ms);
    for (const bool kernel : {true, false})
        report_cost(settings, "paced", settings.paced_events, settings.gap_ms, kernel);
    report_floor(settings, settings.bulk_events, 0);
    for (const bool kernel : {true, false})
        report_cost(settings, "bulk", settings.bulk_events, 0, kernel);
    for (const bool loaded : {false, true})
        for (const bool kernel : {true, false}) report_errors(settings, kernel, loaded);
    return 0;
}
