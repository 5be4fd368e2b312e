// One JSON text, strictly read from its first byte to its last, value by value, with where each
// stands: for bodies that come from anybody, of which only a few members matter. Nothing is built
// of them, and what is beyond the bounds ends the walk at once.
#pragma once

#include <cstddef>
#include <string_view>

#include "wire/json/json.h"

namespace fullstop::wire {

struct WalkedValue {
    JsonNode::Kind kind = JsonNode::Kind::kNull;
    int depth = 0;         ///< 0: the text itself
    std::string_view key;  ///< unescaped; "" inside arrays
    /// Strings unescaped, other scalars as written; "" for arrays and objects. A long string, and
    /// one with half a surrogate pair, stays as it is written.
    std::string_view text;
    std::size_t bytes = 0;  ///< of a string, unescaped
    std::size_t from = 0;   ///< where its source begins
    std::size_t to =
        0;  ///< and ends; unknown (0) for arrays and objects, which are told before what is in them
};

class JsonListener {
public:
    virtual ~JsonListener() = default;
    /// `value.key` lives until the walk ends, `value.text` until this returns.
    virtual void hear(const WalkedValue& value) = 0;
};

struct WalkBounds {
    std::size_t values = 0;
    int depth = 0;
};
enum class WalkEnd { kWhole, kNoJson, kTooManyValues, kTooDeep };

WalkEnd walk_json(std::string_view text, WalkBounds bounds, JsonListener& listener);

}  // namespace fullstop::wire
