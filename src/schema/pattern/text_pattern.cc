// Recursive descent, one function a level: alternatives, sequence, repetition, atom, class.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "schema/limits.h"
#include "schema/pattern/character_set.h"
#include "schema/pattern/pattern_automaton.h"
#include "schema/pattern/text_pattern.h"

namespace fullstop::schema {
namespace {

/// Groups within groups; each is a level of recursion, here and in libllama.
constexpr int kMostGroups = 16;

CharacterSet one(std::uint32_t code) {
    CharacterSet set;
    set.add(code, code);
    return set;
}

/// \d, \w and \s, or their opposites.
std::optional<CharacterSet> named_set(char name) {
    CharacterSet set;
    switch (name) {
        case 'd':
        case 'D': set.add('0', '9'); break;
        case 'w':
        case 'W':
            for (const auto& [first, last] :
                 {std::pair{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}})
                set.add(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last));
            break;
        case 's':
        case 'S':
            for (const auto& [first, last] : {std::pair{9U, 13U},
                                              {0x20U, 0x20U},
                                              {0xA0U, 0xA0U},
                                              {0x1680U, 0x1680U},
                                              {0x2000U, 0x200AU},
                                              {0x2028U, 0x2029U},
                                              {0x202FU, 0x202FU},
                                              {0x205FU, 0x205FU},
                                              {0x3000U, 0x3000U},
                                              {0xFEFFU, 0xFEFFU}})
                set.add(first, last);
            break;
        default: return std::nullopt;
    }
    return name >= 'a' ? set : set.opposite();
}

/// A part of the pattern by its places (Glushkov's construction): where it may begin and end, and
/// whether it may be empty.
struct Piece {
    PlaceSet first, last;
    bool may_be_empty = true;
};

class PatternReader {
public:
    explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

    std::expected<Places, std::string> read() {
        if (pattern_.size() > kMaxPatternBytes)
            fail(fmt::format("it has more than {} bytes", kMaxPatternBytes));
        if (!take('^'))
            fail("it begins with ^ and ends with $, or it could stand anywhere in a longer text");
        const Piece whole = sequence(0);
        if (at_end() && wrong_.empty()) fail("it ends with $, or more could follow");
        if (wrong_.empty() && peek() == '|')
            fail("alternatives of the whole stand in a group: ^(a|b)$");
        if (!take('$') || !at_end())
            fail(fmt::format("what stands at byte {} is not honoured", at_));
        if (!wrong_.empty()) return std::unexpected(std::move(wrong_));
        places_.first = whole.first;
        places_.last = whole.last;
        places_.may_be_empty = whole.may_be_empty;
        return std::move(places_);
    }

private:
    bool at_end() const { return at_ >= pattern_.size(); }
    char peek() const { return at_end() ? '\0' : pattern_[at_]; }
    bool take(char c) {
        if (at_end() || pattern_[at_] != c) return false;
        ++at_;
        return true;
    }
    /// The first counts, and nothing is read after it.
    void fail(std::string_view what) {
        if (wrong_.empty()) wrong_ = what;
        at_ = pattern_.size();
    }

    Piece alternatives(int depth) {
        Piece out = sequence(depth);
        while (take('|')) {
            const Piece next = sequence(depth);
            out = {out.first | next.first, out.last | next.last,
                   out.may_be_empty || next.may_be_empty};
        }
        return out;
    }

    Piece sequence(int depth) {
        Piece out;
        while (!at_end() && peek() != '|' && peek() != ')' && peek() != '$')
            append(out, repeated(depth));
        return out;
    }

    void append(Piece& out, const Piece& next) {
        follow(out.last, next.first);
        if (out.may_be_empty) out.first |= next.first;
        out.last = next.may_be_empty ? out.last | next.last : next.last;
        out.may_be_empty = out.may_be_empty && next.may_be_empty;
    }
    void follow(const PlaceSet& these, const PlaceSet& those) {
        for (std::size_t place = 0; place < places_.sets.size(); ++place)
            if (these[place]) places_.follow[place] |= those;
    }

    /// An atom and what stands behind it. Each of its repetitions has places of its own.
    Piece repeated(int depth) {
        const std::size_t from = places_.sets.size();
        const Piece once = atom(depth);
        const auto [least, most] = repetition();
        if (peek() == '?' || peek() == '*' || peek() == '+' || peek() == '{')
            fail("one repetition behind another is not honoured");
        if (!wrong_.empty() || places_.sets.size() == from) return {};
        const std::vector<PlaceSet> inner(
            places_.follow.begin() + static_cast<std::ptrdiff_t>(from), places_.follow.end());
        const std::int64_t copies = most == 0 ? std::max<std::int64_t>(least, 1) : most;
        Piece out;
        for (std::int64_t i = 1; i <= copies && wrong_.empty(); ++i) {
            Piece next = i == 1 ? once : copy(once, inner, from);
            if (most == 0 && i == copies) follow(next.last, next.first);
            next.may_be_empty = next.may_be_empty || i > least;
            append(out, next);
        }
        return out;
    }

    Piece copy(const Piece& once, const std::vector<PlaceSet>& inner, std::size_t from) {
        const std::size_t by = places_.sets.size() - from;
        if (places_.sets.size() + inner.size() > kMaxPatternPlaces)
            return too_many_places(), Piece{};
        for (std::size_t i = 0; i < inner.size(); ++i) {
            places_.sets.push_back(places_.sets[from + i]);
            places_.follow.push_back(inner[i] << by);
        }
        return {once.first << by, once.last << by, once.may_be_empty};
    }
    void too_many_places() {
        fail(fmt::format("with its repetitions it has more than {} places", kMaxPatternPlaces));
    }

