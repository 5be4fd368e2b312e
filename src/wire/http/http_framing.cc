// A hand-written state machine over RFC 9112 framing. Beast was not used: it hides the facts this
// project is about (which byte was missing, whether the last chunk came), and stops at the first
// irregularity.
#include "wire/http/http_framing.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/limits.h"

namespace fullstop::wire {
namespace {

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

bool parse_status_line(std::string_view line, ResponseHead& head) {
    if (!line.starts_with("HTTP/")) return false;
    line.remove_prefix(5);
    const auto space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space > 4) return false;
    head.version = line.substr(0, space);
    line = trim(line.substr(space));
    if (line.size() < 3) return false;
    const auto [end, error] = std::from_chars(line.data(), line.data() + 3, head.status);
    if (error != std::errc() || end != line.data() + 3 || head.status < 100) return false;
    head.phrase = trim(line.substr(3));
    return true;
}

/// The number of a chunk-size line; absent when it is none.
std::optional<std::uint64_t> chunk_size(std::string_view line) {
    line = trim(line.substr(0, line.find(';')));
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (line.empty() || error != std::errc() || end != line.data() + line.size())
        return std::nullopt;
    return size;
}

/// Position after the blank line that ends a head, searching from `from`; npos when it has not come
/// yet.
std::size_t head_end(std::string_view text, std::size_t from) {
    for (auto at = text.find('\n', from); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
        if (at + 1 < text.size() && text[at + 1] == '\n') return at + 2;
        if (at + 2 < text.size() && text[at + 1] == '\r' && text[at + 2] == '\n') return at + 3;
    }
    return std::string_view::npos;
}

}  // namespace

std::optional<ResponseHead> parse_head(std::string_view text) {
    ResponseHead head;
    const auto first = text.find('\n');
    if (!parse_status_line(trim(text.substr(0, first)), head)) return std::nullopt;
    std::string* last = nullptr;
    while (first != std::string_view::npos && !text.empty()) {
        text.remove_prefix(std::min(text.size(), text.find('\n') == std::string_view::npos
                                                     ? text.size()
                                                     : text.find('\n') + 1));
        const std::string_view line = text.substr(0, text.find('\n'));
        if (last && !line.empty() && (line.front() == ' ' || line.front() == '\t')) {
            last->append(" ").append(trim(line));  // obsolete line folding
            continue;
        }
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        auto& value = head.headers[lower(trim(line.substr(0, colon)))];
        if (!value.empty()) value += ", ";
        value += trim(line.substr(colon + 1));
        last = &value;
    }
    return head;
}

std::string_view HttpFraming::next(std::string_view& input) {
    spilled_.clear();
    while (!input.empty() && !complete()) {
        switch (state_) {
            case State::kHead:
                take_head(input);
                if (head_complete() && spilled_.empty()) return {};
                break;
            case State::kUntilClose: return std::exchange(input, {});
            case State::kSized:
            case State::kChunkBody: {
                const std::string_view piece = input.substr(
                    0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size())));
                input.remove_prefix(piece.size());
                left_ -= piece.size();
                if (left_ == 0)
                    state_ = state_ == State::kSized ? State::kComplete : State::kChunkEnd;
                return piece;
            }
            case State::kChunkLine:
                if (take_line(input, kMaxChunkLineBytes)) begin_chunk();
                break;
            case State::kChunkEnd:
                if (!take_line(input, kMaxChunkLineBytes)) break;
                state_ = State::kChunkLine;
                if (!pending_.empty()) give_up();  // more bytes than the chunk announced
                break;
            case State::kTrailer:
                if (take_line(input, kMaxHeadBytes)) {
                    if (pending_.empty()) state_ = State::kComplete;
                    pending_.clear();
                }
                break;
            case State::kComplete: break;
        }
        if (overflowed_) input = {};
        if (!spilled_.empty()) return spilled_;
    }
    return {};
}

