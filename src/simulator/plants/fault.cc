// When a fault described as data strikes, and what it then does to its answer.
#include "simulator/plants/fault.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace fullstop::simulator {
namespace {

using When = Fault::When;
using Does = Fault::Does;

constexpr std::int64_t kEndless = 100'000;

class FaultPlant final : public Plant {
public:
    explicit FaultPlant(Fault fault) : fault_(std::move(fault)) {}

    void arrived(Floor& floor, Sequence& sequence) override;
    void began(Floor& floor, Sequence& sequence) override;
    void before_step(Floor& floor) override;
    void made_token(Floor& floor, Sequence& sequence) override;
    void alarm(Floor& floor, Sequence& sequence) override;
    void left(Floor& floor, const Sequence& sequence) override;
    void ending(Floor& floor, Sequence& sequence, Ending& ending) override;

private:
    bool under_load(const Floor& floor) const {
        return floor.load() >= fault_.from && floor.load() <= fault_.to;
    }
    bool strikes(Floor& floor) {
        if ((fault_.once && struck_) || !under_load(floor)) return false;
        return fault_.share >= 1 || floor.random().chance(fault_.share);
    }
    bool strikes(Floor& floor, const Sequence& sequence) {
        return meant(floor, sequence) && strikes(floor);
    }
    bool meant(const Floor& floor, const Sequence& sequence) const;
    bool too_many_in_a_minute(base::Instant now);
    std::size_t place_in(const Sequence& sequence, double place) const;
    void strike(Floor& floor, Sequence& sequence);
    void strike_all(Floor& floor, const Sequence* spared);
    bool time_has_come(const Floor& floor, const std::vector<Sequence*>& live);
    void stall(Floor& floor, Sequence& sequence);
    void mix(Floor& floor, Sequence& sequence) const;
    void cap(const Floor& floor, Sequence& sequence) const;
    void think(Floor& floor, Sequence& sequence) const;
    void ring_at(Sequence& sequence, base::Instant at) {
        due_[sequence.id] = at;
        sequence.alarm = sequence.alarm ? std::min(*sequence.alarm, at) : at;
    }

