// Starting a child, listening to it from a thread of its own, and ending it.
#include "adapters/asio/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "adapters/asio/channel.h"

namespace fullstop::adapters::asio {
namespace {

/// A descriptor that closes itself.
class Owned {
public:
    explicit Owned(int fd = -1) : fd_(fd) {}
    ~Owned() { reset(); }
    Owned(Owned&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Owned& operator=(Owned&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    int get() const { return fd_; }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_;
};

struct Pipe {
    Owned read, write;
    bool open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return false;
        read.reset(ends[0]);
        write.reset(ends[1]);
        return true;
    }
};

std::unexpected<base::Error> start_error(const std::string& program, int error) {
    const bool descriptors = error == EMFILE || error == ENFILE;
    return base::usage_error(fmt::format("cannot start {}: {}", program, system_words(error)),
                             descriptors ? "raise the limit of open files (ulimit -n)"
                                         : "check that the program is there and may be run");
}

/// Between fork and exec only calls that are safe beside other threads' locks: no allocation, no
/// C++ library.
[[noreturn]] void become(char* const* arguments, pid_t parent, int out, int err, int complaint) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvp(arguments[0], arguments);
    const int error = errno;
    [[maybe_unused]] const ssize_t told = ::write(complaint, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

std::string ChildEnd::words() const {
    return signal == 0 ? fmt::format("exited with code {}", exit_code)
                       : fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

struct Child::State {
    std::string program;
    pid_t pid = -1;
    Owned out, err, life;
    std::thread listener;

    mutable std::mutex lock;
    std::condition_variable changed;
    std::deque<std::string> lines;
    std::string partial;  ///< of the line that has not ended
    std::string errors;
    bool output_over = false;
    std::optional<ChildEnd> end;
    std::function<void(ChildEnd)> on_end;

    void listen();
    bool take_output();
    bool take_errors();
    void reap();
};

/// Runs until the child has ended and what it said is read.
void Child::State::listen() {
    while (true) {
        std::array<pollfd, 3> waits = {{{.fd = out.get(), .events = POLLIN, .revents = 0},
                                        {.fd = err.get(), .events = POLLIN, .revents = 0},
                                        {.fd = life.get(), .events = POLLIN, .revents = 0}}};
        if (::poll(waits.data(), waits.size(), -1) < 0)
            continue;  // a signal; the descriptors are ours and valid
        // Output first: when the child is gone, what it still said lies in the pipes.
        if (waits[0].revents != 0) take_output();
        if (waits[1].revents != 0) take_errors();
        if (waits[2].revents == 0) continue;
        while (out.get() >= 0 && take_output()) continue;
        while (err.get() >= 0 && take_errors()) continue;
        break;
    }
    reap();
}

/// False when there is nothing more now; the pipe is closed when there never will be.
bool Child::State::take_output() {
    char buffer[16 * 1024];
    const ssize_t got = ::read(out.get(), buffer, sizeof buffer);
    if (got == 0) out.reset();
    if (got <= 0) return got < 0 && errno == EINTR;
    const std::lock_guard held(lock);
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(got))) {
        if (c != '\n') partial += c;
        if (c != '\n' && partial.size() < kMaxChildLineBytes) continue;
        lines.push_back(std::exchange(partial, {}));
        if (lines.size() > kMaxChildLines) lines.pop_front();
    }
    changed.notify_all();
    return true;
}

bool Child::State::take_errors() {
    char buffer[16 * 1024];
    const ssize_t got = ::read(err.get(), buffer, sizeof buffer);
    if (got == 0) err.reset();
    if (got <= 0) return got < 0 && errno == EINTR;
    const std::lock_guard held(lock);
    errors.append(buffer, static_cast<std::size_t>(got));
    if (errors.size() > kChildErrorBytes) errors.erase(0, errors.size() - kChildErrorBytes);
    return true;
}

void Child::State::reap() {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    std::function<void(ChildEnd)> call;
    ChildEnd how{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                 .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    {
        const std::lock_guard held(lock);
        if (!partial.empty()) lines.push_back(std::exchange(partial, {}));
        output_over = true;
        end = how;
        call = std::exchange(on_end, nullptr);
    }
    changed.notify_all();
    if (call) call(how);
}

base::Result<std::unique_ptr<Child>> Child::start(const ChildCommand& command) {
    Pipe out, err, complaint;
    if (!out.open() || !err.open() || !complaint.open()) return start_error(command.program, errno);
    std::vector<char*> arguments = {const_cast<char*>(command.program.c_str())};
    for (const std::string& argument : command.arguments)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    auto state = std::make_unique<State>();
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return start_error(command.program, errno);
    if (pid == 0)
        become(arguments.data(), parent, out.write.get(), err.write.get(), complaint.write.get());
    complaint.write.reset();
    int error = 0;
    ssize_t told = 0;
    do told = ::read(complaint.read.get(), &error, sizeof error);
    while (told < 0 && errno == EINTR);
    state->life.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (told == 0 && state->life.get() < 0) error = errno;
    if (error != 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return start_error(command.program, error);
    }
    state->program = command.program;
    state->pid = pid;
    state->out = std::move(out.read);
    state->err = std::move(err.read);
    for (const int fd : {state->out.get(), state->err.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    return std::unique_ptr<Child>(new Child(std::move(state)));
}

Child::Child(std::unique_ptr<State> state) : state_(std::move(state)) {
    state_->listener = std::thread([raw = state_.get()] { raw->listen(); });
}

Child::~Child() {
    end();
    state_->listener.join();
}

int Child::pid() const { return state_->pid; }

base::Result<std::optional<std::string>> Child::read_line(base::Duration timeout) {
    std::unique_lock held(state_->lock);
    const bool came = state_->changed.wait_for(
        held, timeout, [&] { return !state_->lines.empty() || state_->output_over; });
    if (!came)
        return base::unreachable_error(
            fmt::format("{} said nothing for {:.0f} s", state_->program, base::to_seconds(timeout)),
            state_->errors.empty() ? "" : "its last words: " + state_->errors);
    if (state_->lines.empty()) return std::optional<std::string>();
    std::string line = std::move(state_->lines.front());
    state_->lines.pop_front();
    return std::optional(std::move(line));
}

std::optional<ChildEnd> Child::ended() const {
    const std::lock_guard held(state_->lock);
    return state_->end;
}

std::string Child::error_tail() const {
    const std::lock_guard held(state_->lock);
    return state_->errors;
}

void Child::when_ended(std::function<void(ChildEnd)> call) {
    std::optional<ChildEnd> already;
    {
        const std::lock_guard held(state_->lock);
        if (!state_->end) {
            state_->on_end = std::move(call);
            return;
        }
        already = state_->end;
    }
    call(*already);
}

ChildEnd Child::end(base::Duration limit) {
    std::unique_lock held(state_->lock);
    // The listener reaps under its own steam; while `end` is empty the pid is ours and cannot have
    // been given to another.
    if (!state_->end) ::kill(state_->pid, SIGTERM);
    const auto over = [&] { return state_->end.has_value(); };
    if (!state_->changed.wait_for(held, limit, over)) ::kill(state_->pid, SIGKILL);
    state_->changed.wait(held, over);
    return *state_->end;
}

}  // namespace fullstop::adapters::asio
