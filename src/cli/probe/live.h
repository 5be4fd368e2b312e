// Live progress of a probe on standard error: one line that is redrawn on a terminal, one line a
// step elsewhere, nothing with --quiet. It shows and never decides.
#pragma once

#include <string>

#include "cli/world.h"
#include "probe/probe.h"

namespace fullstop::cli {

class Live {
public:
    Live(World& world, bool quiet);
    ~Live();
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;

    /// A sentence of its own: what happens now. It may quote a server.
    void say(const std::string& sentence);
    void show(const probe::Progress& progress);
    /// Clears the redrawn line, so that results start on a clean one.
    void finish();

private:
    World& world_;
    bool quiet_;
    bool redraw_;
    bool drawn_ = false;
    std::string last_step_;
};

}  // namespace fullstop::cli
