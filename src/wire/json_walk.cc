// simdjson's on-demand front end, every value visited: what it is not asked for it would not check, and a reader that is less
// strict could then see other members in the same text.
#include "wire/json_walk.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace fullstop::wire {
namespace {

namespace od = simdjson::ondemand;

/// Behind each of them at most one value begins.
bool is_divider(char c) { return c == ',' || c == '[' || c == '{'; }

/// Told before anything is built, and no slower for texts that have more.
bool has_more_values(std::string_view text, std::size_t most) {
    if (std::cmp_less_equal(std::ranges::count_if(text, is_divider), most)) return false;  // those inside strings included
    std::size_t seen = 0;
    bool quoted = false;
    for (std::size_t at = 0; at < text.size() && seen <= most; ++at) {
        if (text[at] == '"') quoted = !quoted;
        if (quoted && text[at] == '\\') ++at;
        seen += !quoted && is_divider(text[at]) ? 1 : 0;
    }
    return seen > most;
}

/// RFC 8259, section 6: simdjson refuses what is beyond its types, and that is JSON all the same.
bool is_number(std::string_view token) {
    const auto digits = [&] {
        const std::size_t count = std::min(token.find_first_not_of("0123456789"), token.size());
        token.remove_prefix(count);
        return count;
    };
    const auto skip = [&](std::string_view any) {
        const bool found = !token.empty() && any.contains(token.front());
        if (found) token.remove_prefix(1);
        return found;
    };
    skip("-");
    if (!skip("0") && digits() == 0) return false;
    if (skip(".") && digits() == 0) return false;
    if (skip("eE")) {
        skip("+-");
        if (digits() == 0) return false;
    }
    return token.empty();
}

class Walk {
public:
    Walk(const char* begin, WalkBounds bounds, JsonListener& listener) : begin_(begin), bounds_(bounds), listener_(listener) {}

    WalkEnd visit(std::string_view key, od::value value, int depth) {
        if (depth > bounds_.depth) return WalkEnd::kTooDeep;
        od::json_type type = od::json_type::null;
        if (value.type().get(type)) return WalkEnd::kNoJson;
        const std::string_view raw = value.raw_json_token();
        const std::string_view token = raw.substr(0, raw.find_last_not_of(" \t\r\n") + 1);
        const auto from = static_cast<std::size_t>(raw.data() - begin_);
        WalkedValue heard{.kind = JsonNode::Kind::kNull, .depth = depth, .key = key, .text = token, .from = from, .to = from + token.size()};
        switch (type) {
            case od::json_type::object: return members(heard, value);
            case od::json_type::array: return elements(heard, value);
            case od::json_type::string:
                heard.kind = JsonNode::Kind::kString;
                // Half a surrogate pair has no bytes of its own; where the string ends is beyond doubt all the same.
                if (value.get_string().get(heard.text)) heard.text = token.substr(1, token.size() - 2);
                break;
            case od::json_type::number:
                heard.kind = JsonNode::Kind::kNumber;
                if (!is_number(token)) return WalkEnd::kNoJson;
                break;
            case od::json_type::boolean:
                heard.kind = JsonNode::Kind::kBool;
                if (token != "true" && token != "false") return WalkEnd::kNoJson;
                break;
            case od::json_type::null:
                if (token != "null") return WalkEnd::kNoJson;
                break;
        }
        listener_.hear(heard);
        return WalkEnd::kWhole;
    }

private:
    WalkEnd members(WalkedValue heard, od::value& value) {
        listener_.hear(container(heard, JsonNode::Kind::kObject));
        od::object object;
        if (value.get_object().get(object)) return WalkEnd::kNoJson;
        for (auto member : object) {
            od::field field;
            std::string_view key;
            if (std::move(member).get(field) || field.unescaped_key().get(key)) return WalkEnd::kNoJson;
            if (const WalkEnd end = visit(key, field.value(), heard.depth + 1); end != WalkEnd::kWhole) return end;
        }
        return WalkEnd::kWhole;
    }

    WalkEnd elements(WalkedValue heard, od::value& value) {
        listener_.hear(container(heard, JsonNode::Kind::kArray));
        od::array array;
        if (value.get_array().get(array)) return WalkEnd::kNoJson;
        for (auto element : array) {
            od::value item;
            if (std::move(element).get(item)) return WalkEnd::kNoJson;
            if (const WalkEnd end = visit({}, item, heard.depth + 1); end != WalkEnd::kWhole) return end;
        }
        return WalkEnd::kWhole;
    }

    static WalkedValue container(WalkedValue heard, JsonNode::Kind kind) {
        heard.kind = kind;
        heard.text = {};
        heard.to = 0;
        return heard;
    }

    const char* begin_;
    WalkBounds bounds_;
    JsonListener& listener_;
};

}  // namespace

WalkEnd walk_json(std::string_view text, WalkBounds bounds, JsonListener& listener) {
    if (has_more_values(text, bounds.values)) return WalkEnd::kTooManyValues;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return WalkEnd::kNoJson;
    const std::size_t capacity = text.size() + simdjson::SIMDJSON_PADDING;
    const auto padded = std::make_unique_for_overwrite<char[]>(capacity);
    std::memcpy(padded.get(), text.data(), text.size());
    std::memset(padded.get() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    od::parser parser;
    od::document document;
    od::value root;
    if (parser.iterate(padded.get(), text.size(), capacity).get(document) || document.get_value().get(root)) return WalkEnd::kNoJson;
    if (const WalkEnd end = Walk(padded.get(), bounds, listener).visit({}, root, 0); end != WalkEnd::kWhole) return end;
    const char* rest = nullptr;
    return document.current_location().get(rest) == simdjson::OUT_OF_BOUNDS ? WalkEnd::kWhole : WalkEnd::kNoJson;  // nothing follows
}

}  // namespace fullstop::wire
