// Which tokenizers keep every byte (libllama's sources, llama-vocab.cpp):
// - Sentence pieces: blanks become U+2581 and one may be put in front, which only adds; what is no
//   piece becomes byte tokens.
// - Byte pairs: all bytes lie in tokens if each byte has one of its own; one that has not is
//   dropped, and counts nothing here. Bytes that are no UTF-8 become U+FFFD, so nothing is claimed
//   of such a text.
// - Word pieces and unigrams fold white space and accents and make one unknown token of a whole
//   word: nothing is claimed.
// Control tokens cover their own text, recognised or not. Some also take the white space beside
// them. A blank counts as one byte. U+2581 in a text is either such a blank or three bytes,
// whichever costs less.
#include "adapters/llama/text/length_bound.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/utf8.h"

namespace fullstop::adapters::llama {
namespace {

constexpr int kWholeBits = 32;
constexpr std::uint64_t kWhole = std::uint64_t{1} << kWholeBits;
constexpr std::string_view kBlank = "\xE2\x96\x81";

std::size_t index(char c) { return static_cast<unsigned char>(c); }

std::string with_blanks(std::string text) {
    for (auto at = text.find(kBlank); at != std::string::npos; at = text.find(kBlank, at))
        text.replace(at, kBlank.size(), " ");
    return text;
}

/// What the token covers; one that is never shown still covers its text.
std::string piece_of(const llama_vocab* vocabulary, llama_token token) {
    std::string piece(32, '\0');
    int size = llama_token_to_piece(vocabulary, token, piece.data(),
                                    static_cast<std::int32_t>(piece.size()), 0, true);
    if (size < 0) {
        piece.resize(static_cast<std::size_t>(-size));
        size = llama_token_to_piece(vocabulary, token, piece.data(),
                                    static_cast<std::int32_t>(piece.size()), 0, true);
    }
    piece.resize(static_cast<std::size_t>(std::max(size, 0)));
    return piece.empty() ? llama_vocab_get_text(vocabulary, token) : piece;
}

}  // namespace

LengthBound::LengthBound(const llama_vocab* vocabulary) {
    const auto type = llama_vocab_type(vocabulary);
    if (type != LLAMA_VOCAB_TYPE_SPM && type != LLAMA_VOCAB_TYPE_BPE) return;
    std::vector<std::string> pieces;
    bool drops_blanks = false;
    for (llama_token token = 0; token < llama_vocab_n_tokens(vocabulary); ++token) {
        pieces.push_back(piece_of(vocabulary, token));
        drops_blanks = drops_blanks || (llama_vocab_get_attr(vocabulary, token) &
                                        (LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP)) != 0;
    }
    read(pieces, drops_blanks);
}

LengthBound::LengthBound(std::span<const std::string> pieces, bool drops_blanks) {
    read(pieces, drops_blanks);
}

void LengthBound::read(std::span<const std::string> pieces, bool drops_blanks) {
    std::array<std::size_t, 256> longest{};
    std::array<bool, 256> alone{};
    for (const std::string& piece : pieces) {
        if (piece.size() == 1) alone[index(piece.front())] = true;
        for (const std::string& form : {piece, with_blanks(piece)})
            for (const char c : form) longest[index(c)] = std::max(longest[index(c)], form.size());
    }
    for (std::size_t byte = 0; byte < share_.size(); ++byte) {
        const bool may_vanish = drops_blanks && std::isspace(static_cast<int>(byte)) != 0;
        if (alone[byte] && !may_vanish) share_[byte] = kWhole / longest[byte];
    }
}

base::Tokens LengthBound::least_tokens(std::string_view text) const {
    if (base::first_invalid_byte(text)) return {};
    const std::uint64_t blank = share_[index(' ')];
    std::uint64_t shares = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool written_out = text[at] == kBlank.front() && text.substr(at).starts_with(kBlank);
        if (!written_out) {
            shares += share_[index(text[at])];
            continue;
        }
        std::uint64_t bytes = 0;
        for (const char c : kBlank) bytes += share_[index(c)];
        shares += std::min(blank, bytes);
        at += kBlank.size() - 1;
    }
    return base::Tokens{static_cast<std::int64_t>(shares >> kWholeBits)};
}

}  // namespace fullstop::adapters::llama
