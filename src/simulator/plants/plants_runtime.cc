// What schedulers, queues, guards and parsers of servers do to answers.
#include <algorithm>
#include <map>

#include "simulator/plants/plants.h"

namespace fullstop::simulator {
namespace {

class GenerationTime final : public Plant {
public:
    explicit GenerationTime(base::Duration limit) : limit_(limit) {}
    void began(Floor& floor, Sequence& sequence) override { sequence.alarm = floor.now() + limit_; }
    void alarm(Floor& floor, Sequence& sequence) override { floor.end(sequence, limit_ending()); }

private:
    base::Duration limit_;
};

class FullHouse final : public Plant {
public:
    FullHouse(int most, Ending ending) : most_(most), ending_(std::move(ending)) {}
    void arrived(Floor& floor, Sequence& sequence) override {
        if (floor.load() > most_) floor.end(sequence, ending_);
    }

private:
    int most_;
    Ending ending_;
};

class DisplaceOnArrival final : public Plant {
public:
    explicit DisplaceOnArrival(int from) : from_(from) {}
    void arrived(Floor& floor, Sequence& newcomer) override {
        if (floor.load() < from_) return;
        // The sentinel is written, the finish reason is not.
        for (auto* sequence : floor.live())
            if (sequence != &newcomer && sequence->made > 0)
                floor.end(*sequence, {.terminator = true, .usage = false});
    }

private:
    int from_;
};

class CancelWithOthers final : public Plant {
public:
    explicit CancelWithOthers(Ending ending) : ending_(std::move(ending)) {}
    void left(Floor& floor, const Sequence&) override {
        for (auto* sequence : floor.live())
            if (sequence->running()) floor.end(*sequence, ending_);
    }

private:
    Ending ending_;
};

class LoseOutput final : public Plant {
public:
    LoseOutput(int from, double share) : from_(from), share_(share) {}
    void made_token(Floor& floor, Sequence& sequence) override {
        const bool here = sequence.made == sequence.text.tokens.size() / 3;
        if (here && floor.load() >= from_ && floor.random().chance(share_)) sequence.mute = true;
    }

private:
    int from_;
    double share_;
};

class LoopGuard final : public Plant {
public:
    LoopGuard(int from, double share, Ending ending)
        : from_(from), share_(share), ending_(std::move(ending)) {}
    void began(Floor& floor, Sequence& sequence) override {
        if (floor.load() < from_ || !floor.random().chance(share_)) return;
        const auto at = std::max<std::size_t>(sequence.text.tokens.size() / 3, 1);
        sequence.text.tokens.resize(at);
        sequence.text.tokens.resize(at + kRepeats, " again");
        sequence.batch_seen = true;
        guarded_[sequence.id] = at + kRepeats;
    }
    void made_token(Floor& floor, Sequence& sequence) override {
        const auto found = guarded_.find(sequence.id);
        if (found == guarded_.end() || sequence.made < found->second) return;
        guarded_.erase(found);
        floor.end(sequence, ending_);
    }

private:
    static constexpr std::size_t kRepeats = 31;  ///< Ollama gives up after 30 equal tokens
    int from_;
    double share_;
    Ending ending_;
    std::map<net::ConnectionId, std::size_t> guarded_;
};

}  // namespace

PlantPtr generation_time(base::Duration limit) { return std::make_unique<GenerationTime>(limit); }
PlantPtr full_house(int most, Ending ending) {
    return std::make_unique<FullHouse>(most, std::move(ending));
}
PlantPtr displace_on_arrival(int from) { return std::make_unique<DisplaceOnArrival>(from); }
PlantPtr cancel_with_others(Ending ending) {
    return std::make_unique<CancelWithOthers>(std::move(ending));
}
PlantPtr lose_output(int from, double share) { return std::make_unique<LoseOutput>(from, share); }
PlantPtr loop_guard(int from, double share, Ending ending) {
    return std::make_unique<LoopGuard>(from, share, std::move(ending));
}

}  // namespace fullstop::simulator
