// A value is known by the keys above it, of which a few levels are kept. A member that decides
// something and stands twice is refused: some readers take the first, some the last.
#include "gateway/request/request_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/utf8.h"
#include "gateway/limits.h"
#include "gateway/request/plain_chat.h"
#include "wire/json/json_walk.h"

namespace fullstop::gateway {
namespace {

using Kind = wire::JsonNode::Kind;

/// Members whose text becomes part of the prompt, in the dialects known.
constexpr std::array<std::string_view, 12> kPromptMembers = {
    "messages", "prompt", "system",      "tools",     "input_prefix", "input_suffix",
    "inputs",   "input",  "input_extra", "functions", "instructions", "input_ids"};
constexpr std::array<std::string_view, 3> kSessionMembers = {"prompt_cache_key", "user",
                                                             "session_id"};
/// How many answers one request asks for.
constexpr std::array<std::string_view, 3> kAnswersMembers = {"n", "n_cmpl", "best_of"};
constexpr std::array<std::string_view, 3> kSglangMembers = {"sampling_params", "text", "input_ids"};
constexpr std::array<std::string_view, 3> kOtherMembers = {"model", "stream", "fullstop"};
/// A month: no answer takes longer, and no arithmetic overflows.
constexpr double kLongestWishMs = 30.0 * 24 * 3600 * 1000;
/// How much of a session's name or of the first message counts.
constexpr std::size_t kPrefixBytes = 512;

template <class Names>
std::string_view one_of(const Names& names, std::string_view word) {
    const auto found = std::ranges::find(names, word);
    return found == names.end() ? std::string_view() : std::string_view(*found);
}

std::optional<double> number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

/// A count as some reader may understand it: texts of digits pass for numbers with many. Rounded
/// up, and clamped.
std::optional<std::int64_t> count_of(const wire::WalkedValue& value, std::int64_t most) {
    if (value.kind != Kind::kNumber && value.kind != Kind::kString) return std::nullopt;
    const auto given = number(value.text);
    if (!given || !(*given > 0)) return std::nullopt;
    return *given >= static_cast<double>(most) ? most
                                               : static_cast<std::int64_t>(std::ceil(*given));
}

class Reading : public wire::JsonListener {
public:
    void hear(const wire::WalkedValue& value) override {
        const auto depth = static_cast<std::size_t>(value.depth);
        if (depth < above_.size())
            above_[depth] = {value.key, value.depth > 0 ? above_[depth - 1].elements++ : 0, 0};
        if (depth == 0 && value.kind == Kind::kObject)
            body.limits.objects.push_back({.name = "", .from = value.from, .object = true});
        if (depth >= 1) chat_.hear(value, above_[1].key);
        if (depth == 1) hear_member(value);
        if (depth == 2) hear_second(value);
        if (depth >= 1 && !one_of(kPromptMembers, above_[1].key).empty()) hear_prompt(value);
    }

    RequestBody body;
    std::string problem;  ///< a sentence; "": none

    void finish() {
        body.answers = std::min(body.answers * std::max<std::int64_t>(1, prompts_), kMostAnswers);
        if (body.prefix.empty()) body.prefix = system_.empty() ? prompt_ : system_;
        body.plain_chat = chat_.plain();
    }

private:
    void once(std::string_view object, std::string_view name) {
        if (!seen_.emplace(object, name).second && problem.empty())
            problem = fmt::format(
                "the body names '{}{}{}' more than once, which servers read in different ways",
                object, object.empty() ? "" : ".", name);
    }

    void hear_limit(std::string_view object, std::string_view name,
                    const wire::WalkedValue& value) {
        once(object, name);
        if (value.kind == Kind::kArray || value.kind == Kind::kObject)
            problem = fmt::format("'{}' must be a number of tokens", name);
        const bool plain = value.kind == Kind::kNumber &&
                           value.text.find_first_not_of("0123456789") == std::string_view::npos &&
                           value.text != "0";
        body.limits.limits.push_back({.object = object,
                                      .name = name,
                                      .from = value.from,
                                      .to = value.to,
                                      .tokens = count_of(value, kMostTokens),
                                      .plain = plain,
                                      .null = value.kind == Kind::kNull});
    }

    void hear_member(const wire::WalkedValue& value) {
        if (!one_of(kSglangMembers, value.key).empty()) body.limits.sglang = true;
        if (const auto name = one_of(kLimitMembers, value.key); !name.empty())
            return hear_limit("", name, value);
        if (const auto name = one_of(kLimitObjects, value.key); !name.empty()) {
            once("", name);
            return body.limits.objects.push_back(
                {.name = name, .from = value.from, .object = value.kind == Kind::kObject});
        }
        if (const auto name = one_of(kAnswersMembers, value.key); !name.empty())
            return hear_answers("", name, value);
        if (const auto name = one_of(kSessionMembers, value.key);
            !name.empty() && value.kind == Kind::kString) {
            if (body.session.empty()) body.session = value.text.substr(0, kPrefixBytes);
            return;
        }
        if (const auto name = one_of(kPromptMembers, value.key); !name.empty()) once("", name);
        const auto name = one_of(kOtherMembers, value.key);
        if (name.empty()) return;
        once("", name);
        if (name == "model" && value.kind == Kind::kString)
            body.model = base::front_characters(value.text, kMaxModelBytes);
        if (name == "stream" && value.kind == Kind::kBool) body.stream = value.text == "true";
    }

