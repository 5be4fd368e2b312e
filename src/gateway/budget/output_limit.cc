// The number is exchanged in the text itself: parsing and writing the body anew could change what
// it means (numbers beyond 53 bits, odd escapes).
#include "gateway/budget/output_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace fullstop::gateway {
namespace {

struct Edit {
    std::size_t from = 0, to = 0;
    std::string text;
};

std::string edited(std::string_view body, std::vector<Edit> edits) {
    std::ranges::sort(edits, {}, &Edit::from);
    std::string out;
    std::size_t done = 0;
    for (const Edit& edit : edits) {
        out.append(body.substr(done, edit.from - done)).append(edit.text);
        done = edit.to;
    }
    return out.append(body.substr(done));
}

/// `members` as the first of the object that begins at `at`.
Edit insertion(std::string_view body, std::size_t at, const std::string& members) {
    const bool empty = body[body.find_first_not_of(" \t\r\n", at + 1)] == '}';
    return {at + 1, at + 1, members + (empty ? "" : ",")};
}

}  // namespace

std::optional<OutputLimit> output_limit(const OutputLimits& limits, std::int64_t users,
                                        std::optional<std::int64_t> asked) {
    std::optional<OutputLimit> out;
    if (limits.max_tokens)
        out = OutputLimit{
            .max_tokens = *limits.max_tokens, .by_load = false, .name = "output.max_tokens"};
    for (const OutputLimits::Step& step : limits.by_load) {
        const std::int64_t lowered = std::max(step.max_tokens, limits.floor);
        if (users >= step.users && (!out || lowered < out->max_tokens))
            out = OutputLimit{.max_tokens = lowered,
                              .by_load = true,
                              .name = fmt::format("output.by_load, {} users", step.users)};
    }
    if (out && asked && *asked <= out->max_tokens) return std::nullopt;
    return out;
}

std::optional<std::string_view> no_place_for_limit(std::string_view path,
                                                   const StatedLimits& limits) {
    for (const LimitPlace& place : limit_places(path, limits))
        if (const auto* object = limits.find(place.object); object != nullptr && !object->object)
            return place.object;
    return std::nullopt;
}

std::string with_max_tokens(std::string_view body, std::string_view path,
                            const StatedLimits& limits, std::int64_t max_tokens) {
    std::vector<Edit> edits;
    for (const StatedLimits::Limit& limit : limits.limits)
        if (!(limit.plain && limit.tokens && *limit.tokens <= max_tokens))
            edits.push_back({limit.from, limit.to, std::to_string(max_tokens)});
    std::map<std::size_t, std::string> members;  // by the object that gets them
    for (const LimitPlace& place : limit_places(path, limits)) {
        if (limits.find(place.object, place.name) != nullptr ||
            limits.find(place.object, place.or_name) != nullptr)
            continue;
        const std::string member = fmt::format("\"{}\":{}", place.name, max_tokens);
        const auto* object = limits.find(place.object);
        std::string& added =
            members[object != nullptr ? object->from : limits.objects.front().from];
        added += (added.empty() ? "" : ",") +
                 (object != nullptr ? member : fmt::format("\"{}\":{{{}}}", place.object, member));
    }
    for (const auto& [at, added] : members) edits.push_back(insertion(body, at, added));
    return edited(body, std::move(edits));
}

}  // namespace fullstop::gateway
