// A program run as our child: its output line by line with a time limit, its last words when it
// dies, its end by SIGTERM and then SIGKILL. It never outlives us: the kernel ends it when the
// thread that started it ends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/asio/limits.h"
#include "base/result.h"
#include "base/time.h"

namespace fullstop::adapters::asio {

struct ChildEnd {
    int exit_code = 0;
    int signal = 0;             ///< 0: it exited by itself
    std::string words() const;  ///< "exited with code 1", "was ended by signal 9 (Killed)"
};

struct ChildCommand {
    std::string program;  ///< a path, or a name looked up in PATH
    std::vector<std::string> arguments;
};

class Child {
public:
    /// Call it from a thread that lives as long as the child is needed. The child gets its own
    /// process group (Ctrl-C in the terminal reaches us alone) and an empty standard input. Errors:
    /// usage, when the program cannot be started.
    static base::Result<std::unique_ptr<Child>> start(const ChildCommand& command);
    /// Ends the child if it still runs.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    int pid() const;
    /// The next line of standard output, without its newline; nothing when the output is over.
    /// Errors: unreachable, when no line came in time; the hint holds the child's last error lines.
    base::Result<std::optional<std::string>> read_line(base::Duration timeout);
    /// How it ended; nothing while it runs.
    std::optional<ChildEnd> ended() const;
    /// Last part of its error output.
    std::string error_tail() const;
    /// `call` runs once, on a thread of the child's own, when it has ended (at once, if it has
    /// already).
    void when_ended(std::function<void(ChildEnd)> call);

    /// SIGTERM, and SIGKILL if it still runs after `limit`. Returns when it is over.
    ChildEnd end(base::Duration limit = kChildEndTimeout);

private:
    struct State;
    explicit Child(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::adapters::asio