    void hear_answers(std::string_view object, std::string_view name,
                      const wire::WalkedValue& value) {
        once(object, name);
        body.answers = std::max(body.answers, count_of(value, kMostAnswers).value_or(1));
    }

    void hear_second(const wire::WalkedValue& value) {
        const std::string_view above = above_[1].key;
        if (const auto object = one_of(kLimitObjects, above); !object.empty()) {
            if (const auto name = one_of(kLimitMembers, value.key); !name.empty())
                return hear_limit(object, name, value);
            if (const auto name = one_of(kAnswersMembers, value.key); !name.empty())
                return hear_answers(object, name, value);
        }
        if (above == "messages" || (above == "input" && value.kind == Kind::kObject))
            ++body.messages;
        // Several prompts in one request are several answers; numbers are the tokens of one.
        if (above == "prompt" && (value.kind == Kind::kString || value.kind == Kind::kArray))
            ++prompts_;
        if (above == "fullstop") hear_wish(value);
    }

    /// The members of `fullstop` are public, so what they cannot mean is refused.
    void hear_wish(const wire::WalkedValue& value) {
        if (value.kind == Kind::kNull) return;
        if (value.key == "deadline_ms") {
            const auto ms = value.kind == Kind::kNumber ? number(value.text) : std::nullopt;
            if (!ms || !(*ms > 0) || *ms > kLongestWishMs)
                problem = "fullstop.deadline_ms must be a number of milliseconds above 0";
            else
                body.deadline = base::from_ms(*ms);
        }
        if (value.key != "priority") return;
        if (value.kind == Kind::kString) body.priority = serving::priority_of(value.text);
        constexpr std::size_t kShown = 40;
        if (!body.priority)
            problem =
                fmt::format("fullstop.priority must be interactive, normal or batch, not '{}'",
                            base::front_characters(value.text, kShown));
    }

    void hear_prompt(const wire::WalkedValue& value) {
        if (value.kind == Kind::kNumber && value.depth <= 3) ++body.prompt_ids;
        if (value.kind != Kind::kString) return;
        const auto depth = static_cast<std::size_t>(value.depth);
        const bool listed = depth < above_.size() && above_[depth - 1].key == "images";
        if (value.text.starts_with("data:") || value.key == "data" || listed)
            ++body.images;
        else
            body.prompt_bytes += static_cast<std::int64_t>(value.bytes);
        hear_beginning(value);
    }

    /// The first message's text, whether it stands there alone or as the first of several parts.
    void hear_beginning(const wire::WalkedValue& value) {
        const auto keep = [&](std::string& where) {
            if (where.empty()) where = value.text.substr(0, kPrefixBytes);
        };
        if (value.depth == 1 && value.key == "system") keep(system_);
        if (value.depth == 1 && value.key == "prompt") keep(prompt_);
        if (above_[1].key != "messages" || value.depth < 3 || above_[2].place != 0) return;
        const bool part = value.depth == 5 && above_[3].key == "content" && above_[4].place == 0 &&
                          value.key == "text";
        if ((value.depth == 3 && value.key == "content") || part) keep(body.prefix);
    }

    struct Above {
        std::string_view key;
        std::size_t place = 0,
                    elements = 0;  ///< which of its siblings it is, how many it holds so far
    };
    std::array<Above, 6> above_{};
    std::set<std::pair<std::string_view, std::string_view>> seen_;  ///< object and member
    PlainChat chat_;
    std::int64_t prompts_ = 0;
    std::string system_, prompt_;
};

}  // namespace

std::expected<RequestBody, UnreadBody> read_body(std::string_view text) {
    Reading reading;
    const wire::WalkEnd end =
        wire::walk_json(text, {.values = kMaxRequestValues, .depth = kMaxRequestDepth}, reading);
    switch (end) {
        case wire::WalkEnd::kTooManyValues:
            return std::unexpected(
                UnreadBody{.message = fmt::format("the body holds more than {} JSON values",
                                                  kMaxRequestValues)});
        case wire::WalkEnd::kTooDeep:
            return std::unexpected(
                UnreadBody{.message = fmt::format("the body nests more than {} arrays and objects",
                                                  kMaxRequestDepth)});
        case wire::WalkEnd::kNoJson: break;
        case wire::WalkEnd::kWhole:
            if (reading.body.limits.objects.empty()) break;
            if (!reading.problem.empty())
                return std::unexpected(UnreadBody{.message = std::move(reading.problem)});
            reading.finish();
            return std::move(reading.body);
    }
    return std::unexpected(UnreadBody{.no_json = true,
                                      .message = "the body is not a JSON object (RFC 8259: UTF-8, "
                                                 "no byte order mark, nothing after it)"});
}

}  // namespace fullstop::gateway
