// Where a token's bytes are no text of their own they are shown as U+FFFD; `bytes` has them as they
// are.
#include "engine/openai/openai_logprobs.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/utf8.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;

json::object entry(const TokenLogprob& token) {
    json::array bytes;
    for (const char c : token.bytes)
        bytes.emplace_back(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return {{"token", base::valid_utf8(token.bytes)},
            {"logprob", token.logprob},
            {"bytes", std::move(bytes)}};
}

std::int64_t characters_in(const ShownToken& token) {
    return std::ranges::count_if(token.chosen.bytes, [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
}

}  // namespace

json::value chat_logprobs(std::span<const ShownToken> tokens) {
    json::array content;
    for (const ShownToken& token : tokens) {
        json::object one = entry(token.chosen);
        json::array top;
        for (const TokenLogprob& other : token.top) top.emplace_back(entry(other));
        one["top_logprobs"] = std::move(top);
        content.emplace_back(std::move(one));
    }
    return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

json::value text_logprobs(std::span<const ShownToken> tokens, std::int64_t offset) {
    json::array texts, logprobs, tops, offsets;
    for (const ShownToken& token : tokens) {
        const std::string text = base::valid_utf8(token.chosen.bytes);
        texts.emplace_back(text);
        logprobs.emplace_back(token.chosen.logprob);
        offsets.emplace_back(std::exchange(offset, offset + characters_in(token)));
        json::object top;
        for (const TokenLogprob& other : token.top)
            top.emplace(base::valid_utf8(other.bytes),
                        other.logprob);  // the more probable of equal texts stays
        if (!token.top.empty()) top.emplace(text, token.chosen.logprob);
        tops.emplace_back(std::move(top));
    }
    return json::object{{"tokens", std::move(texts)},
                        {"token_logprobs", std::move(logprobs)},
                        {"top_logprobs", std::move(tops)},
                        {"text_offset", std::move(offsets)}};
}

std::int64_t characters_in(std::span<const ShownToken> tokens) {
    std::int64_t all = 0;
    for (const ShownToken& token : tokens) all += characters_in(token);
    return all;
}

}  // namespace fullstop::engine