    /// How often, at least and at most; most 0: any number.
    std::pair<std::int64_t, std::int64_t> repetition() {
        if (take('*')) return {0, 0};
        if (take('+')) return {1, 0};
        if (take('?')) return {0, 1};
        if (!take('{')) return {1, 1};
        const std::int64_t least = number();
        std::int64_t most = least;
        if (take(',')) most = peek() == '}' ? 0 : number();
        if (!take('}') || least < 0 || most < 0 || (most > 0 && most < least) ||
            (most == 0 && pattern_[at_ - 2] != ','))
            fail("a repetition is {2}, {2,} or {2,4}");
        return {least, most};
    }

    /// A count; -1: there is none that is small enough.
    std::int64_t number() {
        std::int64_t value = -1;
        const std::string_view rest = pattern_.substr(at_);
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (error != std::errc() || value > kMaxSchemaCount) return -1;
        at_ += static_cast<std::size_t>(end - rest.data());
        return value;
    }

    Piece atom(int depth) {
        if (take('(')) return group(depth);
        if (take('[')) return of(character_class());
        if (take('.')) {
            CharacterSet breaks = one('\n');
            breaks.add('\r', '\r');
            breaks.add(0x2028, 0x2029);
            return of(breaks.opposite());
        }
        if (take('\\')) return of(escape());
        if (std::string_view("^*+?{}]").contains(peek()))
            fail(fmt::format("the {} at byte {} is not honoured", peek(), at_));
        return at_end() ? Piece{} : of(one(next_character()));
    }

    Piece group(int depth) {
        if (take('?') && !take(':')) fail("a group is (…) or (?:…)");
        if (depth == kMostGroups)
            fail(fmt::format("groups are nested deeper than {}", kMostGroups));
        Piece inner = alternatives(depth + 1);
        if (!take(')')) fail("a group is not closed");
        return inner;
    }

    /// A place that allows one character of the set.
    Piece of(const CharacterSet& set) {
        if (set.spelling().choices == 0)
            fail("a place of it allows control characters only, or nothing");
        if (places_.sets.size() == kMaxPatternPlaces) too_many_places();
        if (!wrong_.empty()) return {};
        PlaceSet here;
        here.set(places_.sets.size());
        places_.sets.push_back(set.merged());
        places_.follow.emplace_back();
        return {here, here, false};
    }

    std::uint32_t next_character() {
        const std::string_view rest = pattern_.substr(at_);
        const std::size_t length = base::front_character(rest).second;
        at_ += length;
        return base::code_of(rest.substr(0, length));
    }

    /// Behind the backslash.
    CharacterSet escape() {
        if (at_end()) return fail("it ends with a backslash"), CharacterSet{};
        const char c = pattern_[at_++];
        if (auto named = named_set(c)) return *named;
        constexpr std::string_view kNames = "tnvfr", kMeanings = "\t\n\v\f\r";
        if (const auto known = kNames.find(c); known != std::string_view::npos)
            return one(static_cast<std::uint32_t>(kMeanings[known]));
        if (c == 'x') return one(hexadecimal(2));
        if (c == 'u') return one(hexadecimal(4));
        const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
        if (word) fail(fmt::format("the escape at byte {} is not honoured", at_ - 2));
        return one(static_cast<std::uint32_t>(static_cast<unsigned char>(c)));
    }

    std::uint32_t hexadecimal(std::size_t digits) {
        std::uint32_t code = 0;
        const std::string_view rest = pattern_.substr(at_, digits);
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), code, 16);
        if (rest.size() < digits || error != std::errc() || end != rest.data() + rest.size())
            return fail("an escape has too few digits"), 0;
        at_ += digits;
        return code;
    }

    CharacterSet character_class() {
        CharacterSet set;
        const bool opposite = take('^');
        while (!at_end() && peek() != ']') {
            const bool named = peek() == '\\' && at_ + 1 < pattern_.size() &&
                               named_set(pattern_[at_ + 1]).has_value();
            if (named) {
                at_ += 2;
                set.add(*named_set(pattern_[at_ - 1]));
                continue;
            }
            const std::uint32_t first = class_character();
            std::uint32_t last = first;
            if (peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
                ++at_;
                if (peek() == '\\' && at_ + 1 < pattern_.size() && named_set(pattern_[at_ + 1]))
                    fail("a range in a class ends with one character");
                last = class_character();
                if (last < first) fail("a range in a class runs backwards");
            }
            set.add(first, last);
        }
        if (!take(']')) fail("a class is not closed");
        return opposite ? set.opposite() : set;
    }

    /// \b is a backspace here; it is refused with the other escapes.
    std::uint32_t class_character() {
        if (at_end()) return 0;
        if (!take('\\')) return next_character();
        const CharacterSet set = escape();
        return wrong_.empty() ? set.first() : 0;
    }

    std::string_view pattern_;
    std::size_t at_ = 0;
    std::string wrong_;
    Places places_;
};

}  // namespace

std::expected<TextPattern, std::string> read_pattern(std::string_view pattern, std::size_t& work) {
    const auto places = PatternReader(pattern).read();
    if (!places) return std::unexpected(places.error());
    return automaton_of(*places, work);
}

}  // namespace fullstop::schema