/// The framing cannot be followed any further. What was taken for it is body after all: handed on
/// rather than lost.
void HttpFraming::give_up() {
    malformed_ = true;
    if (!head_complete()) framing_ = answer::Framing::kUntilClose;
    state_ = State::kUntilClose;
    spilled_ = std::exchange(pending_, {});
}

void HttpFraming::take_head(std::string_view& input) {
    constexpr std::string_view kStart = "HTTP/";
    const std::size_t before = pending_.size();
    pending_.append(input.substr(0, kMaxHeadBytes + 4 - std::min(before, kMaxHeadBytes)));
    const std::size_t shown = std::min(pending_.size(), kStart.size());
    if (pending_.compare(0, shown, kStart, 0, shown) != 0) {
        input.remove_prefix(pending_.size() - before);
        give_up();
        return;
    }
    const std::size_t end = head_end(pending_, before > 3 ? before - 3 : 0);
    if (end == std::string::npos) {
        input.remove_prefix(pending_.size() - before);
        overflowed_ = head_bytes_ + pending_.size() > kMaxHeadBytes;
        return;
    }
    input.remove_prefix(end - before);
    pending_.resize(end);
    head_bytes_ += end;
    auto head = parse_head(pending_);
    if (!head) {
        give_up();
        return;
    }
    pending_.clear();
    overflowed_ = head_bytes_ > kMaxHeadBytes;
    if (head->status < 200 && head->status != 101)
        return;  // interim response: the real one follows
    head_ = std::move(*head);
    begin_body();
}

void HttpFraming::begin_body() {
    const auto find = [&](const char* name) -> std::string_view {
        const auto it = head_.headers.find(name);
        return it == head_.headers.end() ? std::string_view() : std::string_view(it->second);
    };
    if (head_.status == 204 || head_.status == 304) {
        state_ = State::kComplete;
        return;
    }
    if (lower(find("transfer-encoding")).ends_with("chunked")) {
        framing_ = answer::Framing::kChunked;
        state_ = State::kChunkLine;
        return;
    }
    // Repeated equal lengths are one length; anything else cannot be trusted and leaves the end to
    // the close.
    const std::string_view all = find("content-length");
    const std::string_view length = trim(all.substr(0, all.find(',')));
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), left_);
    if (!length.empty() && error == std::errc() && end == length.data() + length.size()) {
        framing_ = answer::Framing::kContentLength;
        state_ = left_ == 0 ? State::kComplete : State::kSized;
        return;
    }
    left_ = 0;
    framing_ = answer::Framing::kUntilClose;
    state_ = State::kUntilClose;
}

/// Appends to pending_ up to the line end, which is dropped. True when the line is whole.
bool HttpFraming::take_line(std::string_view& input, std::size_t limit) {
    const auto end = input.find('\n');
    pending_.append(input.substr(0, end));
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
    if (pending_.size() > limit) {
        if (end != std::string_view::npos) pending_ += '\n';
        give_up();
        return false;
    }
    if (end == std::string_view::npos) return false;
    if (!pending_.empty() && pending_.back() == '\r') pending_.pop_back();
    return true;
}

void HttpFraming::begin_chunk() {
    const auto size = chunk_size(pending_);
    if (!size) {
        pending_ += '\n';
        give_up();
        return;
    }
    pending_.clear();
    left_ = *size;
    last_chunk_ = left_ == 0;
    state_ = last_chunk_ ? State::kTrailer : State::kChunkBody;
}

std::uint64_t HttpFraming::missing_bytes() const {
    return state_ == State::kSized || state_ == State::kChunkBody ? left_ : 0;
}

bool starts_with_chunk(std::string_view body) {
    const auto end = body.find('\n');
    return end != std::string_view::npos && end <= kMaxChunkLineBytes &&
           chunk_size(body.substr(0, end)).has_value();
}

}  // namespace fullstop::wire
