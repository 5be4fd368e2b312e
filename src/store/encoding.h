// How values become the text and blobs of a row, and back, without any loss. Each structure names
// its fields once (fields.h); writer and reader walk the same list, so they cannot drift apart. A
// field a row lacks keeps its default.
//
// JSON text, with doubles as shortest decimal strings: Boost.JSON 1.81 reads decimal numbers one
// unit in the last place off now and then, and a stored run must be judged on exactly the numbers
// that were measured.
#pragma once

#include <boost/json.hpp>
#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "answer/fact.h"
#include "base/time.h"
#include "base/units.h"

namespace fullstop::store {

/// A row that cannot be read: written by something else, or damaged. Caught at the edge of the
/// store.
struct Unreadable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Json = boost::json::value;

/// An enumeration with public words: `to_string(E)` is found by lookup, `from_word(word, E&)`
/// stands in fields.h.
template <class T>
concept Word = std::is_enum_v<T>;

/// A structure with a list of fields: `fields(visitor, value)` in fields.h.
struct AnyVisitor {
    template <class T>
    void operator()(const char*, T&) const {}
};
template <class T>
concept Structure = requires(AnyVisitor visitor, T& value) { fields(visitor, value); };

// Values to JSON
// -------------------------------------------------------------------------------------------------
inline Json encode(bool value) { return value; }
template <std::integral T>
    requires(!std::same_as<T, bool>)
Json encode(T value) {
    return static_cast<std::int64_t>(value);
}
inline Json encode(double value) {
    char text[32];
    return Json(boost::json::string_view(
        text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text)));
}
inline Json encode(const std::string& value) {
    return Json(boost::json::string_view(value.data(), value.size()));
}
inline Json encode(base::Duration value) { return value.count(); }
inline Json encode(base::WallTime value) { return value.unix_ns; }
template <class Tag>
Json encode(base::Quantity<Tag> value) {
    return value.count;
}
template <Word T>
Json encode(T value) {
    const std::string_view word = to_string(value);
    return Json(boost::json::string_view(word.data(), word.size()));
}
template <class T>
Json encode(const std::optional<T>& value);
template <class T>
Json encode(const std::vector<T>& values);
template <class T>
Json encode(const std::map<std::string, T>& values);
template <class T>
Json encode(const answer::Fact<T>& fact);
template <Structure T>
Json encode(const T& value);

struct Writer {
    boost::json::object& object;
    template <class T>
    void operator()(const char* name, const T& value) {
        object[name] = encode(value);
    }
};

template <class T>
Json encode(const std::optional<T>& value) {
    return value ? encode(*value) : Json(nullptr);
}
template <class T>
Json encode(const std::vector<T>& values) {
    boost::json::array array;
    array.reserve(values.size());
    for (const T& value : values) array.push_back(encode(value));
    return array;
}
template <class T>
Json encode(const std::map<std::string, T>& values) {
    boost::json::object object;
    for (const auto& [name, value] : values)
        object[boost::json::string_view(name.data(), name.size())] = encode(value);
    return object;
}
template <class T>
Json encode(const answer::Fact<T>& fact) {
    return boost::json::array{encode(fact.value), encode(fact.from), encode(fact.how)};
}
template <Structure T>
Json encode(const T& value) {
    boost::json::object object;
    Writer writer{object};
    fields(writer,
           const_cast<T&>(value));  // one list of fields serves both ways; the writer only reads
    return object;
}

// JSON to values
// -------------------------------------------------------------------------------------------------
inline void expect(bool holds, const char* what) {
    if (!holds) throw Unreadable(std::string("expected ") + what);
}
inline std::string text_of(const Json& json) {
    expect(json.is_string(), "a text");
    return std::string(json.get_string().data(), json.get_string().size());
}

inline void decode(const Json& json, bool& value) {
    expect(json.is_bool(), "true or false");
    value = json.get_bool();
}
template <std::integral T>
    requires(!std::same_as<T, bool>)
void decode(const Json& json, T& value) {
    expect(json.is_int64() && std::in_range<T>(json.get_int64()), "a whole number");
    value = static_cast<T>(json.get_int64());
}
inline void decode(const Json& json, double& value) {
    const std::string text = text_of(json);
    expect(std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc(),
           "a number");
}
inline void decode(const Json& json, std::string& value) { value = text_of(json); }
inline void decode(const Json& json, base::Duration& value) {
    std::int64_t count = 0;
    decode(json, count);
    value = base::Duration(count);
}
template <class Tag>
void decode(const Json& json, base::Quantity<Tag>& value) {
    decode(json, value.count);
}
template <Word T>
void decode(const Json& json, T& value) {
    expect(from_word(text_of(json), value), "a word this version knows");
}
template <class T>
void decode(const Json& json, std::optional<T>& value);
template <class T>
void decode(const Json& json, std::vector<T>& values);
template <class T>
void decode(const Json& json, std::map<std::string, T>& values);
template <class T>
void decode(const Json& json, answer::Fact<T>& fact);
template <Structure T>
void decode(const Json& json, T& value);

struct Reader {
    const boost::json::object& object;
    template <class T>
    void operator()(const char* name, T& value) {
        const Json* json = object.if_contains(name);
        if (json == nullptr) return;
        try {
            decode(*json, value);
        } catch (const Unreadable& trouble) {
            throw Unreadable(std::string(name) + ": " + trouble.what());
        }
    }
};

template <class T>
void decode(const Json& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) decode(json, value.emplace());
}
template <class T>
void decode(const Json& json, std::vector<T>& values) {
    expect(json.is_array(), "a list");
    values.clear();
    for (const Json& element : json.get_array()) decode(element, values.emplace_back());
}
template <class T>
void decode(const Json& json, std::map<std::string, T>& values) {
    expect(json.is_object(), "an object");
    values.clear();
    for (const auto& member : json.get_object())
        decode(member.value(), values[std::string(member.key().data(), member.key().size())]);
}
template <class T>
void decode(const Json& json, answer::Fact<T>& fact) {
    expect(json.is_array() && json.get_array().size() == 3, "a fact");
    const auto& parts = json.get_array();
    decode(parts[0], fact.value);
    decode(parts[1], fact.from);
    decode(parts[2], fact.how);
}
template <Structure T>
void decode(const Json& json, T& value) {
    expect(json.is_object(), "an object");
    Reader reader{json.get_object()};
    fields(reader, value);
}

template <class T>
std::string to_text(const T& value) {
    return boost::json::serialize(encode(value));
}
template <class T>
void from_text(const std::string& text, T& value) {
    boost::json::parse_options options;
    options.allow_invalid_utf8 = true;  // servers send it, and it is kept as it came
    boost::json::error_code error;
    const Json json =
        boost::json::parse(boost::json::string_view(text.data(), text.size()), error, {}, options);
    if (error) throw Unreadable(error.message());
    decode(json, value);
}

}  // namespace fullstop::store
