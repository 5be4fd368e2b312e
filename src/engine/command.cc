// One line a command.
#include "engine/command.h"

#include <utility>

namespace fullstop::engine {
namespace {

struct Apply {
    Engine& engine;
    base::Instant now;
    EngineEvents& out;

    void operator()(Submission submission) const { engine.submit(now, std::move(submission), out); }
    void operator()(const ShowPrompt& show) const { engine.show_prompt(now, show.id, show.messages, out); }
    void operator()(Cancel cancel) const { engine.cancel(now, cancel.id, cancel.cause, std::move(cancel.detail), out); }
    void operator()(const CancelAll& all) const { engine.cancel_all(now, all.cause, all.detail, out); }
};

}  // namespace

void apply(Engine& engine, base::Instant now, Command command, EngineEvents& out) { std::visit(Apply{engine, now, out}, std::move(command)); }

}  // namespace fullstop::engine
