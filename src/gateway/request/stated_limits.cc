// Each path is served by few kinds of servers, and each kind looks in one place.
#include "gateway/request/stated_limits.h"

#include <algorithm>
#include <initializer_list>

namespace fullstop::gateway {
namespace {

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
    return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

}  // namespace

const StatedLimits::Limit* StatedLimits::find(std::string_view object,
                                              std::string_view name) const {
    const auto found = std::ranges::find_if(
        limits, [&](const Limit& each) { return each.object == object && each.name == name; });
    return found == limits.end() ? nullptr : &*found;
}

const StatedLimits::Object* StatedLimits::find(std::string_view object) const {
    const auto found = std::ranges::find(objects, object, &Object::name);
    return found == objects.end() ? nullptr : &*found;
}

std::vector<LimitPlace> limit_places(std::string_view path, const StatedLimits& limits) {
    if (ends_with_any(path, {"/api/chat", "/api/generate"})) return {{"options", "num_predict"}};
    if (ends_with_any(path, {"/api/v1/generate", "/api/latest/generate", "/generate/stream"}))
        return {{"", "max_length"}};  // KoboldCpp
    if (ends_with_any(path, {"/generate_stream", "/generate"})) {
        std::vector<LimitPlace> out = {{"parameters", "max_new_tokens"}};
        if (limits.sglang) out.push_back({"sampling_params", "max_new_tokens"});
        return out;
    }
    if (path.ends_with("/responses")) return {{"", "max_output_tokens"}};
    if (path.ends_with("/chat/completions"))
        return {{"", "max_tokens", "max_completion_tokens"}};  // some refuse both at once
    if (ends_with_any(path, {"/completions", "/messages"})) return {{"", "max_tokens"}};
    return {{"", "n_predict"}};
}

std::optional<std::int64_t> StatedLimits::max_tokens(std::string_view path) const {
    const std::vector<LimitPlace> places = limit_places(path, *this);
    std::optional<std::int64_t> most;
    for (const StatedLimits::Limit& limit : limits) {
        if (limit.null ||
            std::ranges::find(places, limit.object, &LimitPlace::object) == places.end())
            continue;
        if (!limit.tokens) return std::nullopt;  // "no limit", in some reader's eyes
        most = std::max(most.value_or(0), *limit.tokens);
    }
    return most;
}

bool StatedLimits::limit_everywhere(std::string_view path) const {
    const auto holds = [](const StatedLimits::Limit* limit) {
        return limit != nullptr && limit->tokens;
    };
    return std::ranges::all_of(limit_places(path, *this), [&](const LimitPlace& place) {
        return holds(find(place.object, place.name)) || holds(find(place.object, place.or_name));
    });
}

}  // namespace fullstop::gateway
