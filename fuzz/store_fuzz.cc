// What a store of shared budgets says, in any pieces: after the greeting some questions and ends
// wait for its replies. Every question is answered once, and garbage ends the connection at most.
#include <map>
#include <string>

#include "adapters/redis/budget_store.h"
#include "adapters/redis/limits.h"
#include "cuts.h"

namespace {

using namespace fullstop;
using adapters::redis::BudgetStore;

constexpr std::uint64_t kQuestions = 4;
constexpr base::Instant kStart{std::chrono::seconds(100)};

class Talk {
public:
    Talk() : store_({.host = "store"}, "ab") {
        store_.start(kStart, actions_);
        for (std::uint64_t id = 1; id <= kQuestions; ++id)
            store_.ask(
                kStart,
                gateway::StoreReserve{
                    .id = id,
                    .tokens = 10,
                    .windows = {{.name = "overall", .limit = {.tokens = 100}, .what = "all"}}},
                actions_);
        store_.on({kStart, net::Connected{1}}, actions_);
        hear("$40\r\n0123456789abcdef0123456789abcdef01234567\r\n");
        store_.ask(kStart, gateway::StoreSettle{.id = 1, .used = 5}, actions_);
    }
    void hear(std::string_view bytes) {
        store_.on({kStart, net::Received{1, bytes, answer::StampClock::kUserSpace}}, actions_);
        take();
    }
    /// The time of every question is over.
    std::string outcome() {
        const std::string state = store_.state().trouble + (store_.state().up ? " up" : " down");
        store_.on({kStart + std::chrono::seconds(1), net::TimerFired{1}}, actions_);
        take();
        std::string out = state;
        for (std::uint64_t id = 2; id <= kQuestions; ++id) {
            fuzz::require(answers_[id].size() == 1, "a question is answered once");
            out += " " + answers_[id];
        }
        fuzz::require(answers_[1].empty(), "what has ended is not answered");
        return out;
    }

private:
    void take() {
        for (const auto& answer : store_.take_answers())
            answers_[answer.id] += "GRL"[static_cast<int>(answer.what)];
    }

    BudgetStore store_;
    net::Actions actions_;
    std::map<std::uint64_t, std::string> answers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::Input input(data, size);
    if (input.bytes.size() > adapters::redis::kMaxReplyBytes)
        return 0;  // what is too long is noticed sooner in pieces
    Talk whole, pieces;
    whole.hear(input.bytes);
    fuzz::in_pieces(input.bytes, input.pattern,
                    [&](std::string_view piece) { return pieces.hear(piece), true; });
    fuzz::require(whole.outcome() == pieces.outcome(),
                  "what a store says depends on the pieces it comes in");
    return 0;
}
