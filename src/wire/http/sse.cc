// The common case — a whole `data:` line within one read — is handed on as a view into that read,
// without a copy.
#include "wire/http/sse.h"

#include "wire/limits.h"

namespace fullstop::wire {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Offset of the first \r or \n, npos when there is none. Two memchr passes are faster than a byte
/// loop here.
std::size_t line_end(std::string_view text) {
    const auto lf = text.find('\n');
    const auto cr = text.substr(0, lf).find('\r');
    return cr != std::string_view::npos ? cr : lf;
}

}  // namespace

void SseReader::feed(std::string_view piece, SseSink& sink) {
    while (!piece.empty() && !overflowed_) {
        if (skip_lf_) {
            skip_lf_ = false;
            if (piece.front() == '\n') {
                piece.remove_prefix(1);
                continue;
            }
        }
        const auto end = line_end(piece);
        if (end == std::string_view::npos) {
            partial_.append(piece);
            overflowed_ = partial_.size() > kMaxEventBytes;
            break;
        }
        skip_lf_ = piece[end] == '\r';
        if (partial_.empty()) {
            line(piece.substr(0, end), sink);
        } else {
            whole_.swap(partial_);
            partial_.clear();
            whole_.append(piece.substr(0, end));
            line(whole_, sink);
        }
        piece.remove_prefix(end + 1);
    }
    if (in_view_) {
        data_.assign(view_);
        in_view_ = false;
    }
}

void SseReader::finish(SseSink& sink) {
    whole_.swap(partial_);
    partial_.clear();
    if (!whole_.empty()) line(whole_, sink);
    dispatch(sink);
}

void SseReader::line(std::string_view text, SseSink& sink) {
    if (!started_) {
        started_ = true;
        if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    }
    if (text.empty()) return dispatch(sink);
    if (text.front() == ':') return sink.on_comment(text.substr(1));
    const auto colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    std::string_view value =
        colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "data") {
        if (!has_data_) {
            has_data_ = in_view_ = true;
            view_ = value;
            return;
        }
        if (in_view_) data_.assign(view_);
        in_view_ = false;
        data_.append("\n").append(value);
        overflowed_ = data_.size() > kMaxEventBytes;
    } else if (name == "event") {
        name_ = value;
    } else if (name != "id" && name != "retry") {
        sink.on_unknown_field(name, value, text);
    }
}

void SseReader::dispatch(SseSink& sink) {
    if (has_data_) {
        has_data_ = false;
        const std::string_view data = in_view_ ? view_ : std::string_view(data_);
        in_view_ = false;
        sink.on_event(name_, data);
    }
    name_.clear();
}

}  // namespace fullstop::wire
