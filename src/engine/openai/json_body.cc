// Boost.JSON reads the body twice: its own documents keep the last of equal keys and do not tell,
// so a pass before that looks at the keys alone.
#include "engine/openai/json_body.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <set>
#include <vector>

#include "base/utf8.h"
#include "engine/limits.h"
#include "wire/json/json_walk.h"

namespace fullstop::engine {
namespace {

namespace json = boost::json;
using Code = json::error_code;

/// The events of a parser, of which only keys matter.
struct KeyWatch {
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1),
                                 max_object_size = max_array_size, max_string_size = max_array_size,
                                 max_key_size = max_array_size;
    std::vector<std::set<std::string, std::less<>>>
        open;         ///< keys of the objects around the place that is read
    std::string key;  ///< begun, not ended
    std::string twice;

    bool on_key_part(json::string_view part, std::size_t, Code&) {
        return key += std::string_view(part), true;
    }
    bool on_key(json::string_view part, std::size_t, Code& error) {
        key += std::string_view(part);
        if (open.back().insert(key).second) return key.clear(), true;
        twice = key;
        error = json::error::extra_data;  // any will do: `twice` says what it was
        return false;
    }
    bool on_object_begin(Code&) { return open.emplace_back(), true; }
    bool on_object_end(std::size_t, Code&) { return open.pop_back(), true; }
    bool on_document_begin(Code&) { return true; }
    bool on_document_end(Code&) { return true; }
    bool on_array_begin(Code&) { return true; }
    bool on_array_end(std::size_t, Code&) { return true; }
    bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
    bool on_string(json::string_view, std::size_t, Code&) { return true; }
    bool on_number_part(json::string_view, Code&) { return true; }
    bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
    bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
    bool on_double(double, json::string_view, Code&) { return true; }
    bool on_bool(bool, Code&) { return true; }
    bool on_null(Code&) { return true; }
    bool on_comment_part(json::string_view, Code&) { return true; }
    bool on_comment(json::string_view, Code&) { return true; }
};

std::string words_for(std::string_view body, const Code& error, std::size_t at) {
    if (const auto invalid = base::first_invalid_byte(body))
        return fmt::format("the body is not UTF-8 at byte {}", *invalid);
    if (error == json::error::too_deep)
        return fmt::format("the body is nested deeper than {} levels", kMaxJsonDepth);
    return fmt::format("the body is not JSON at byte {}: {}", at, error.message());
}

}  // namespace

std::expected<json::object, BadBody> parse_body(std::string_view body) {
    // Bounded before anything is built of it.
    struct Deaf final : wire::JsonListener {
        void hear(const wire::WalkedValue&) override {}
    } nobody;
    if (wire::walk_json(body, {.values = kMaxBodyValues, .depth = static_cast<int>(kMaxJsonDepth)},
                        nobody) == wire::WalkEnd::kTooManyValues)
        return std::unexpected(
            BadBody{fmt::format("the body holds more than {} JSON values", kMaxBodyValues), ""});
    json::parse_options options;
    options.max_depth = kMaxJsonDepth;
    json::basic_parser<KeyWatch> keys(options);
    Code error;
    const std::size_t read = keys.write_some(false, body.data(), body.size(), error);
    if (!keys.handler().twice.empty())
        return std::unexpected(
            BadBody{fmt::format("{} stands twice in one object", keys.handler().twice),
                    keys.handler().twice});
    if (error) return std::unexpected(BadBody{words_for(body, error, read), ""});
    json::value parsed = json::parse(body, error, {}, options);
    if (error) return std::unexpected(BadBody{words_for(body, error, read), ""});
    if (!parsed.is_object()) return std::unexpected(BadBody{"the body is not a JSON object", ""});
    return std::move(parsed.get_object());
}

}  // namespace fullstop::engine
