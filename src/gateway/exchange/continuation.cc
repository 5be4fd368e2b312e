// Events are cut at their empty lines; inside they are only read. The one event that is written
// anew is the first of a next server that repeats the delivered text before it goes on, as
// llama-server does; `fullstop serve` repeats nothing.
#include "gateway/exchange/continuation.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request/stated_limits.h"
#include "wire/http/response_text.h"
#include "wire/limits.h"

namespace fullstop::gateway {
namespace {

/// Length of the first event with its empty line; 0: it has not ended.
std::size_t event_length(std::string_view bytes) {
    for (std::size_t line = 0; line < bytes.size();) {
        const std::size_t end = bytes.find('\n', line);
        if (end == std::string_view::npos) return 0;
        const bool empty = end == line || (end == line + 1 && bytes[line] == '\r');
        if (empty) return end + 1;
        line = end + 1;
    }
    return 0;
}

std::string data_of(std::string_view event) {
    std::string out;
    for (std::size_t line = 0; line < event.size();) {
        const std::size_t end = std::min(event.find('\n', line), event.size());
        std::string_view text = event.substr(line, end - line);
        if (text.ends_with('\r')) text.remove_suffix(1);
        if (text.starts_with("data:")) {
            text.remove_prefix(text.starts_with("data: ") ? 6 : 5);
            if (!out.empty()) out += '\n';
            out += text;
        }
        line = end + 1;
    }
    return out;
}

boost::json::value* member(boost::json::value* of, const char* name) {
    boost::json::object* object = of == nullptr ? nullptr : of->if_object();
    return object == nullptr ? nullptr : object->if_contains(name);
}

/// The same event with other text in its first choice. Absent when this stricter reader cannot read
/// it, or reads it otherwise: NaN, half a surrogate pair, a member that stands twice.
std::optional<std::string> with_content(std::string_view data, std::string_view content) {
    boost::system::error_code error;
    boost::json::value event =
        boost::json::parse(data, error, {}, {.max_depth = wire::kMaxJsonDepth});
    boost::json::value* choices = error ? nullptr : member(&event, "choices");
    boost::json::array* all = choices == nullptr ? nullptr : choices->if_array();
    boost::json::value* delta =
        all == nullptr || all->empty() ? nullptr : member(&all->front(), "delta");
    if (delta == nullptr || !delta->is_object()) return std::nullopt;
    delta->get_object()["content"] = boost::json::string_view(content.data(), content.size());
    return wire::sse_event(boost::json::serialize(event));
}

/// What is no number of tokens (none, below 1, beyond every answer) asks for no limit, and stays as
/// its client wrote it.
void lower_limits(boost::json::object& body, std::int64_t by) {
    constexpr double kBeyondEveryAnswer = 0x1p53;
    for (const char* name : kLimitMembers) {
        boost::json::value* limit = body.if_contains(name);
        if (limit == nullptr || !limit->is_number()) continue;
        const auto asked = limit->to_number<double>();
        if (asked >= 1 && asked <= kBeyondEveryAnswer)
            *limit = std::max<std::int64_t>(1, static_cast<std::int64_t>(asked) - by);
    }
}

}  // namespace

std::unique_ptr<Continuation> Continuation::of(const Work& work, const std::string& body,
                                               std::optional<std::int64_t> max_tokens) {
    if (!work.plain_chat || body.size() > kMaxContinuedRequestBytes) return nullptr;
    if (max_tokens == kMostTokens) max_tokens.reset();  // it limits nothing
    return std::unique_ptr<Continuation>(new Continuation(body, max_tokens));
}

std::string Continuation::pass(std::string_view body) {
    std::string out;
    held_ += body;
    std::size_t done = 0;
    while (failure_.empty()) {
        const std::size_t length = event_length(std::string_view(held_).substr(done));
        if (length == 0) break;
        event(std::string_view(held_).substr(done, length), out);
        done += length;
    }
    held_.erase(0, done);
    if (held_.size() > kMaxHeldEventBytes && obstacle_.empty())
        obstacle_ = "one event is larger than the gateway holds back";
    if (!obstacle_.empty()) out += std::exchange(held_, {});
    return out;
}

void Continuation::event(std::string_view bytes, std::string& out) {
    const std::string data = data_of(bytes);
    if (data.empty() || !obstacle_.empty()) {
        out += bytes;
    } else if (data == "[DONE]") {
        finished_ = true;
        out += bytes;
    } else {
        read(data, bytes, out);
    }
}

void Continuation::read(std::string_view data, std::string_view bytes, std::string& out) {
    const wire::JsonValue event = json_.read(data);
    const wire::JsonValue choice = event["choices"].first(), delta = choice["delta"];
    if (event["error"]) obstacle_ = "the server reported an error itself";
    if (choice["index"].integer().value_or(0) != 0) obstacle_ = "it has several choices";
    if (delta["tool_calls"] || delta["function_call"]) obstacle_ = "it holds a tool call";
    if (!delta["reasoning_content"].string().empty() || !delta["reasoning"].string().empty())
        obstacle_ = "it holds reasoning";
    finished_ = finished_ || !choice["finish_reason"].string().empty();
    const std::string_view content = delta["content"].string();
    if (content.empty()) {
        // The beginning of a turn that has begun long ago.
        if (!(later_ && delta["role"] && choice["finish_reason"].string().empty())) out += bytes;
        return;
    }
    const std::string text(content);  // what follows reads again
    if (!repetition_.empty() && take_out_repetition(text, data, out)) return;
    ++tokens_;
    text_ += text;
    if (text_.size() > kMaxContinuedBytes)
        obstacle_ = "it is longer than what the gateway remembers";
    out += bytes;
}

/// True when the event is dealt with.
bool Continuation::take_out_repetition(std::string_view content, std::string_view data,
                                       std::string& out) {
    if (repetition_.starts_with(content)) {
        repetition_.erase(0, content.size());
        begins_ = false;
        return true;
    }
    if (content.starts_with(repetition_)) {
        const std::string_view rest = content.substr(repetition_.size());
        repetition_.clear();
        const auto event = with_content(data, rest);
        if (!event) {
            failure_ =
                "the first event of the server that continues the answer cannot be read without "
                "doubt";
            return true;
        }
        ++tokens_;
        text_ += rest;
        out += *event;
        return true;
    }
    // A server that repeats nothing shows it in its first text; one that stops in the middle of
    // repeating does neither.
    const auto alike = std::ranges::mismatch(repetition_, content).in1 - repetition_.begin();
    repetition_.clear();
    if (begins_ && std::cmp_less(alike, kLeastContinuedBytes)) return false;
    failure_ = "the server that continues the answer repeats the delivered text with differences";
    return true;
}

std::optional<std::string> Continuation::obstacle() const {
    if (!obstacle_.empty()) return obstacle_;
    if (finished_) return "it had finished";
    if (text_.size() < kLeastContinuedBytes)
        return "too little of it was delivered to tell a repetition from a continuation";
    if (!wire::is_utf8(text_) || text_.ends_with("\xEF\xBF\xBD"))
        return "it ended inside a character";
    if (const auto left = tokens_left(); left && *left < 1)
        return "it had reached its limit on tokens";
    if (!with_delivered()) return "its request cannot be read without doubt";
    return std::nullopt;
}

std::optional<std::int64_t> Continuation::tokens_left() const {
    return max_tokens_ ? std::optional(*max_tokens_ - tokens_) : std::nullopt;
}

std::string Continuation::template_question() const {
    auto body = with_delivered();
    FULLSTOP_ASSERT(body, "obstacle() has read the same text");
    return boost::json::serialize(
        boost::json::object{{"messages", std::move((*body)["messages"])}});
}

bool Continuation::template_holds(std::string_view reply_body) const {
    wire::JsonReader reader;
    return reader.read(reply_body)["prompt"].string().ends_with(text_);
}

void Continuation::begin_next() {
    held_.clear();
    repetition_ = text_;
    later_ = begins_ = true;
    failure_.clear();
}

/// Absent when this stricter reader cannot read it: half a surrogate pair.
std::optional<boost::json::object> Continuation::with_delivered() const {
    boost::system::error_code error;
    boost::json::value body =
        boost::json::parse(body_, error, {}, {.max_depth = kMaxRequestDepth + 1});
    boost::json::value* messages = error ? nullptr : member(&body, "messages");
    if (messages == nullptr || !messages->is_array()) return std::nullopt;
    messages->get_array().push_back(boost::json::object{{"role", "assistant"}, {"content", text_}});
    return std::move(body.get_object());
}

std::string Continuation::request_body() const {
    auto body = with_delivered();
    FULLSTOP_ASSERT(body, "obstacle() has read the same text");
    lower_limits(*body, tokens_);
    return boost::json::serialize(*body);
}

}  // namespace fullstop::gateway
