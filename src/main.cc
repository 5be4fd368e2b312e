// Builds the world (arguments, environment, streams, terminal, clock), hands it to the chosen
// command, and returns its exit code. The only place that touches the process itself.
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "adapters/asio/clock.h"
#include "base/printable.h"
#include "cli/application.h"

namespace {

int terminal_columns() {
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::optional<std::string> environment(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
    // A reader of our output that left, and a limit on the size of files, are errors of that write,
    // not our death.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    const fullstop::adapters::asio::SystemClock clock;
    std::error_code unreadable;
    fullstop::cli::World world{
        .out = std::cout,
        .err = std::cerr,
        .env = environment,
        .out_is_terminal = isatty(STDOUT_FILENO) == 1,
        .err_is_terminal = isatty(STDERR_FILENO) == 1,
        .columns = terminal_columns(),
        .executable = std::filesystem::read_symlink("/proc/self/exe", unreadable),
        .clock = clock,
    };
    try {
        return fullstop::cli::run(world, std::vector<std::string>(argv + 1, argv + argc));
    } catch (const std::exception& bug) {
        std::cerr << "fullstop: internal error: " << fullstop::base::printable(bug.what())
                  << "\n  Please report this with the command you ran.\n";
        return fullstop::cli::kExitInternal;
    }
}
