// Decides from the first few bytes. JSON is first taken for JSON lines: only when the first line is
// no JSON text of its own (a pretty-printed body) the rest is waited for.
#include "wire/body_reader.h"

#include <algorithm>
#include <array>

#include "wire/limits.h"

namespace fullstop::wire {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// Fields that open an SSE body whatever the content type says. `error` is an old llama.cpp's.
constexpr std::array<std::string_view, 5> kFields = {"data", "event", "id", "retry", "error"};
/// Long enough for the longest of them with its colon.
constexpr std::size_t kDecideBytes = 8;

BodyForm form_of(std::string_view start, bool sse_announced) {
    if (start.empty()) return BodyForm::kOther;
    if (start.front() == '{' || start.front() == '[') return BodyForm::kJson;
    if (start.front() == ':') return BodyForm::kSse;
    const std::string_view name = start.substr(0, start.find_first_of(":\r\n"));
    const bool known = std::ranges::find(kFields, name) != kFields.end() &&
                       name.size() < start.size() && start[name.size()] == ':';
    return known || (sse_announced && start.front() != '<') ? BodyForm::kSse : BodyForm::kOther;
}

}  // namespace

void BodyReader::feed(std::string_view piece, BodySink& sink) {
    if (finished_ || overflowed()) return;
    if (form_ == BodyForm::kUndecided) {
        start_.append(piece);
        decide(false, sink);
    } else {
        take(piece, sink);
    }
}

void BodyReader::decide(bool last, BodySink& sink) {
    std::string_view start = start_;
    if (start.starts_with(kByteOrderMark)) start.remove_prefix(kByteOrderMark.size());
    start.remove_prefix(std::min(start.size(), start.find_first_not_of(" \t\r\n")));
    const bool clear =
        !start.empty() && (start.front() == '{' || start.front() == '[' || start.front() == ':');
    if (!last && !clear && start.size() < kDecideBytes) {
        overflowed_ = start_.size() > kMaxEventBytes;
        return;
    }
    form_ = form_of(start, content_type_.find("event-stream") != std::string::npos);
    if (form_ == BodyForm::kJson) form_ = BodyForm::kJsonLines;
    const std::string held(start);
    start_.clear();
    if (!held.empty()) take(held, sink);
}

void BodyReader::take(std::string_view piece, BodySink& sink) {
    switch (form_) {
        case BodyForm::kSse: sse_.feed(piece, sink); break;
        case BodyForm::kJsonLines: take_lines(piece, sink); break;
        case BodyForm::kJson:
            start_.append(piece);
            overflowed_ = start_.size() > kMaxEventBytes;
            break;
        case BodyForm::kOther:
            if (start_.size() < kMaxErrorTextBytes)
                start_.append(piece.substr(0, kMaxErrorTextBytes - start_.size()));
            break;
        case BodyForm::kUndecided: break;
    }
}

void BodyReader::take_lines(std::string_view piece, BodySink& sink) {
    while (!piece.empty()) {
        const auto end = piece.find('\n');
        if (end == std::string_view::npos) {
            start_.append(piece);
            overflowed_ = start_.size() > kMaxEventBytes;
            return;
        }
        if (start_.empty()) {
            json_line(piece.substr(0, end + 1), sink);
        } else {
            line_.swap(start_);
            start_.clear();
            line_.append(piece.substr(0, end + 1));
            json_line(line_, sink);
        }
        piece.remove_prefix(end + 1);
        if (form_ == BodyForm::kJson) return take(piece, sink);
    }
}

void BodyReader::json_line(std::string_view line, BodySink& sink) {
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    const bool understood = sink.on_json(line);
    if (!understood && first_line_) {
        form_ = BodyForm::kJson;
        start_.assign(line);
    } else if (!understood) {
        sink.on_unread(line);
    }
    first_line_ = false;
}

void BodyReader::finish(BodySink& sink) {
    if (finished_) return;
    if (form_ == BodyForm::kUndecided && !start_.empty()) decide(true, sink);
    finished_ = true;
    if (form_ == BodyForm::kSse) sse_.finish(sink);
    if (start_.empty()) return;
    if (form_ == BodyForm::kOther || !sink.on_json(start_)) sink.on_unread(start_);
}

}  // namespace fullstop::wire
