// The engine of `fullstop serve` on a virtual clock: requests come, steps take what the cost model
// says, and everything that a client would have seen is kept. As in serve, what happens during a
// step takes effect before the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "answer/cause.h"
#include "engine/engine.h"
#include "simulator/capacity/serving_load.h"
#include "simulator/capacity/simulated_backend.h"

namespace fullstop::simulator {

/// One request of the load, as its client saw it. Times from the start of the run.
struct ServedAnswer {
    bool asked = false, ended = false, refused = false;
    base::Duration arrived{}, end{};
    std::optional<base::Duration> first;  ///< arrival of the first token
    std::optional<base::Duration>
        estimate;  ///< of the time from arrival to it, made on arrival; absent without a target
    base::Duration longest_gap{};  ///< between two tokens
    base::Tokens tokens;
    answer::Cause cause = answer::Cause::kUnexplained;
    int swaps = 0,
        recomputes = 0;  ///< pauses after which KV came back, or its tokens were computed again
    base::Duration paused{};
    std::uint64_t text_hash = 0;  ///< FNV-1a of the text

    int pauses() const { return swaps + recomputes; }
    /// Ended by itself or at the limit that was asked for.
    bool whole() const {
        return cause == answer::Cause::kNaturalEnd || cause == answer::Cause::kTokenLimit;
    }
};

/// One computed step, when it ended.
struct ServedStep {
    base::Duration at{}, took{};
    std::int64_t rows = 0, decodes = 0;
    engine::Occupancy after;
};

class ServingRun {
public:
    /// What to tell while running; each may be empty.
    struct Watch {
        std::function<void(base::Duration at, std::size_t request, const ServedAnswer&)>
            changed;  ///< asked, first token, ended, refused
        std::function<void(const ServedStep&)> stepped;
    };

    /// `backend` outlives the run. Request i has the sequence id i + 1.
    ServingRun(SimulatedBackend& backend, const engine::EngineOptions& options, ServingLoad load,
               Watch watch = {});

    /// Takes the next step of the engine, or waits for the next arrival. False: all is over.
    bool advance();
    /// More steps than any course of these requests can take: the engine goes round in circles.
    /// advance() then stops.
    bool stuck() const { return stuck_; }

    base::Duration now() const { return now_; }
    const std::vector<ServedAnswer>& answers() const { return answers_; }
    const std::vector<float>& gaps_ms() const {
        return gaps_ms_;
    }  ///< between tokens, of all answers
    engine::Occupancy occupancy() const { return engine_.occupancy(); }
    const engine::BlockPool& pool() const { return engine_.pool(); }
    /// Mean share of the pool that held tokens, over the time that steps took.
    double kv_utilisation() const {
        return busy_.count() > 0 ? used_token_seconds_ / base::to_seconds(busy_) /
                                       static_cast<double>(occupancy().kv_total.count)
                                 : 0;
    }
    std::int64_t rows() const {
        return rows_;
    }  ///< computed in all, those of recomputed tokens included
    std::size_t ended() const { return ended_; }
    std::size_t requests() const { return load_.requests.size(); }

private:
    base::Instant instant() const { return base::Instant(now_); }
    std::optional<base::Duration> next_arrival() const;
    void arrive();
    void ask(std::size_t request, base::Duration at);
    void leave();
    void read_events();
    void on(const engine::Refused& event);
    void on(const engine::Admitted&) {}
    void on(const engine::PromptShown&) {}
    void on(const engine::Produced& event);
    void on(const engine::Ended& event);
    bool goes_round() const;
    void over(std::size_t request, base::Duration asks_again);

    SimulatedBackend& backend_;
    engine::Engine engine_;
    ServingLoad load_;
    Watch watch_;
    engine::EngineEvents events_;
    base::Duration now_{}, busy_{};
    std::size_t next_ = 0;                ///< first request that nobody asked yet
    std::multiset<base::Duration> idle_;  ///< users who may ask, and from when
    std::vector<std::size_t> impatient_;  ///< asked, not ended, with a limit of patience
    std::vector<ServedAnswer> answers_;
    std::vector<float> gaps_ms_;
    double used_token_seconds_ = 0;
    std::int64_t rows_ = 0, most_rows_ = 0;
    std::size_t ended_ = 0;
    bool stuck_ = false;
};

}  // namespace fullstop::simulator
