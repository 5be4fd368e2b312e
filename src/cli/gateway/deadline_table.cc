// Tokens that fit = (limit - time to first token) x tokens per second of one user, for the limits
// on the whole answer.
#include "cli/gateway/deadline_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "base/printable.h"
#include "running/speed_trial.h"

namespace fullstop::cli {
namespace {

constexpr std::array kUsers = {1, 2, 4, 8};

std::string seconds(base::Duration time) { return fmt::format("{:g} s", base::to_seconds(time)); }

std::string row(const std::string& name, const std::vector<std::string>& cells) {
    std::string out = fmt::format("{:<34}", name);
    for (const auto& cell : cells) out += fmt::format("{:>12}", cell);
    return out + "\n";
}

}  // namespace

std::string deadline_table(const gateway::Deadlines& deadlines,
                           const std::vector<running::Speed>& speeds, const std::string& how) {
    const auto line = [&](const std::string& name, const auto& cell_of) {
        std::vector<std::string> cells;
        for (const running::Speed& speed : speeds) cells.push_back(cell_of(speed));
        return row(name, cells);
    };
    std::string out = how + "\n\n";
    out += line("users", [](const running::Speed& s) { return std::to_string(s.users); });
    out += line("tokens/s of one user",
                [](const running::Speed& s) { return fmt::format("{:.1f}", s.tokens_per_second); });
    out += line("time to first token, s",
                [](const running::Speed& s) { return fmt::format("{:.2f}", s.first_token_s); });
    if (deadlines.total)
        out += line(fmt::format("total {}: tokens that fit", seconds(*deadlines.total)),
                    [&](const running::Speed& s) {
                        return fmt::format(
                            "{:.0f}",
                            std::max(0.0, (base::to_seconds(*deadlines.total) - s.first_token_s) *
                                              s.tokens_per_second));
                    });
    if (deadlines.first_token)
        out += line(fmt::format("first token {}", seconds(*deadlines.first_token)),
                    [&](const running::Speed& s) {
                        return s.first_token_s <= base::to_seconds(*deadlines.first_token)
                                   ? "any length"
                                   : "none";
                    });
    if (deadlines.idle)
        out += line(fmt::format("idle {}, streamed", seconds(*deadlines.idle)),
                    [&](const running::Speed& s) {
                        return s.first_token_s <= base::to_seconds(*deadlines.idle) ? "any length"
                                                                                    : "none";
                    });
    if (deadlines.idle)
        // An answer in one piece is silent until it is whole.
        out += line(fmt::format("idle {}, in one piece", seconds(*deadlines.idle)),
                    [&](const running::Speed& s) {
                        return fmt::format(
                            "{:.0f}",
                            std::max(0.0, (base::to_seconds(*deadlines.idle) - s.first_token_s) *
                                              s.tokens_per_second));
                    });
    if (deadlines.queue_wait)
        out += fmt::format("queue wait {}: refuses, and never shortens an answer that began\n",
                           seconds(*deadlines.queue_wait));
    if (!deadlines.total && !deadlines.first_token && !deadlines.idle && !deadlines.queue_wait)
        out += "no deadline is set: any length\n";
    return out;
}

int explain_deadlines(const World& world, const gateway::Policy& policy,
                      std::optional<double> tokens_per_second) {
    std::vector<running::Speed> speeds;
    std::string how;
    if (tokens_per_second) {
        for (const int users : kUsers)
            speeds.push_back({.users = users,
                              .tokens_per_second = *tokens_per_second / users,
                              .first_token_s = 0});
        how = fmt::format(
            "At {:g} tokens/s for one user, given; that several users share it evenly and that the "
            "first token comes at once is assumed.",
            *tokens_per_second);
    } else {
        const gateway::UpstreamOptions& upstream = policy.upstreams.front();
        const wire::Headers headers =
            upstream.api_key.empty()
                ? wire::Headers{}
                : wire::Headers{{"Authorization", "Bearer " + upstream.api_key}};
        auto measured =
            running::measure_speed(upstream.url, headers, {kUsers.begin(), kUsers.end()});
        if (!measured) return fail(world, measured.error());
        speeds = std::move(*measured);
        how = fmt::format("Measured at {} just now, with answers of {} tokens; medians.",
                          upstream.url.text, running::kTrialTokens);
    }
    world.out << base::printable_lines(deadline_table(policy.deadlines, speeds, how)) << std::flush;
    return 0;
}

}  // namespace fullstop::cli
