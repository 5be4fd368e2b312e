// In doubt a request asks for more: a member that stands twice counts as the worse of the two.
#include "gateway/request/plain_chat.h"

#include <algorithm>
#include <array>

namespace fullstop::gateway {
namespace {

using Kind = wire::JsonNode::Kind;

/// Members of a request that ask for more than text, or for text of a form whose state would be
/// lost with the server.
constexpr std::array<std::string_view, 8> kMoreThanText = {
    "tools", "functions", "grammar", "json_schema",
    "audio", "logprobs",  "echo",    "continue_final_message"};

/// An array asks for nothing until an element is heard.
bool asks_for_nothing(const wire::WalkedValue& value) {
    switch (value.kind) {
        case Kind::kNull:
        case Kind::kArray: return true;
        case Kind::kBool: return value.text == "false";
        case Kind::kString: return value.bytes == 0;
        default: return false;
    }
}

}  // namespace

void PlainChat::hear(const wire::WalkedValue& value, std::string_view member) {
    if (member == "messages") return hear_messages(value);
    if (member == "response_format") return hear_format(value);
    if (member != "n" && std::ranges::find(kMoreThanText, member) == kMoreThanText.end()) return;
    const bool one = member == "n" && value.kind == Kind::kNumber && value.text == "1";
    // What lies deeper is an element: the array is not empty.
    if (value.depth > 1 || !(one || asks_for_nothing(value))) asks_more_ = true;
}

void PlainChat::hear_messages(const wire::WalkedValue& value) {
    if (value.depth == 1) is_list_ = value.kind == Kind::kArray;
    if (value.depth == 2) {
        last_is_turn_ = value.kind == Kind::kObject;
        last_is_models_ = false;
    }
    if (value.depth == 3 && value.key == "role" && value.text == "assistant")
        last_is_models_ = true;
}

void PlainChat::hear_format(const wire::WalkedValue& value) {
    if (value.depth == 1) {
        format_ = value.kind == Kind::kObject ? Format::kUntold : Format::kNone;
        if (format_ == Format::kNone && !asks_for_nothing(value)) asks_more_ = true;
    } else if (format_ == Format::kNone) {
        asks_more_ = true;
    } else if (value.depth == 2 && value.key == "type") {
        format_ = Format::kText;
        if (value.kind != Kind::kString || value.text != "text") asks_more_ = true;
    }
}

}  // namespace fullstop::gateway