    Fault fault_;
    bool struck_ = false;
    int steps_ = 0;
    std::optional<base::Instant> refuses_until_;
    std::deque<base::Instant> let_in_;                 ///< within the last minute
    std::map<net::ConnectionId, std::size_t> doomed_;  ///< token at which it strikes
    std::map<net::ConnectionId, base::Instant> due_;   ///< own alarms
};

void FaultPlant::strike(Floor& floor, Sequence& sequence) {
    struck_ = true;
    switch (fault_.does) {
        case Does::kEnd: return floor.end(sequence, fault_.ending);
        case Does::kStall: return stall(floor, sequence);
        case Does::kLose: sequence.mute = true; return;
        case Does::kMix: return mix(floor, sequence);
        case Does::kGarble:
            sequence.text.tokens.resize(sequence.made);
            sequence.text.tokens.resize(sequence.made + kEndless, "!");
            sequence.batch_seen = true;
            return;
        case Does::kCap: return cap(floor, sequence);
        case Does::kThink: return think(floor, sequence);
        case Does::kRunAway: {
            auto& tokens = sequence.text.tokens;
            sequence.batch_seen = true;
            for (std::size_t i = sequence.made; i < static_cast<std::size_t>(fault_.tokens); ++i) {
                const auto again = i < 30 ? std::string(" again") : tokens[i - 30];
                i < tokens.size() ? void(tokens[i] = again) : tokens.push_back(again);
            }
            sequence.limit = fault_.tokens;
            sequence.limit_end = fault_.ending;
            return;
        }
        case Does::kDie:
            refuses_until_ = floor.now() + fault_.pause + fault_.loading;
            return floor.die(fault_.ending, floor.now() + fault_.pause);
    }
}

void FaultPlant::strike_all(Floor& floor, const Sequence* spared) {
    if (fault_.does == Does::kDie) {
        if (const auto live = floor.live(); !live.empty()) strike(floor, *live.front());
        return;
    }
    for (auto* sequence : floor.live())
        if (sequence != spared && sequence->running() && sequence->made > 0)
            strike(floor, *sequence);
}

void FaultPlant::stall(Floor& floor, Sequence& sequence) {
    sequence.paused_until = floor.now() + fault_.pause;
    if (!fault_.says.empty()) floor.say(sequence, fault_.says);
    if (!fault_.each_second.empty()) ring_at(sequence, floor.now() + std::chrono::seconds(1));
}

void FaultPlant::mix(Floor& floor, Sequence& sequence) const {
    const auto prompts = floor.model().prompts().size();
    auto other = floor.model().alone((sequence.prompt + 1) % prompts, sequence.seed);
    for (const auto* live : floor.live())
        if (live != &sequence && live->prompt != sequence.prompt)
            other = floor.model().alone(live->prompt, live->seed);
    sequence.text.tokens.resize(sequence.made);
    std::ranges::move(other.tokens, std::back_inserter(sequence.text.tokens));
    sequence.batch_seen = true;
}

void FaultPlant::cap(const Floor& floor, Sequence& sequence) const {
    auto most = fault_.tokens;
    for (const auto& [load, tokens] : fault_.caps)
        if (floor.load() >= load) most = tokens;
    if (most == 0 || (sequence.limit && *sequence.limit <= most)) return;
    sequence.limit = most;
    sequence.limit_end = fault_.ending;
}

void FaultPlant::think(Floor& floor, Sequence& sequence) const {
    auto& text = sequence.text.tokens;
    const auto words =
        std::min(static_cast<std::size_t>(fault_.words), text.size() - sequence.thinking);
    std::vector<std::string> said(
        text.begin() + static_cast<std::ptrdiff_t>(sequence.thinking),
        text.begin() + static_cast<std::ptrdiff_t>(sequence.thinking + words));
    const auto thoughts = static_cast<std::size_t>(fault_.tokens);
    sequence.text = floor.model().thinking(thoughts, floor.random());
    sequence.thinking = thoughts;
    std::ranges::move(said, std::back_inserter(text));
    sequence.batch_seen = true;
    sequence.limit = static_cast<std::int64_t>(text.size());
    sequence.limit_end = fault_.ending;
}

bool FaultPlant::meant(const Floor& floor, const Sequence& sequence) const {
    const auto tokens = static_cast<std::int64_t>(sequence.text.tokens.size());
    if (fault_.longer > 0 && tokens <= fault_.longer) return false;
    if (fault_.prompts.empty()) return true;
    const auto& all = floor.model().prompts();
    return sequence.prompt < all.size() &&
           std::ranges::find(fault_.prompts, all[sequence.prompt].id) != fault_.prompts.end();
}

bool FaultPlant::too_many_in_a_minute(base::Instant now) {
    while (!let_in_.empty() && now - let_in_.front() >= std::chrono::minutes(1))
        let_in_.pop_front();
    if (let_in_.size() >= static_cast<std::size_t>(fault_.per_minute)) return true;
    let_in_.push_back(now);
    return false;
}

std::size_t FaultPlant::place_in(const Sequence& sequence, double place) const {
    const auto& tokens = sequence.text.tokens;
    auto at = static_cast<std::size_t>(place * static_cast<double>(tokens.size()));
    if (!fault_.at_sentence) return at;
    while (at < tokens.size() && (at == 0 || tokens[at - 1] != ".")) ++at;
    return at;
}

void FaultPlant::arrived(Floor& floor, Sequence& sequence) {
    if (refuses_until_ && floor.now() < *refuses_until_) return floor.end(sequence, fault_.refusal);
    if (fault_.when == When::kTime || fault_.when == When::kSilence)
        ring_at(sequence, floor.now() + fault_.after);
    if (fault_.when == When::kArrival &&
        (fault_.per_minute == 0 || too_many_in_a_minute(floor.now())) && strikes(floor, sequence))
        strike(floor, sequence);
    if (fault_.when == When::kOtherArrives && strikes(floor)) strike_all(floor, &sequence);
}

void FaultPlant::began(Floor& floor, Sequence& sequence) {
    if (fault_.when == When::kBegin && strikes(floor, sequence)) return strike(floor, sequence);
    if (fault_.when != When::kToken || !strikes(floor, sequence)) return;
    struck_ = true;
    const auto [low, high] = fault_.place;
    const double place = low + (high - low) * floor.random().uniform();
    const auto at = place_in(sequence, place);
    doomed_[sequence.id] =
        std::max<std::size_t>(fault_.token > 0 ? static_cast<std::size_t>(fault_.token) : at, 1);
}

bool FaultPlant::time_has_come(const Floor& floor, const std::vector<Sequence*>& live) {
    if (fault_.when == When::kPool) {
        std::int64_t held = 0;
        for (const auto* sequence : live)
            if (sequence->running()) held += sequence->tokens_held() + 1;
        return held > fault_.tokens;
    }
    if (!under_load(floor)) return steps_ = 0, false;
    return ++steps_ % fault_.steps == 0;
}

void FaultPlant::before_step(Floor& floor) {
    if (fault_.when != When::kTogether && fault_.when != When::kPool) return;
    if (time_has_come(floor, floor.live()) && strikes(floor)) strike_all(floor, nullptr);
}

void FaultPlant::made_token(Floor& floor, Sequence& sequence) {
    if (fault_.when == When::kSilence) return ring_at(sequence, floor.now() + fault_.after);
    const auto found = doomed_.find(sequence.id);
    if (found == doomed_.end() || sequence.made < found->second) return;
    doomed_.erase(found);
    strike(floor, sequence);
}

void FaultPlant::alarm(Floor& floor, Sequence& sequence) {
    const auto found = due_.find(sequence.id);
    if (found == due_.end()) return;
    if (found->second > floor.now()) return ring_at(sequence, found->second);
    due_.erase(found);
    if (fault_.when == When::kTime || fault_.when == When::kSilence) {
        if (strikes(floor, sequence) && (fault_.token >= 0 || sequence.made == 0))
            strike(floor, sequence);
    } else if (!fault_.each_second.empty()) {
        floor.say(sequence, fault_.each_second);
        ring_at(sequence, floor.now() + std::chrono::seconds(1));
    }
}

void FaultPlant::left(Floor& floor, const Sequence& sequence) {
    due_.erase(sequence.id);
    doomed_.erase(sequence.id);
    if (fault_.when == When::kOtherLeaves && strikes(floor)) strike_all(floor, nullptr);
}

void FaultPlant::ending(Floor& floor, Sequence& sequence, Ending& ending) {
    if (fault_.when != When::kEnding || !strikes(floor, sequence)) return;
    if (!fault_.only_reason.empty() && ending.reason.value_or("-") != fault_.only_reason) return;
    struck_ = true;
    ending = fault_.ending;
}

}  // namespace

PlantPtr fault(Fault fault) { return std::make_unique<FaultPlant>(std::move(fault)); }

}  // namespace fullstop::simulator
