// One line of progress: arm, users, answers done, how they ended so far, time left.
#include "cli/probe/live.h"

#include <fmt/format.h>

#include <ostream>

#include "base/printable.h"

namespace fullstop::cli {
namespace {

std::string minutes(base::Duration d) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d).count();
    return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

/// Nothing before the first answers have told how long they take.
std::string time_left(const probe::Progress& p) {
    return p.left > base::Duration::zero() ? fmt::format(", about {} left", minutes(p.left)) : "";
}

std::string step_of(const probe::Progress& p) {
    return fmt::format("{}, {} {}{}", p.arm, p.concurrency, p.concurrency == 1 ? "user" : "users",
                       p.extension ? ", beyond the plan" : "");
}

}  // namespace

Live::Live(World& world, bool quiet)
    : world_(world),
      quiet_(quiet),
      redraw_(world.err_is_terminal && !world.env("NO_COLOR").has_value()) {}

Live::~Live() { finish(); }

void Live::say(const std::string& sentence) {
    if (quiet_) return;
    finish();
    world_.err << "fullstop: " << base::printable_lines(sentence) << '\n' << std::flush;
}

void Live::show(const probe::Progress& p) {
    if (quiet_) return;
    const std::string step = step_of(p);
    if (redraw_) {
        std::string line =
            fmt::format("[{}/{}] {}: {} of {} answers, {} natural, {} at limit, {} cut; {} gone{}",
                        p.step + 1, p.steps, step, p.done, p.planned, p.natural, p.limited, p.cut,
                        minutes(p.elapsed), time_left(p));
        if (world_.columns > 1)
            line.resize(std::min(line.size(), static_cast<std::size_t>(world_.columns - 1)));
        world_.err << "\r\x1b[2K" << line << std::flush;
        drawn_ = true;
    } else if (const std::string key = fmt::format("{} {}", p.step, step); key != last_step_) {
        last_step_ = key;
        world_.err << fmt::format(
                          "fullstop: step {} of {}: {}; {} of {} answers so far, {} cut{}\n",
                          p.step + 1, p.steps, step, p.done, p.planned, p.cut, time_left(p))
                   << std::flush;
    }
}

void Live::finish() {
    if (drawn_) world_.err << "\r\x1b[2K" << std::flush;
    drawn_ = false;
}

}  // namespace fullstop::cli
