// The number is exchanged in the text itself: parsing and writing the body anew could change what it means (numbers beyond
// 53 bits, repeated names, odd escapes).
#include "gateway/output_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "gateway/request_head.h"
#include "wire/json.h"

namespace fullstop::gateway {
namespace {

struct Span {
    std::size_t from = 0, to = 0;
};

/// Walks over JSON text that is known to be valid. Positions are behind what was read.
class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    void blanks(std::size_t& at) const { at = std::min(text_.find_first_not_of(" \t\r\n", at), text_.size()); }
    void string(std::size_t& at) const {
        for (++at; at < text_.size() && text_[at] != '"'; ++at)
            if (text_[at] == '\\') ++at;
        ++at;
    }
    void value(std::size_t& at) const {
        int depth = 0;
        do {
            blanks(at);
            if (at >= text_.size()) return;
            const char c = text_[at];
            if (c == '"') {
                string(at);
            } else if (c == '{' || c == '[') {
                ++depth, ++at;
            } else if (c == '}' || c == ']') {
                --depth, ++at;
            } else if (c == ',' || c == ':') {
                ++at;
            } else {
                at = std::min(text_.find_first_of(",]} \t\r\n", at), text_.size());
            }
        } while (depth > 0);
    }

    /// The values of all members called `name` of the object that begins at `at`.
    std::vector<Span> members(std::size_t at, std::string_view name) const {
        std::vector<Span> out;
        if (at >= text_.size() || text_[at] != '{') return out;
        ++at;
        while (true) {
            blanks(at);
            if (at >= text_.size() || text_[at] == '}') return out;
            if (text_[at] == ',') {
                ++at;
                continue;
            }
            const std::size_t key = at + 1;
            string(at);
            const bool found = text_.substr(key, at - key - 1) == name;
            blanks(at);
            ++at;  // the colon
            blanks(at);
            const std::size_t from = at;
            value(at);
            if (found) out.push_back({from, at});
        }
    }

private:
    std::string_view text_;
};

/// Where a dialect keeps its limit: the object that holds it ("" for the body itself) and its name.
struct Place {
    std::string_view object, name;
};

Place place_of(std::string_view path) {
    path = path.substr(0, path.find('?'));
    if (path.ends_with("/api/chat") || path.ends_with("/api/generate")) return {"options", "num_predict"};
    if (path.ends_with("/api/v1/generate") || path.ends_with("/generate/stream")) return {"", "max_length"};  // KoboldCpp
    if (path.ends_with("/generate_stream") || path.ends_with("/generate")) return {"parameters", "max_new_tokens"};
    if (path.ends_with("/completions")) return {"", "max_tokens"};
    return {"", "n_predict"};
}

}  // namespace

std::optional<OutputLimit> output_limit(const OutputLimits& limits, std::int64_t users, std::optional<std::int64_t> asked) {
    std::optional<OutputLimit> out;
    if (limits.max_tokens) out = OutputLimit{.max_tokens = *limits.max_tokens, .by_load = false, .name = "output.max_tokens"};
    for (const OutputLimits::Step& step : limits.by_load) {
        const std::int64_t lowered = std::max(step.max_tokens, limits.floor);
        if (users >= step.users && (!out || lowered < out->max_tokens))
            out = OutputLimit{.max_tokens = lowered, .by_load = true, .name = fmt::format("output.by_load, {} users", step.users)};
    }
    if (out && asked && *asked <= out->max_tokens) return std::nullopt;
    return out;
}

std::optional<std::string> with_max_tokens(std::string_view body, std::string_view path, std::int64_t max_tokens) {
    wire::JsonReader reader;
    if (!reader.read(body).is_object()) return std::nullopt;
    const Scanner scanner(body);
    std::size_t root = 0;
    scanner.blanks(root);
    std::vector<Span> limits;
    bool stated = false;  // in the place where the dialect looks
    const auto collect = [&](std::size_t object) {
        for (const auto name : kLimitMembers)
            for (const Span& span : scanner.members(object, name)) limits.push_back(span);
    };
    collect(root);
    for (const auto part : kLimitObjects)
        for (const Span& object : scanner.members(root, part)) collect(object.from);
    stated = !limits.empty();
    std::ranges::sort(limits, {}, &Span::from);
    const std::string number = std::to_string(max_tokens);
    std::string out(body);
    for (auto at = limits.rbegin(); at != limits.rend(); ++at) {
        std::int64_t given = 0;
        const std::string old(body.substr(at->from, at->to - at->from));
        const bool lower = std::from_chars(old.data(), old.data() + old.size(), given).ec == std::errc() && given > 0 && given <= max_tokens;
        if (!lower) out.replace(at->from, at->to - at->from, number);
    }
    if (stated) return out;
    const Place place = place_of(path);
    const auto insert = [&](std::size_t object, const std::string& member) {
        std::size_t first = object + 1;
        scanner.blanks(first);
        out.insert(object + 1, member + (body[first] == '}' ? "" : ","));
    };
    const std::string member = fmt::format("\"{}\":{}", place.name, number);
    if (place.object.empty()) return insert(root, member), out;
    for (const auto part : kLimitObjects)
        if (const auto objects = scanner.members(root, part); !objects.empty() && body[objects.back().from] == '{')
            return insert(objects.back().from, member), out;
    insert(root, fmt::format("\"{}\":{{{}}}", place.object, member));
    return out;
}

}  // namespace fullstop::gateway
