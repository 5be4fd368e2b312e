// A choice among many fixed texts as a tree: what they have in common is written once, so that of a
// thousand values only those few are followed at once that differ in their next character.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fullstop::schema {

/// `text` as GBNF spells a fixed text.
std::string grammar_literal(std::string_view text);
/// One of `texts`, which are UTF-8, sorted, each once, and at least one. In GBNF, without brackets
/// around it.
std::string literal_tree(std::span<const std::string> texts);
/// The most characters that may come next at any place of that tree.
std::int64_t widest_branch(std::span<const std::string> texts);

}  // namespace fullstop::schema
