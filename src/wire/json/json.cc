// simdjson's on-demand front end walks each text once; the tree and the padded copy are reused from
// read to read.
#include "wire/json/json.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.h"
#include "wire/limits.h"

namespace fullstop::wire {
namespace {

namespace od = simdjson::ondemand;

/// Members that say nothing about an answer or its end, and are long or come with every event:
/// passed over unread.
bool is_unasked(std::string_view key) {
    switch (key.size()) {
        case 6: return key == "tokens";
        case 7: return key == "created" || key == "context";
        case 8: return key == "logprobs";
        case 9: return key == "token_ids";
        case 16: return key == "prompt_token_ids";
        case 18: return key == "system_fingerprint";
        case 24: return key == "completion_probabilities";
        default: return false;
    }
}

/// simdjson refuses texts with a byte that is no UTF-8. Such bytes travel through it as the last
/// 256 private code points, and become bytes again on the way out.
constexpr std::uint32_t kStrayByte = 0x10FF00;

std::string hide_stray_bytes(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 64);
    for (std::size_t at = 0; at < text.size();) {
        const auto [shape, length] = base::front_character(text.substr(at));
        if (shape != base::CharacterShape::kWhole) {
            base::append_character(out, kStrayByte + static_cast<unsigned char>(text[at++]));
        } else {
            out.append(text.substr(at, length));
            at += length;
        }
    }
    return out;
}

std::string show_stray_bytes(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        // U+10FF00..U+10FFFF is F4 8F BC..BF 80..BF.
        if (text.substr(at).starts_with("\xF4\x8F") && at + 3 < text.size() &&
            (static_cast<unsigned char>(text[at + 2]) & 0xFC) == 0xBC) {
            out += static_cast<char>((static_cast<unsigned char>(text[at + 2]) & 3) << 6 |
                                     (static_cast<unsigned char>(text[at + 3]) & 0x3F));
            at += 4;
        } else {
            out += text[at++];
        }
    }
    return out;
}

/// Unescapes what stands between the quotes, half surrogate pairs included (as three bytes each,
/// "WTF-8"): a server that cuts its text by UTF-16 units sends the other half in the next event.
/// Absent for a broken escape.
std::optional<std::string> unescape_any(const char* at) {
    std::string out;
    const auto hex = [](const char* digits) {
        std::uint32_t code = 0;
        const auto [end, error] = std::from_chars(digits, digits + 4, code, 16);
        return end == digits + 4 && error == std::errc() ? std::optional(code) : std::nullopt;
    };
    for (; *at != '"'; ++at) {
        if (*at != '\\') {
            out += *at;
            continue;
        }
        constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
        ++at;
        if (const auto name = kNames.find(*at); name != std::string_view::npos) {
            out += kValues[name];
            continue;
        }
        const auto code = *at == 'u' ? hex(at + 1) : std::nullopt;
        if (!code) return std::nullopt;
        at += 4;
        std::uint32_t value = *code;
        if (value >= 0xD800 && value < 0xDC00 && at[1] == '\\' && at[2] == 'u') {
            const auto low = hex(at + 3);
            if (low && *low >= 0xDC00 && *low < 0xE000) {
                value = 0x10000 + ((value - 0xD800) << 10) + (*low - 0xDC00);
                at += 6;
            }
        }
        base::append_character(out, value);
    }
    return out;
}

}  // namespace

struct JsonReader::State {
    od::parser parser;
    std::vector<char> padded;
    std::vector<JsonNode> nodes;
    std::vector<std::unique_ptr<std::string>> kept;  ///< strings that had to be repaired; rare
    bool strays = false;

