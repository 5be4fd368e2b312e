// Where control tokens stand in a text, as libllama finds them: written out exactly, the longest
// first.
//
// A message may be megabytes of one character that begins such tokens, while everybody waits for
// this search: from each place the sorted list of tokens is narrowed byte by byte, so that a place
// costs as many steps as it agrees with any token.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/sampling/sampler.h"

namespace fullstop::adapters::llama {

class ControlTokens {
public:
    using Token = std::pair<std::string, engine::TokenId>;
    /// Texts are not empty, and each stands there once.
    explicit ControlTokens(std::vector<Token> tokens);

    struct Found {
        std::size_t at = 0, length = 0;
        engine::TokenId token = 0;
    };
    /// The first one at or behind `from`.
    std::optional<Found> next(std::string_view text, std::size_t from) const;

private:
    std::optional<Found> at(std::string_view text, std::size_t at) const;

    std::vector<Token> tokens_;  ///< sorted
    std::array<bool, 256> begins_{};
};

}  // namespace fullstop::adapters::llama
