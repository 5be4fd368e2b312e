// A tree of the names by their characters: a name that leaves the tree is free from there on, and
// one may end where no name does.
#include "schema/excluded_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/utf8.h"

namespace fullstop::schema {
namespace {

struct Tree {
    std::map<std::string, Tree, std::less<>> next;
    bool is_name = false;
};

/// A character within [ ]; by its code point, so that none means something there.
std::string in_class(std::string_view character) {
    return fmt::format("\\U{:08X}", static_cast<std::uint32_t>(base::code_of(character)));
}

/// What may follow at this place, up to and without the closing quote.
std::string rest(const Tree& tree) {
    std::string all, out;
    for (const auto& [character, next] : tree.next) {
        all += in_class(character);
        out += fmt::format("[{}] ({}) | ", in_class(character), rest(next));
    }
    out += fmt::format("[^\"\\\\\\x00-\\x1F{}] char*", all);
    return tree.is_name ? out : out + " | \"\"";
}

}  // namespace

std::string excluded_names(std::span<const JsonObject::Property> names) {
    if (names.empty()) return "string";
    Tree tree;
    for (const auto& property : names) {
        const std::string_view name = property.name;
        // Such a name cannot be written without an escape.
        if (std::ranges::any_of(name, [](char c) {
                return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
            }))
            continue;
        Tree* at = &tree;
        for (std::size_t i = 0; i < name.size();) {
            const std::size_t length = base::front_character(name.substr(i)).second;
            at = &at->next[std::string(name.substr(i, length))];
            i += length;
        }
        at->is_name = true;
    }
    return fmt::format("\"\\\"\" ({}) \"\\\"\"", rest(tree));
}

}  // namespace fullstop::schema