    void load(std::string_view text) {
        const std::size_t needed = text.size() + simdjson::SIMDJSON_PADDING;
        if (padded.size() > kMaxIdleJsonBytes && needed <= kMaxIdleJsonBytes) {
            padded = {};
            nodes = {};
            parser = od::parser();
        }
        if (padded.size() < needed)
            padded.resize(needed <= kMaxIdleJsonBytes / 2 ? needed * 2 : needed);
        std::memcpy(padded.data(), text.data(), text.size());
        std::memset(padded.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    }

    bool walk(std::string_view text) {
        load(text);
        nodes.clear();
        kept.clear();
        od::document document;
        if (parser.iterate(padded.data(), text.size(), padded.size()).get(document)) return false;
        od::json_type type;
        if (document.type().get(type)) return false;
        if (type != od::json_type::object && type != od::json_type::array) return false;
        od::value root;
        if (document.get_value().get(root) || !add({}, root, 0)) return false;
        const char* rest = nullptr;
        return document.current_location().get(rest) == simdjson::OUT_OF_BOUNDS;  // nothing follows
    }

    std::string_view keep(std::string text) {
        return *kept.emplace_back(std::make_unique<std::string>(std::move(text)));
    }

    bool add(std::string_view key, od::value value, int depth) {
        od::json_type type = od::json_type::null;
        const bool known = !value.type().get(type);
        if (nodes.size() >= kMaxJsonNodes) return false;
        const auto index = static_cast<std::uint32_t>(nodes.size());
        nodes.push_back({key, {}, kind_of(type), index + 1});
        bool good = true;
        switch (type) {
            case od::json_type::object: good = add_members(value, depth); break;
            case od::json_type::array: good = add_elements(value, depth); break;
            case od::json_type::string: good = add_string(value, index); break;
            case od::json_type::number:
            case od::json_type::boolean: add_token(value, index); break;
            case od::json_type::null:
                add_token(value, index);
                // Python servers write NaN where they divide by nothing; not worth losing an event
                // for.
                good = nodes[index].text == (known ? "null" : "NaN");
                break;
        }
        nodes[index].end = static_cast<std::uint32_t>(nodes.size());
        return good;
    }

    static JsonNode::Kind kind_of(od::json_type type) {
        switch (type) {
            case od::json_type::object: return JsonNode::Kind::kObject;
            case od::json_type::array: return JsonNode::Kind::kArray;
            case od::json_type::string: return JsonNode::Kind::kString;
            case od::json_type::number: return JsonNode::Kind::kNumber;
            case od::json_type::boolean: return JsonNode::Kind::kBool;
            case od::json_type::null: break;
        }
        return JsonNode::Kind::kNull;
    }

    bool add_members(od::value& value, int depth) {
        od::object object;
        if (value.get_object().get(object)) return false;
        if (nodes.back().key == "arguments") {
            std::string_view source;
            if (object.raw_json().get(source) || object.reset().error()) return false;
            nodes.back().text = strays ? keep(show_stray_bytes(source)) : source;
        }
        for (auto member : object) {
            od::field field;
            std::string_view key;
            if (std::move(member).get(field) || field.unescaped_key().get(key)) return false;
            if (depth >= kMaxJsonDepth || is_unasked(key)) continue;
            if (!add(key, field.value(), depth + 1)) return false;
        }
        return true;
    }

    bool add_elements(od::value& value, int depth) {
        od::array array;
        if (value.get_array().get(array)) return false;
        for (auto element : array) {
            od::value item;
            if (std::move(element).get(item)) return false;
            if (depth >= kMaxJsonDepth) continue;
            if (!add({}, item, depth + 1)) return false;
        }
        return true;
    }

    bool add_string(od::value& value, std::uint32_t index) {
        if (value.get_string().get(nodes[index].text)) {
            const std::string_view token = value.raw_json_token();
            auto repaired =
                token.size() <= kMaxRepairedBytes ? unescape_any(token.data() + 1) : std::nullopt;
            if (!repaired) return false;
            nodes[index].text = keep(std::move(*repaired));
        }
        if (strays) nodes[index].text = keep(show_stray_bytes(nodes[index].text));
        return true;
    }

    void add_token(od::value& value, std::uint32_t index) {
        const std::string_view token = value.raw_json_token();
        nodes[index].text = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
    }
};

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

JsonReader::JsonReader() : state_(std::make_unique<State>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

JsonValue JsonReader::read(std::string_view text) {
    State& state = *state_;
    state.strays = false;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return {};
    if (state.walk(text)) return {state.nodes.data(), 0};
    if (text.size() > kMaxRepairedBytes || state.nodes.size() >= kMaxJsonNodes ||
        simdjson::validate_utf8(text))
        return {};
    const std::string hidden = hide_stray_bytes(text);
    state.strays = true;
    if (state.walk(hidden)) return {state.nodes.data(), 0};
    return {};
}

std::string_view JsonValue::verbatim() const {
    if (!nodes_ || node().kind == JsonNode::Kind::kNull || is_array() || is_object()) return {};
    return node().text;
}

std::optional<double> JsonValue::number() const {
    if (!is_number()) return std::nullopt;
    double value = 0;
    const std::string_view text = node().text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

std::optional<std::int64_t> JsonValue::integer() const {
    const auto value = number();
    if (!value || std::abs(*value) > 0x1p53) return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

JsonValue JsonValue::operator[](std::string_view name) const {
    if (!is_object()) return {};
    for (std::uint32_t at = index_ + 1; at < node().end; at = nodes_[at].end)
        if (nodes_[at].key == name) return {nodes_, at};
    return {};
}

}  // namespace fullstop::wire
