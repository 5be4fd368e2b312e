// A cursor of our own, because simdjson indexes a whole text before any of it can be refused: four
// bytes for each byte of it, and more time than one event may take. This one holds nothing, and
// stops where it is told to.
#include "wire/json/json_walk.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>

#include "base/utf8.h"

namespace fullstop::wire {
namespace {

/// Strings longer than this are no names and no numbers; what they say is not looked at.
constexpr std::size_t kMaxUnescaped = 4096;

/// Whether one of eight bytes is a quote, a backslash or a control character (exact: Bit Twiddling
/// Hacks, "hasless", "haszero").
bool holds_special(std::uint64_t word) {
    constexpr std::uint64_t kOnes = ~std::uint64_t{0} / 255, kHigh = kOnes * 0x80;
    const auto zero = [&](std::uint64_t x) { return (x - kOnes) & ~x & kHigh; };
    return (zero(word ^ (kOnes * '"')) | zero(word ^ (kOnes * '\\')) |
            ((word - kOnes * 0x20) & ~word & kHigh)) != 0;
}

bool is_special(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }
bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_escape(char c) {
    switch (c) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't': return true;
        default: return false;
    }
}
bool is_high_half(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_half(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

std::optional<std::uint32_t> hex4(std::string_view digits) {
    std::uint32_t code = 0;
    if (digits.size() < 4 ||
        std::from_chars(digits.data(), digits.data() + 4, code, 16).ptr != digits.data() + 4)
        return std::nullopt;
    return code;
}

constexpr std::string_view kEscapes = "\"\\/bfnrt", kEscaped = "\"\\/\b\f\n\r\t";

/// What stands between the quotes, its escapes known to be good. Absent: it holds half a surrogate
/// pair.
std::optional<std::string> unescaped(std::string_view raw) {
    std::string out;
    while (!raw.empty()) {
        const std::size_t plain = std::min(raw.find('\\'), raw.size());
        out.append(raw.substr(0, plain));
        raw.remove_prefix(plain);
        if (raw.empty()) break;
        if (raw[1] != 'u') {
            out += kEscaped[kEscapes.find(raw[1])];
            raw.remove_prefix(2);
            continue;
        }
        std::uint32_t code = *hex4(raw.substr(2));
        raw.remove_prefix(6);
        if (is_high_half(code) && raw.starts_with("\\u") && is_low_half(*hex4(raw.substr(2)))) {
            code = 0x10000 + ((code - 0xD800) << 10) + (*hex4(raw.substr(2)) - 0xDC00);
            raw.remove_prefix(6);
        } else if (is_high_half(code) || is_low_half(code)) {
            return std::nullopt;
        }
        base::append_character(out, code);
    }
    return out;
}

class Walk {
public:
    Walk(std::string_view text, WalkBounds bounds, JsonListener& listener)
        : text_(text), bounds_(bounds), listener_(listener) {}

    WalkEnd root() {
        skip_blanks();
        if (peek() != '{' && peek() != '[') return WalkEnd::kNoJson;
        if (const WalkEnd end = value({}, 0); end != WalkEnd::kWhole) return end;
        skip_blanks();
        return at_ == text_.size() ? WalkEnd::kWhole : WalkEnd::kNoJson;
    }

private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_blanks() {
        while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    }
    bool skip(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    bool skip_digits() {
        const std::size_t from = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ > from;
    }

    WalkEnd value(std::string_view key, int depth) {
        if (depth > bounds_.depth) return WalkEnd::kTooDeep;
        if (++values_ > bounds_.values) return WalkEnd::kTooManyValues;
        WalkedValue heard{
            .kind = JsonNode::Kind::kNull, .depth = depth, .key = key, .text = {}, .from = at_};
        switch (peek()) {
            case '{': heard.kind = JsonNode::Kind::kObject; return members(heard);
            case '[': heard.kind = JsonNode::Kind::kArray; return elements(heard);
            case '"': heard.kind = JsonNode::Kind::kString; return string_value(heard);
            case 't':
            case 'f':
                heard.kind = JsonNode::Kind::kBool;
                return word(heard, peek() == 't' ? "true" : "false");
            case 'n': return word(heard, "null");
            default:
                heard.kind = JsonNode::Kind::kNumber;
                return number() ? scalar(heard) : WalkEnd::kNoJson;
        }
    }

    WalkEnd members(const WalkedValue& heard) {
        listener_.hear(heard);
        ++at_;
        skip_blanks();
        if (skip('}')) return WalkEnd::kWhole;
        while (true) {
            if (peek() != '"') return WalkEnd::kNoJson;
            const auto raw = string();
            if (!raw) return WalkEnd::kNoJson;
            std::string_view key = raw->text;
            if (raw->escapes && key.size() <= kMaxUnescaped) {
                auto plain = unescaped(key);
                if (!plain) return WalkEnd::kNoJson;  // readers make different names of it
                key = keys_.emplace_back(std::move(*plain));
            }
            skip_blanks();
            if (!skip(':')) return WalkEnd::kNoJson;
            skip_blanks();
            if (const WalkEnd end = value(key, heard.depth + 1); end != WalkEnd::kWhole) return end;
            skip_blanks();
            if (skip('}')) return WalkEnd::kWhole;
            if (!skip(',')) return WalkEnd::kNoJson;
            skip_blanks();
        }
    }

    WalkEnd elements(const WalkedValue& heard) {
        listener_.hear(heard);
        ++at_;
        skip_blanks();
        if (skip(']')) return WalkEnd::kWhole;
        while (true) {
            if (const WalkEnd end = value({}, heard.depth + 1); end != WalkEnd::kWhole) return end;
            skip_blanks();
            if (skip(']')) return WalkEnd::kWhole;
            if (!skip(',')) return WalkEnd::kNoJson;
            skip_blanks();
        }
    }

    WalkEnd scalar(WalkedValue& heard) {
        heard.to = at_;
        if (heard.kind != JsonNode::Kind::kString)
            heard.text = text_.substr(heard.from, at_ - heard.from);
        listener_.hear(heard);
        return WalkEnd::kWhole;
    }

    WalkEnd word(WalkedValue& heard, std::string_view expected) {
        if (!text_.substr(at_).starts_with(expected)) return WalkEnd::kNoJson;
        at_ += expected.size();
        return scalar(heard);
    }

    WalkEnd string_value(WalkedValue& heard) {
        const auto raw = string();
        if (!raw) return WalkEnd::kNoJson;
        heard.text = raw->text;
        heard.bytes = raw->bytes;
        std::optional<std::string> plain;
        if (raw->escapes && raw->text.size() <= kMaxUnescaped) plain = unescaped(raw->text);
        if (plain) heard.text = *plain;
        return scalar(heard);
    }

    /// RFC 8259, section 6.
    bool number() {
        skip('-');
        if (!skip('0') && !skip_digits()) return false;
        if (skip('.') && !skip_digits()) return false;
        if (peek() != 'e' && peek() != 'E') return true;
        ++at_;
        if (!skip('+')) skip('-');
        return skip_digits();
    }

    struct Raw {
        std::string_view text;  ///< between the quotes
        std::size_t bytes = 0;  ///< unescaped
        bool escapes = false;
    };
    /// `at_` is at the first quote, and then behind the last.
    std::optional<Raw> string() {
        const std::size_t from = ++at_;
        std::size_t saved = 0;
        while (true) {
            if (peek() != '\\') skip_plain();  // escapes come in rows
            if (at_ == text_.size()) return std::nullopt;
            if (text_[at_] == '"') break;
            const auto less = escape();
            if (!less) return std::nullopt;
            saved += *less;
        }
        const std::string_view raw = text_.substr(from, at_ - from);
        ++at_;
        return Raw{.text = raw, .bytes = raw.size() - saved, .escapes = saved > 0};
    }

    void skip_plain() {
        std::uint64_t word = 0;
        for (; text_.size() - at_ >= sizeof word; at_ += sizeof word) {
            std::memcpy(&word, text_.data() + at_, sizeof word);
            if (holds_special(word)) break;
        }
        while (at_ < text_.size() && !is_special(text_[at_])) ++at_;
    }

    /// By how many bytes its character is shorter; absent: it is no escape, or a bare control
    /// character.
    std::optional<std::size_t> escape() {
        if (text_[at_] != '\\' || text_.size() - at_ < 2) return std::nullopt;
        const char named = text_[at_ + 1];
        if (named != 'u') {
            at_ += 2;
            return is_escape(named) ? std::optional<std::size_t>(1) : std::nullopt;
        }
        const auto code = hex4(text_.substr(at_ + 2));
        if (!code) return std::nullopt;
        at_ += 6;
        if (*code < 0x80) return 5;
        return *code < 0x800 || is_high_half(*code) || is_low_half(*code)
                   ? 4
                   : 3;  // two halves make four bytes
    }

    std::string_view text_;
    WalkBounds bounds_;
    JsonListener& listener_;
    std::size_t at_ = 0, values_ = 0;
    std::deque<std::string> keys_;  ///< those that had escapes
};

}  // namespace

WalkEnd walk_json(std::string_view text, WalkBounds bounds, JsonListener& listener) {
    return is_utf8(text) ? Walk(text, bounds, listener).root() : WalkEnd::kNoJson;
}

}  // namespace fullstop::wire
