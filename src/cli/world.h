// Everything a command may touch of the outside: streams, environment, terminal, clock, its own
// path. main.cc builds the real one; a test builds another. No command reaches for these things by
// itself.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

struct World {
    std::ostream& out;  ///< results
    std::ostream& err;  ///< progress and warnings
    std::function<std::optional<std::string>(const std::string& name)> env;
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    int columns = 80;
    std::filesystem::path executable;  ///< this program, to start itself as a server
    const base::Clock& clock;
};

/// One subcommand: its options live in `app`, `run` is called when it was chosen and returns the
/// exit code.
struct Command {
    CLI::App* app = nullptr;
    std::function<int()> run;
};

/// The exit codes of the contract (section 1).
enum ExitCode : int {
    kExitNotShortened = 0,
    kExitShortened = 1,
    kExitUsage = 2,
    kExitInconclusive = 3,
    kExitCouldNotMeasure = 4,
    kExitInternal = 5,
    kExitInterrupted = 130,
};

/// An error for people, as it may be printed: its message on one line, the lines of its hint
/// indented below. It may quote a server.
std::string message_of(const base::Error& error);

/// Prints message and hint to `world.err` and gives the exit code of the error's kind.
int fail(const World& world, const base::Error& error);

/// Colour and live progress: only on a terminal, never with NO_COLOR or --quiet.
bool wants_colour(const World& world, bool quiet);

}  // namespace fullstop::cli
