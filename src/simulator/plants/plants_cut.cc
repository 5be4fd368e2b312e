// Answers that end in the middle: each at a token of its own, or all in one instant.
#include <algorithm>
#include <map>

#include "simulator/plants/plants.h"

namespace fullstop::simulator {
namespace {

/// Nothing is cut before it has begun; the last part is left out so that a cut is one.
constexpr std::size_t kFirstTokens = 5;
constexpr double kLatestShare = 0.7;

class CutSome final : public Plant {
public:
    CutSome(int from, double share, Ending ending)
        : from_(from), share_(share), ending_(std::move(ending)) {}

    void began(Floor& floor, Sequence& sequence) override {
        if (floor.load() < from_ || !floor.random().chance(share_)) return;
        const auto latest = static_cast<std::size_t>(
            static_cast<double>(sequence.text.tokens.size()) * kLatestShare);
        doomed_[sequence.id] =
            kFirstTokens + floor.random().below(std::max<std::size_t>(latest, 1));
    }
    void made_token(Floor& floor, Sequence& sequence) override {
        const auto found = doomed_.find(sequence.id);
        if (found == doomed_.end() || sequence.made < found->second) return;
        doomed_.erase(found);
        floor.end(sequence, ending_);
    }

private:
    int from_;
    double share_;
    Ending ending_;
    std::map<net::ConnectionId, std::size_t> doomed_;  ///< token at which it ends
};

class CutAll final : public Plant {
public:
    CutAll(int from, Ending ending, base::Duration down)
        : from_(from), ending_(std::move(ending)), down_(down) {}

    void before_step(Floor& floor) override {
        if (floor.load() < from_) return steps_left_ = 0, void();
        if (steps_left_ == 0)
            steps_left_ = kLeastSteps + static_cast<int>(floor.random().below(kMoreSteps));
        if (--steps_left_ > 0) return;
        if (down_ > base::Duration::zero()) return floor.die(ending_, floor.now() + down_);
        for (auto* sequence : floor.live())
            if (sequence->running()) floor.end(*sequence, ending_);
    }

private:
    static constexpr int kLeastSteps = 20,
                         kMoreSteps = 30;  ///< decode steps under load before it happens
    int from_;
    Ending ending_;
    base::Duration down_;
    int steps_left_ = 0;
};

}  // namespace

PlantPtr cut_some(int from, double share, Ending ending) {
    return std::make_unique<CutSome>(from, share, std::move(ending));
}
PlantPtr cut_all(int from, Ending ending, base::Duration down) {
    return std::make_unique<CutAll>(from, std::move(ending), down);
}

}  // namespace fullstop::simulator
