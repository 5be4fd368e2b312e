// Tokens that agree with the text so far are neighbours in the sorted list; the one that ends there
// comes first of them.
#include "adapters/llama/text/control_tokens.h"

#include <algorithm>
#include <ranges>

namespace fullstop::adapters::llama {

ControlTokens::ControlTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    std::ranges::sort(tokens_);
    for (const auto& [text, token] : tokens_)
        begins_[static_cast<unsigned char>(text.front())] = true;
}

std::optional<ControlTokens::Found> ControlTokens::next(std::string_view text,
                                                        std::size_t from) const {
    for (std::size_t here = from; here < text.size(); ++here) {
        if (!begins_[static_cast<unsigned char>(text[here])]) continue;
        if (const auto found = at(text, here)) return found;
    }
    return std::nullopt;
}

std::optional<ControlTokens::Found> ControlTokens::at(std::string_view text, std::size_t at) const {
    std::optional<Found> longest;
    std::ranges::subrange agree(tokens_);
    for (std::size_t length = 1; at + length <= text.size(); ++length) {
        // All that are left have this many bytes: one that ended before was taken out.
        agree = std::ranges::equal_range(
            agree, static_cast<unsigned char>(text[at + length - 1]), {},
            [&](const Token& each) { return static_cast<unsigned char>(each.first[length - 1]); });
        if (agree.empty()) break;
        if (agree.front().first.size() != length) continue;
        longest = Found{.at = at, .length = length, .token = agree.front().second};
        agree.advance(1);
        if (agree.empty()) break;
    }
    return longest;
}

}  // namespace fullstop::adapters::llama
