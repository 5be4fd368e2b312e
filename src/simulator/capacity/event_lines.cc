// Times in milliseconds with three digits after the point, written as whole microseconds are: no
// rounding differs.
#include "simulator/capacity/event_lines.h"

#include <fmt/format.h>

#include <chrono>

namespace fullstop::simulator {
namespace {

std::string ms(base::Duration time) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    return fmt::format("{}.{:03}", us / 1000, us % 1000);
}

}  // namespace

void EventLines::add(std::string_view line) {
    if (full_) return;
    full_ = text_.size() + line.size() > kMaxEventBytes;
    text_ += full_ ? std::string_view("{\"event\": \"truncated\"}\n") : line;
}

void EventLines::begin(const Setting& setting) {
    step_ = 0;
    add(fmt::format(
        "{{\"event\": \"setting\", \"kv_tokens\": {}, \"users\": {}, \"admission\": \"{}\"}}\n",
        setting.pool.count, setting.users ? std::to_string(*setting.users) : "null",
        engine::to_string(setting.admission)));
}

ServingRun::Watch EventLines::watch() {
    return {.changed =
                [this](base::Duration at, std::size_t request, const ServedAnswer& answer) {
                    std::string line =
                        fmt::format("{{\"t_ms\": {}, \"request\": {}, ", ms(at), request);
                    if (answer.ended)
                        line += fmt::format(
                            "\"event\": \"{}\", \"cause\": \"{}\", \"tokens\": {}, \"pauses\": {}, "
                            "\"text\": \"{:016x}\"}}\n",
                            answer.refused ? "refused" : "ended", answer::to_string(answer.cause),
                            answer.tokens.count, answer.pauses(), answer.text_hash);
                    else
                        line += fmt::format("\"event\": \"{}\"}}\n",
                                            answer.first ? "first_token" : "asked");
                    add(std::move(line));
                },
            .stepped =
                [this](const ServedStep& step) {
                    add(fmt::format(
                        "{{\"t_ms\": {}, \"event\": \"step\", \"step\": {}, \"ms\": {}, \"rows\": "
                        "{}, \"decodes\": {}, \"running\": {}, \"waiting\": {}, "
                        "\"kv_used\": {}, \"preemptions\": {}}}\n",
                        ms(step.at), step_++, ms(step.took), step.rows, step.decodes,
                        step.after.running, step.after.waiting, step.after.kv_used.count,
                        step.after.swaps + step.after.recomputes));
                }};
}

}  // namespace fullstop::simulator
