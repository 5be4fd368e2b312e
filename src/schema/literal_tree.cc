// Sorted texts that begin alike stand beside each other, so every branch is a range of them.
#include "schema/literal_tree.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/utf8.h"

namespace fullstop::schema {
namespace {

using Texts = std::span<const std::string>;

/// Bytes that all have in common; never a part of a character.
std::size_t common_length(Texts texts) {
    const std::string_view first = texts.front(), last = texts.back();
    std::size_t at = 0;
    while (at < first.size() && at < last.size()) {
        const std::size_t length = base::front_character(first.substr(at)).second;
        if (first.substr(at, length) != last.substr(at, length)) break;
        at += length;
    }
    return at;
}

/// Calls `branch` for each range of texts with the same character at `at`; one that ends there
/// comes alone and first.
void for_each_branch(Texts texts, std::size_t at, const std::function<void(Texts)>& branch) {
    while (!texts.empty()) {
        const std::string_view first = texts.front();
        const std::size_t length =
            at == first.size() ? 0 : base::front_character(first.substr(at)).second;
        const auto end = std::ranges::find_if(texts.subspan(1), [&](std::string_view other) {
            return length == 0 || other.substr(at, length) != first.substr(at, length);
        });
        const auto count = static_cast<std::size_t>(end - texts.begin());
        branch(texts.first(count));
        texts = texts.subspan(count);
    }
}

std::string tree(Texts texts, std::size_t from) {
    if (texts.size() == 1) return grammar_literal(std::string_view(texts.front()).substr(from));
    const std::size_t at = common_length(texts);
    std::string out =
        at > from ? grammar_literal(std::string_view(texts.front()).substr(from, at - from)) + " ("
                  : "(";
    bool first = true;
    for_each_branch(texts, at, [&](Texts branch) {
        if (!std::exchange(first, false)) out += " | ";
        out += tree(branch, at);
    });
    return out + ")";
}

std::int64_t widest(Texts texts) {
    if (texts.size() == 1) return 1;
    std::int64_t most = 0, count = 0;
    for_each_branch(texts, common_length(texts), [&](Texts branch) {
        ++count;
        most = std::max(most, widest(branch));
    });
    return std::max(most, count);
}

}  // namespace

std::string grammar_literal(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

std::string literal_tree(Texts texts) { return tree(texts, 0); }
std::int64_t widest_branch(Texts texts) { return widest(texts); }

}  // namespace fullstop::schema
