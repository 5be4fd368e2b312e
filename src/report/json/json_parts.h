// The pieces that documents are made of: words, facts with their provenance, null for what is not
// known.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/record.h"
#include "judge/verdict.h"

namespace fullstop::report {

namespace json = boost::json;

inline json::value text(std::string_view words) {
    return json::string(json::string_view(words.data(), words.size()));
}

inline json::value plain(std::int64_t value) { return value; }
inline json::value plain(int value) { return value; }
inline json::value plain(double value) { return value; }
inline json::value plain(bool value) { return value; }
inline json::value plain(const std::string& value) { return text(value); }
template <class Tag>
inline json::value plain(base::Quantity<Tag> value) {
    return value.count;
}
template <class T>
inline json::value maybe(const std::optional<T>& value) {
    return value ? plain(*value) : json::value(nullptr);
}
template <class E>
inline json::value word(E value) {
    return text(to_string(value));
}
template <class E>
inline json::value maybe_word(const std::optional<E>& value) {
    return value ? word(*value) : json::value(nullptr);
}
template <class T>
inline json::value list(const std::vector<T>& values) {
    json::array array;
    for (const T& value : values) array.push_back(plain(value));
    return array;
}
template <class T, class Make>
inline json::value list(const std::vector<T>& values, Make make) {
    json::array array;
    for (const T& value : values) array.push_back(make(value));
    return array;
}
template <class T>
inline json::value fact(const answer::Fact<T>& value) {
    return json::object{
        {"value", maybe(value.value)}, {"from", word(value.from)}, {"how", text(value.how)}};
}

inline json::value evidence_of(const judge::Evidence& evidence) {
    return json::object{{"text", text(evidence.text)},
                        {"records", list(evidence.records)},
                        {"value", maybe(evidence.value)},
                        {"where", text(evidence.where)}};
}

inline json::value error_fields(const answer::ServerError& error) {
    return json::object{{"status", maybe(error.status)},
                        {"code", text(error.code)},
                        {"type", text(error.type)},
                        {"text", text(error.text)},
                        {"where", word(error.where)}};
}
inline json::value end_of(const answer::EndFacts& end) {
    return json::object{{"reason", maybe(end.reason)},
                        {"error", end.error ? error_fields(*end.error) : json::value(nullptr)},
                        {"terminator", end.terminator},
                        {"transport", word(end.transport)}};
}
inline json::value alternative_of(const judge::Alternative& alternative) {
    return json::object{{"cause", word(alternative.cause)}, {"why_not", text(alternative.why_not)}};
}

}  // namespace fullstop::report
