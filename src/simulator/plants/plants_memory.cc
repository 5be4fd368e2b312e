// A shared KV pool that is too small, with the ends that servers give its victims; and the pause
// that cuts nothing.
#include "simulator/plants/plants.h"

namespace fullstop::simulator {
namespace {

class KvPool final : public Plant {
public:
    KvPool(std::int64_t tokens, Ending ending) : tokens_(tokens), ending_(std::move(ending)) {}

    void before_step(Floor& floor) override {
        std::int64_t needed = 0;
        const auto live = floor.live();
        for (const auto* sequence : live)
            if (sequence->running())
                needed += sequence->tokens_held() + 1;  // one cell for the token to come
        if (needed <= tokens_) return;
        for (auto* sequence : live)
            if (sequence->running()) floor.end(*sequence, ending_);
    }

private:
    std::int64_t tokens_;
    Ending ending_;
};

class Preemption final : public Plant {
public:
    Preemption(int from, double share, base::Duration pause)
        : from_(from), share_(share), pause_(pause) {}

    void made_token(Floor& floor, Sequence& sequence) override {
        const bool middle = sequence.made == sequence.text.tokens.size() / 2;
        if (!middle || floor.load() < from_ || !floor.random().chance(share_)) return;
        sequence.paused_until = floor.now() + pause_;
        floor.count_preemption();
    }

private:
    int from_;
    double share_;
    base::Duration pause_;
};

}  // namespace

PlantPtr kv_pool(std::int64_t tokens, Ending ending) {
    return std::make_unique<KvPool>(tokens, std::move(ending));
}
PlantPtr preemption(int from, double share, base::Duration pause) {
    return std::make_unique<Preemption>(from, share, pause);
}

}  // namespace fullstop::simulator
