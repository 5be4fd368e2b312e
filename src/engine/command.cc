// One line a command. What throws while a request is read for the first time (its template, its
// tokens, its grammar) refuses that request; nothing of it is in the engine yet.
#include "engine/command.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace fullstop::engine {
namespace {

struct Apply {
    Engine& engine;
    base::Instant now;
    EngineEvents& out;

    void operator()(Submission submission) const {
        const SequenceId id = submission.id;
        try {
            engine.submit(now, std::move(submission), out);
        } catch (const std::exception& thrown) {
            out.emplace_back(Refused{id,
                                     now,
                                     "fault",
                                     {answer::Cause::kServerError,
                                      fmt::format("a fault of this server: {}", thrown.what()),
                                      {}},
                                     {}});
        }
    }
    void operator()(const ShowPrompt& show) const {
        try {
            engine.show_prompt(now, show.id, show.messages, out);
        } catch (const std::exception& thrown) {
            out.emplace_back(PromptShown{
                show.id, now, base::internal_error("a fault of this server", thrown.what())});
        }
    }
    void operator()(Cancel cancel) const {
        engine.cancel(now, cancel.id, cancel.cause, std::move(cancel.detail), out);
    }
    void operator()(const CancelAll& all) const {
        engine.cancel_all(now, all.cause, all.detail, out);
    }
};

}  // namespace

void apply(Engine& engine, base::Instant now, Command command, EngineEvents& out) {
    std::visit(Apply{engine, now, out}, std::move(command));
}

}  // namespace fullstop::engine
