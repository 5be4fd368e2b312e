// One server behind the gateway: what it can hold, what it holds for us now, what it last said of
// its load, and whether it has been failing. Whoever places requests asks it; it decides nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/placement/health.h"
#include "gateway/policy.h"
#include "gateway/request/work.h"

namespace fullstop::gateway {

/// What the server told of itself. Absent: it does not tell.
struct Capacity {
    std::string server;                      ///< its product, for people
    std::optional<std::int64_t> slots = {};  ///< answers it computes at once
    /// Tokens that answers under way share, of a server that cuts answers when they are used up.
    std::optional<std::int64_t> pool = {};
    std::optional<std::int64_t> window = {};  ///< tokens of one answer with its prompt
    std::optional<std::int64_t> default_output =
        {};  ///< limit it applies when a request names none
    std::vector<std::string> models = {};
    bool continues =
        false;  ///< it goes on from the beginning of an answer, and shows its prompt when asked
    bool operator==(const Capacity&) const = default;
};

/// Of this moment.
struct Load {
    std::optional<double> running, waiting, kv_used;  ///< kv_used: share, 0 to 1
};

std::string name_of(const wire::ServerUrl& url);

class Upstream {
public:
    explicit Upstream(UpstreamOptions options);

    void configure(UpstreamOptions options) { options_ = std::move(options); }
    void retire() { retired_ = true; }  ///< no longer in the configuration; gone when nothing runs
    void learned(Capacity capacity);
    void loaded(const Load& load, base::Instant at) { load_ = load, load_at_ = at; }
    /// It said that its pool was used up, so that its answers share one: what it can hold is one
    /// window.
    void overfull() { overfull_ = true; }
    /// Usage of an ended answer: how many tokens its prompt really was.
    void measured(const Work& work, std::int64_t prompt_tokens);

    const UpstreamOptions& options() const { return options_; }
    const std::string& name() const { return name_; }
    const Capacity& capacity() const { return capacity_; }
    bool takes_new() const { return !retired_ && !options_.draining; }
    bool retired() const { return retired_; }
    bool serves(const std::string& model) const;
    bool names_models() const { return !models().empty(); }

    std::optional<std::int64_t> slots() const;
    std::optional<std::int64_t> pool() const;
    /// Tokens to set aside for this work: its prompt and the longest answer it may get, at most the
    /// whole pool.
    std::int64_t need(const Work& work, std::optional<std::int64_t> max_tokens) const;
    /// The same for one that waits: of an upstream of unknown window, what one of its answers gets
    /// to at most.
    std::int64_t likely_need(const Work& work, std::int64_t max_tokens) const {
        return need(work, window() ? max_tokens : std::min(max_tokens, kNominalWindow));
    }
    bool has_room(std::int64_t need) const;

    void take(std::int64_t need, bool counted);
    void give_back(std::int64_t need, bool counted);
    std::int64_t running() const { return running_; }
    std::int64_t held() const { return held_; }
    std::int64_t served() const { return served_; }

    /// 0: idle, 1: full; above 1 when requests wait in it.
    double busy(base::Instant now) const;

    Health health;

private:
    std::optional<std::int64_t> window() const {
        return capacity_.window ? capacity_.window : pool();
    }
    const std::vector<std::string>& models() const {
        return options_.models.empty() && options_.learn ? capacity_.models : options_.models;
    }

    UpstreamOptions options_;
    std::string name_;
    Capacity capacity_;
    Load load_;
    std::optional<base::Instant> load_at_;
    bool retired_ = false, overfull_ = false;
    std::int64_t running_ = 0, held_ = 0, served_ = 0;
    double tokens_per_byte_ = kFirstTokensPerByte;
};

}  // namespace fullstop::gateway
