// What stands between server and client: timers on silence, on the whole exchange, on the first
// byte, and forged ends.
#include "simulator/plants/plants.h"

namespace fullstop::simulator {
namespace {

class Stall final : public Plant {
public:
    Stall(int from, double share, base::Duration stall, base::Duration limit)
        : from_(from), share_(share), stall_(stall), limit_(limit) {}
    void made_token(Floor& floor, Sequence& sequence) override {
        const bool middle = sequence.made == sequence.text.tokens.size() / 2;
        if (!middle || floor.load() < from_ || !floor.random().chance(share_)) return;
        sequence.paused_until = floor.now() + stall_;
        if (limit_ > base::Duration::zero() && limit_ < stall_)
            sequence.alarm = floor.now() + limit_;
    }
    void alarm(Floor& floor, Sequence& sequence) override {
        floor.end(sequence, silent_ending(BodyEnd::kFin));
    }

private:
    int from_;
    double share_;
    base::Duration stall_, limit_;
};

class TotalTime final : public Plant {
public:
    TotalTime(base::Duration limit, Ending ending) : limit_(limit), ending_(std::move(ending)) {}
    void arrived(Floor& floor, Sequence& sequence) override {
        sequence.alarm = floor.now() + limit_;
    }
    void alarm(Floor& floor, Sequence& sequence) override { floor.end(sequence, ending_); }

private:
    base::Duration limit_;
    Ending ending_;
};

class FirstByteTime final : public Plant {
public:
    FirstByteTime(base::Duration limit, Ending ending)
        : limit_(limit), ending_(std::move(ending)) {}
    void arrived(Floor& floor, Sequence& sequence) override {
        sequence.alarm = floor.now() + limit_;
    }
    void alarm(Floor& floor, Sequence& sequence) override {
        if (sequence.made == 0) floor.end(sequence, ending_);
    }

private:
    base::Duration limit_;
    Ending ending_;
};

class RewriteEnds final : public Plant {
public:
    void ending(Floor&, Sequence& sequence, Ending& ending) override {
        if (sequence.made == 0 || (ending.reason && !ending.error)) return;
        ending = natural_ending();
    }
};

}  // namespace

PlantPtr stall(int from, double share, base::Duration stall, base::Duration limit) {
    return std::make_unique<Stall>(from, share, stall, limit);
}
PlantPtr total_time(base::Duration limit, Ending ending) {
    return std::make_unique<TotalTime>(limit, std::move(ending));
}
PlantPtr first_byte_time(base::Duration limit, Ending ending) {
    return std::make_unique<FirstByteTime>(limit, std::move(ending));
}
PlantPtr rewrite_ends() { return std::make_unique<RewriteEnds>(); }

}  // namespace fullstop::simulator
