// What a scripted server says: deterministic texts that answer the script's prompts completely, and
// how they vary.
//
// The text of (prompt, seed) is always the same and satisfies the prompt's check: that many list
// items, each fact, one JSON document, the closing words. A divergence leaves it at one token and
// redraws the rest with a length of its own, which is as often longer as shorter: what another
// batch shape does to a real model. Regex checks need Prompt-given samples (see Phrases); nothing
// is read out of a prompt's wording.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "answer/request.h"
#include "base/random.h"

namespace fullstop::simulator {

/// Natural length of an answer in tokens: each prompt has its own within these bounds, each seed
/// moves it a little.
struct LengthRange {
    int shortest = 60;
    int longest = 180;
    double seed_spread = 0.12;  ///< sigma of the logarithm
    double open_share = 0;      ///< of the prose: its last sentence has no full stop
    double long_share = 0;      ///< of the answers: three times as long
};

/// A text as the tokens that make it up, their concatenation being the text.
struct ScriptedText {
    std::vector<std::string> tokens;
    std::string joined() const;
};

class ScriptedModel {
public:
    /// `samples`: by prompt id, words that satisfy its regex check.
    ScriptedModel(std::vector<answer::Prompt> prompts, std::uint64_t seed, LengthRange lengths,
                  std::map<std::string, std::string> samples = {});

    /// Index of the prompt that was sent, or of none (prompts().size()): an unknown prompt gets
    /// prose.
    std::size_t recognise(const std::vector<answer::Message>& messages) const;
    const std::vector<answer::Prompt>& prompts() const { return prompts_; }

    /// The answer of one user alone.
    ScriptedText alone(std::size_t prompt, std::int64_t seed) const;
    /// The same up to token `at`, then something else, whose remaining length is redrawn with this
    /// sigma of its logarithm.
    ScriptedText diverged(std::size_t prompt, std::int64_t seed, std::size_t at, double spread,
                          base::Random& draw) const;
    /// Thinking aloud: any number of tokens of prose.
    ScriptedText thinking(std::size_t tokens, base::Random& draw) const;

private:
    std::uint64_t key(std::size_t prompt, std::int64_t seed) const;
    int natural_length(std::size_t prompt, std::int64_t seed) const;
    void leave_open(ScriptedText& text, base::Random draw) const;

    std::vector<answer::Prompt> prompts_;
    std::uint64_t seed_;
    LengthRange lengths_;
    std::map<std::string, std::string> samples_;
    answer::Prompt unknown_;
};

/// How many tokens a scripted server counts for a prompt: one for four bytes and four for each
/// message's frame.
std::int64_t scripted_prompt_tokens(const std::vector<answer::Message>& messages);

}  // namespace fullstop::simulator
