// Three ways to cut a body: into lines that may be `data: [DONE]`, into whole events, into whole
// lines.
#include "gateway/ending/held_end.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fullstop::gateway {
namespace {

constexpr std::string_view kDone = "[DONE]", kData = "data:", kBlanks = " \t";
constexpr std::array<std::string_view, 3> kEnds = {"message_stop", "response.completed",
                                                   "response.incomplete"};
/// A line of blanks longer than this is no end.
constexpr std::size_t kLongestDoneLine = 64;

std::string_view without_blanks(std::string_view text) {
    return text.substr(std::min(text.size(), text.find_first_not_of(kBlanks)));
}

/// Both are the same as far as both go.
bool agree(std::string_view a, std::string_view b) {
    const std::size_t both = std::min(a.size(), b.size());
    return a.substr(0, both) == b.substr(0, both);
}

/// Whether a line, of which so much is known, may be or become `data: [DONE]`.
bool may_be_done(std::string_view line) {
    if (line.size() > kLongestDoneLine || !agree(line, kData)) return false;
    const std::string_view word = without_blanks(line.substr(std::min(line.size(), kData.size())));
    if (!agree(word, kDone)) return false;
    return word.size() <= kDone.size() ||
           without_blanks(word.substr(kDone.size())).find_first_not_of("\r\n") ==
               std::string_view::npos;
}

struct Event {
    std::string name, data;
};

Event read(std::string_view text) {
    Event out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
        const std::string_view line = text.substr(0, end);
        if (line.starts_with(kData))
            out.data.append(out.data.empty() ? "" : "\n")
                .append(without_blanks(line.substr(kData.size())));
        if (line.starts_with("event:")) out.name = without_blanks(line.substr(6));
        text.remove_prefix(std::min(text.size(), end + 1));
    }
    return out;
}

bool is_end_word(std::string_view word) { return std::ranges::find(kEnds, word) != kEnds.end(); }

}  // namespace

std::string HeldEnd::pass(std::string_view body) {
    if (!ended_) return by_ == By::kDone ? pass_lines(body) : pass_events(body);
    held_ += body;
    return {};
}

std::string HeldEnd::pass_lines(std::string_view body) {
    std::string out;
    while (!body.empty()) {
        const std::size_t end = body.find_first_of("\r\n");
        const std::string_view piece =
            body.substr(0, end == std::string_view::npos ? end : end + 1);
        body.remove_prefix(piece.size());
        if (!inside_line_) held_ += piece;
        if (!inside_line_ && may_be_done(held_)) {
            ended_ = end != std::string_view::npos && held_.find(kDone) != std::string::npos;
            if (ended_) return held_ += body, out;
            if (end == std::string_view::npos) return out;
        }
        inside_line_ ? out += piece : out += std::exchange(held_, {});
        inside_line_ = end == std::string_view::npos;
    }
    return out;
}

std::string HeldEnd::pass_events(std::string_view body) {
    held_ += body;
    std::size_t event = 0;
    while (true) {
        const std::size_t end = held_.find_first_of(by_ == By::kLine ? "\n" : "\r\n", search_);
        search_ = std::min(end, held_.size());
        if (end == std::string::npos) break;
        const bool empty = end == line_, carriage = held_[end] == '\r';
        if (carriage && !empty && end + 1 == held_.size()) break;  // a line feed may belong to it
        line_ = search_ =
            end + (carriage && end + 1 < held_.size() && held_[end + 1] == '\n' ? 2 : 1);
        if (by_ == By::kEventType && !empty) continue;
        ended_ = is_end(std::string_view(held_).substr(event, line_ - event));
        if (ended_) break;
        event = line_;
    }
    std::string out = held_.substr(0, event);
    held_.erase(0, event);
    line_ -= event, search_ -= event;
    return out;
}

bool HeldEnd::is_end(std::string_view event) {
    if (by_ == By::kLine) return json_.read(event)["done"].is_true();
    const auto [name, data] = read(event);
    return is_end_word(name) || data == kDone || is_end_word(json_.read(data)["type"].string());
}

std::string HeldEnd::take(bool finished) {
    bool goes_on = finished;
    if (!finished && !ended_ && by_ == By::kLine) goes_on = !is_end(held_);
    if (!finished && !ended_ && by_ == By::kEventType)
        goes_on = std::ranges::none_of(
            kEnds, [&](std::string_view end) { return held_.find(end) != std::string::npos; });
    ended_ = false;
    line_ = search_ = 0;
    std::string out = std::exchange(held_, {});
    return goes_on ? out : std::string();
}

}  // namespace fullstop::gateway
