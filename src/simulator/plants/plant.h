// The seam between a scripted server and the faults planted in it: what a plant may see, and what
// it may do.
//
// A plant is told of each moment of an answer's life and acts through the Floor. It never writes
// bytes: it ends an answer with an Ending, or changes what the server intends. Plants of one family
// stand in one file (plants_*.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "net/event.h"
#include "simulator/server/ending.h"
#include "simulator/server/scripted_model.h"
#include "simulator/server/server_script.h"

namespace fullstop::simulator {

/// One request as the server understood it, and how far its answer is. Plants may change the marked
/// fields.
struct Sequence {
    enum class State { kQueued, kPrefill, kDecoding, kEnded };

    net::ConnectionId id = 0;
    State state = State::kQueued;
    std::size_t prompt = 0;  ///< index in the script, or past its end
    std::int64_t seed = 0;
    std::optional<std::int64_t> requested_max_tokens;
    std::uint64_t arrival_number = 0;
    base::Instant arrived{}, admitted{}, ready{};
    std::int64_t prompt_tokens = 0;  ///< a plant may change it when the request arrives
    ScriptedText text;               ///< what is intended to be said; a plant may change the rest
    std::size_t thinking =
        0;  ///< that many tokens first are reasoning; may be changed until decoding begins
    std::size_t made = 0;  ///< tokens generated so far
    std::size_t lost = 0;  ///< of them not delivered
    bool mute = false;     ///< may be set: tokens are generated and counted but not delivered
    std::optional<std::int64_t> limit;  ///< may be lowered: ends with `limit_end` there
    Ending limit_end = limit_ending();
    base::Instant paused_until{};        ///< may be set
    std::optional<base::Instant> alarm;  ///< may be set: Plant::alarm is called then
    std::vector<std::pair<std::string, std::string>>
        headers;              ///< further response headers; before the first token
    bool batch_seen = false;  ///< variance was decided

    std::int64_t tokens_held() const { return prompt_tokens + static_cast<std::int64_t>(made); }
    bool running() const { return state == State::kPrefill || state == State::kDecoding; }
    bool live() const { return state != State::kEnded; }
};

/// The server as its plants see it.
class Floor {
public:
    virtual ~Floor() = default;
    virtual base::Instant now() const = 0;
    virtual const ServerScript& script() const = 0;
    virtual base::Random& random() = 0;
    /// Live sequences, oldest first; pointers hold until the hook returns.
    virtual std::vector<Sequence*> live() = 0;
    /// Requests in the house: queued and running.
    virtual int load() const = 0;
    virtual void end(Sequence& sequence, const Ending& ending) = 0;
    /// The process dies: everything live ends so, and nobody listens until then.
    virtual void die(const Ending& ending, base::Instant until) = 0;
    virtual void count_preemption() = 0;
    /// An event as these bytes, in the answer's stream; nothing when it is not streamed.
    virtual void say(Sequence& sequence, std::string_view bytes) = 0;
    virtual const ScriptedModel& model() const = 0;
};

/// All hooks have an empty default. A hook may end the sequence it is told of.
class Plant {
public:
    virtual ~Plant() = default;
    virtual void arrived(Floor&, Sequence&) {}  ///< parsed; not yet queued
    virtual void began(Floor&, Sequence&) {}    ///< prefill is done; before its first token
    virtual void before_step(Floor&) {}  ///< before all running sequences make their next token
    virtual void made_token(Floor&, Sequence&) {}  ///< after each token of one sequence
    virtual void alarm(Floor&, Sequence&) {}       ///< Sequence::alarm has come
    virtual void left(Floor&, const Sequence&) {}  ///< its client went away
    virtual void ending(Floor&, Sequence&, Ending&) {
    }  ///< the server's own ending is about to be written
};

}  // namespace fullstop::simulator
