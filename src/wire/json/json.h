// One JSON text as a small flat tree: what the dialects read. simdjson parses (behind json.cc),
// this only points.
//
// A reader is reused from event to event and then allocates nothing. What no dialect asks for
// (logprobs, token ids, fingerprints) is passed over. Bytes that are no UTF-8 and half surrogate
// pairs are kept as they are: servers do send them.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullstop::wire {

struct JsonNode {
    enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
    std::string_view key;   ///< unescaped; "" inside arrays
    std::string_view text;  ///< strings unescaped, other scalars as written; of an object named
                            ///< `arguments`, its source
    Kind kind = Kind::kNull;
    std::uint32_t end = 0;  ///< index after the last node of this subtree
};

/// Points into the JsonReader that made it; valid until its next read(). A default one is absent.
class JsonValue {
public:
    JsonValue() = default;
    JsonValue(const JsonNode* nodes, std::uint32_t index) : nodes_(nodes), index_(index) {}

    bool present() const { return nodes_ != nullptr; }
    /// Present and not null.
    explicit operator bool() const { return nodes_ && node().kind != JsonNode::Kind::kNull; }
    bool is_object() const { return nodes_ && node().kind == JsonNode::Kind::kObject; }
    bool is_array() const { return nodes_ && node().kind == JsonNode::Kind::kArray; }
    bool is_string() const { return nodes_ && node().kind == JsonNode::Kind::kString; }
    bool is_number() const { return nodes_ && node().kind == JsonNode::Kind::kNumber; }
    bool is_bool() const { return nodes_ && node().kind == JsonNode::Kind::kBool; }
    std::string_view key() const { return nodes_ ? node().key : std::string_view(); }
    /// "" unless a string.
    std::string_view string() const { return is_string() ? node().text : std::string_view(); }
    /// A scalar as written (strings without quotes); "" for null, arrays and objects.
    std::string_view verbatim() const;
    /// The source of an object named `arguments` (tool calls of Ollama); "" otherwise.
    std::string_view source() const { return is_object() ? node().text : std::string_view(); }
    std::optional<double> number() const;
    std::optional<std::int64_t> integer() const;  ///< also of a number with a fraction, cut off
    bool is_true() const { return is_bool() && node().text.starts_with('t'); }
    /// The member of that name, absent when there is none or this is no object.
    JsonValue operator[](std::string_view name) const;

    class Iterator {
    public:
        using value_type = JsonValue;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        Iterator(const JsonNode* nodes, std::uint32_t index) : nodes_(nodes), index_(index) {}
        JsonValue operator*() const { return {nodes_, index_}; }
        Iterator& operator++() { return index_ = nodes_[index_].end, *this; }
        Iterator operator++(int) {
            Iterator old = *this;
            ++*this;
            return old;
        }
        bool operator==(const Iterator& other) const { return index_ == other.index_; }

    private:
        const JsonNode* nodes_ = nullptr;
        std::uint32_t index_ = 0;
    };
    /// Members of an object or elements of an array; empty for everything else.
    Iterator begin() const {
        return is_object() || is_array() ? Iterator{nodes_, index_ + 1} : Iterator{};
    }
    Iterator end() const {
        return is_object() || is_array() ? Iterator{nodes_, node().end} : Iterator{};
    }

    /// First member or element; absent when there is none.
    JsonValue first() const { return begin() == end() ? JsonValue() : *begin(); }

private:
    const JsonNode& node() const { return nodes_[index_]; }
    const JsonNode* nodes_ = nullptr;
    std::uint32_t index_ = 0;
};

bool is_utf8(std::string_view text);

class JsonReader {
public:
    JsonReader();
    ~JsonReader();
    JsonReader(JsonReader&&) noexcept;
    JsonReader& operator=(JsonReader&&) noexcept;

    /// The object or array that `text` is; absent when it is none, or anything follows it.
    JsonValue read(std::string_view text);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fullstop::wire
