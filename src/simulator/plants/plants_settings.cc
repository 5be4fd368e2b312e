// Limits that somebody set: on output, on the window, on prompts, on thinking.
#include <algorithm>
#include <string>

#include "simulator/plants/plants.h"

namespace fullstop::simulator {
namespace {

class TokenCap final : public Plant {
public:
    TokenCap(int from, std::int64_t cap, bool announced)
        : from_(from), cap_(cap), announced_(announced) {}

    void began(Floor& floor, Sequence& sequence) override {
        if (floor.load() < from_ || (sequence.limit && *sequence.limit <= cap_)) return;
        sequence.limit = cap_;
        sequence.limit_end = limit_ending();
        if (!announced_) return;
        sequence.headers.emplace_back("Fullstop-Upstream", "scripted");
        if (sequence.requested_max_tokens)
            sequence.headers.emplace_back("Fullstop-Requested-Max-Tokens",
                                          std::to_string(*sequence.requested_max_tokens));
        sequence.headers.emplace_back("Fullstop-Effective-Max-Tokens", std::to_string(cap_));
    }

private:
    int from_;
    std::int64_t cap_;
    bool announced_;
};

class DefaultLimit final : public Plant {
public:
    explicit DefaultLimit(std::int64_t tokens) : tokens_(tokens) {}
    void began(Floor&, Sequence& sequence) override {
        if (sequence.requested_max_tokens) return;
        sequence.limit = std::min(sequence.limit.value_or(tokens_), tokens_);
        sequence.limit_end = limit_ending();
    }

private:
    std::int64_t tokens_;
};

class SmallerWindow final : public Plant {
public:
    SmallerWindow(int from, std::int64_t window) : from_(from), window_(window) {}
    void began(Floor& floor, Sequence& sequence) override {
        const auto room = std::max<std::int64_t>(window_ - sequence.prompt_tokens, 1);
        if (floor.load() < from_ || (sequence.limit && *sequence.limit <= room)) return;
        sequence.limit = room;
        sequence.limit_end = limit_ending();
        sequence.limit_end.truncated = true;
    }

private:
    int from_;
    std::int64_t window_;
};

class PromptCut final : public Plant {
public:
    PromptCut(int from, double kept) : from_(from), kept_(kept) {}
    void began(Floor& floor, Sequence& sequence) override {
        if (floor.load() < from_) return;
        sequence.prompt_tokens =
            static_cast<std::int64_t>(static_cast<double>(sequence.prompt_tokens) * kept_);
        sequence.text = floor.model().diverged(floor.model().prompts().size(), sequence.seed, 0,
                                               0.1, floor.random());
        sequence.batch_seen = true;
    }

private:
    int from_;
    double kept_;
};

class RefusePrompt final : public Plant {
public:
    RefusePrompt(std::size_t prompt, answer::ServerError error)
        : prompt_(prompt), error_(std::move(error)) {}
    void arrived(Floor& floor, Sequence& sequence) override {
        if (sequence.prompt == prompt_) floor.end(sequence, error_ending(error_));
    }

private:
    std::size_t prompt_;
    answer::ServerError error_;
};

class EndlessThinking final : public Plant {
public:
    explicit EndlessThinking(int from) : from_(from) {}
    void began(Floor& floor, Sequence& sequence) override {
        if (floor.load() < from_ || !sequence.limit) return;
        const auto all = static_cast<std::size_t>(*sequence.limit) + 1;
        const auto begun = sequence.text.tokens.size() > sequence.thinking
                               ? sequence.thinking
                               : 0;  // the thoughts it had alone come first
        auto more = floor.model().thinking(all, floor.random());
        std::copy_n(sequence.text.tokens.begin(), std::min(begun, all), more.tokens.begin());
        sequence.text = std::move(more);
        sequence.thinking = all;
    }

private:
    int from_;
};

}  // namespace

PlantPtr token_cap(int from, std::int64_t cap, bool announced) {
    return std::make_unique<TokenCap>(from, cap, announced);
}
PlantPtr default_limit(std::int64_t tokens) { return std::make_unique<DefaultLimit>(tokens); }
PlantPtr smaller_window(int from, std::int64_t window) {
    return std::make_unique<SmallerWindow>(from, window);
}
PlantPtr prompt_cut(int from, double kept) { return std::make_unique<PromptCut>(from, kept); }
PlantPtr refuse_prompt(std::size_t prompt, answer::ServerError error) {
    return std::make_unique<RefusePrompt>(prompt, std::move(error));
}
PlantPtr endless_thinking(int from) { return std::make_unique<EndlessThinking>(from); }

}  // namespace fullstop::simulator
