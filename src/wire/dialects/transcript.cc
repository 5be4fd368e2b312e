// The first choice writes straight into the record; further ones (`n` > 1) are told apart and
// joined in their order.
#include "wire/dialects/transcript.h"

#include <algorithm>

#include "base/utf8.h"
#include "wire/limits.h"

namespace fullstop::wire {
namespace {

/// A server that cuts its text by UTF-16 units sends the two halves of one character in two events
/// (three bytes each, see json.cc); side by side they are the character again.
void join_surrogates(std::string& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    std::string joined;
    std::size_t copied = 0;
    for (std::size_t at = text.find('\xED'); at != std::string::npos && at + 5 < text.size();
         at = text.find('\xED', at + 1)) {
        if ((byte(at + 1) & 0xF0) != 0xA0 || byte(at + 3) != 0xED || (byte(at + 4) & 0xF0) != 0xB0)
            continue;
        const unsigned high = (byte(at + 1) & 0x0FU) << 6 | (byte(at + 2) & 0x3FU),
                       low = (byte(at + 4) & 0x0FU) << 6 | (byte(at + 5) & 0x3FU);
        const unsigned code = 0x10000 + (high << 10) + low;
        joined.append(text, copied, at - copied);
        base::append_character(joined, code);
        copied = at + 6;
        at += 5;
    }
    if (copied > 0) text = joined.append(text, copied);
}

std::string_view word(std::string_view text) { return base::front_characters(text, kMaxWordBytes); }

}  // namespace

void Transcript::begin_event(base::Duration at) {
    at_ = at;
    event_has_text_ = event_has_answer_ = false;
}

void Transcript::end_event() {
    if (!event_has_text_) return;
    auto& timeline = record_->timeline;
    ++record_->text_events;
    if (!timeline.last_token)
        timeline.first_token = at_;
    else if (timeline.gaps.size() < kMaxTextEvents)
        timeline.gaps.push_back(at_ - *timeline.last_token);
    else
        full_ = "the answer is larger than 262144 events";
    timeline.last_token = at_;
    if (event_has_answer_ && !timeline.first_answer) timeline.first_answer = at_;
}

Transcript::Choice* Transcript::choice(std::size_t index) {
    if (index >= kMaxChoices) {
        ++record_->unread_events;
        return nullptr;
    }
    if (index >= choices_.size()) choices_.resize(index + 1);
    return &choices_[index];
}

std::string_view Transcript::fitting(std::string_view piece) {
    const std::string_view fits = piece.substr(0, kMaxTextBytes - kept_);
    if (fits.size() < piece.size()) full_ = "the answer is larger than 4 MiB of text";
    kept_ += fits.size();
    return fits;
}

void Transcript::content(std::size_t index, std::string_view piece) {
    if (piece.empty()) return;
    Choice* at = choice(index);
    if (!at) return;
    saw_text();
    piece = fitting(piece);
    std::string& text = index == 0 ? record_->text : at->text;
    const std::size_t before = text.size();
    const bool moved =
        at->splitter.feed(piece, index == 0 ? record_->reasoning : at->reasoning, text);
    if (moved) record_->timeline.first_answer.reset();
    if (moved ? !text.empty() : text.size() > before) event_has_answer_ = true;
}

void Transcript::whole_content(std::size_t index, std::string_view all) {
    Choice* at = choice(index);
    if (!at) return;
    const std::size_t known = std::min(at->whole_bytes, all.size());
    at->whole_bytes = std::max(at->whole_bytes, all.size());
    content(index, all.substr(known));
}

void Transcript::reasoning(std::size_t index, std::string_view piece) {
    if (piece.empty()) return;
    if (Choice* at = choice(index)) {
        (index == 0 ? record_->reasoning : at->reasoning).append(fitting(piece));
        saw_text();
    }
}

void Transcript::tool_call(std::size_t index, std::string_view piece) {
    if (piece.empty()) return;
    if (Choice* at = choice(index)) {
        (index == 0 ? record_->tool_calls : at->tool_calls).append(fitting(piece));
        saw_text();
        event_has_answer_ = true;
    }
}

void Transcript::finish(std::size_t index, JsonValue word) {
    finish(index, word.is_object() ? word["type"].string() : word.verbatim());
}

void Transcript::finish(std::size_t index, std::string_view reason) {
    if (reason.empty() || reason == "null") return;
    Choice* at = choice(index);
    if (!at) return;
    at->finish = word(reason);
    record_->finish_events = std::max(record_->finish_events, ++at->finish_events);
    record_->end.reason = at->finish;
    record_->timeline.finish = at_;
}

void Transcript::terminator() {
    const bool finished =
        !choices_.empty() &&
        std::ranges::none_of(choices_, [](const Choice& each) { return each.finish.empty(); });
    if (own_end_ == OwnEnd::kNone)
        own_end_ = record_->end.error ? OwnEnd::kBehindAnError : OwnEnd::kWithoutReason;
    if (own_end_ == OwnEnd::kWithoutReason && finished && !record_->end.error)
        own_end_ = OwnEnd::kTrue;
    record_->end.terminator = true;
    record_->timeline.terminator = at_;
}

void Transcript::error(answer::ServerError error) {
    for (std::string* text : {&error.code, &error.type, &error.text})
        text->resize(base::front_characters(*text, kMaxErrorTextBytes).size());
    if (failed()) {
        error.status = record_->status;
        error.where = answer::ErrorPlace::kHttp;
    }
    if (!record_->end.error) record_->end.error = error;
    if (record_->server_errors.size() < kMaxServerErrors)
        record_->server_errors.push_back(std::move(error));
}

void Transcript::detail(std::string_view key, JsonValue value) {
    const std::string_view text = value.verbatim();
    if (!text.empty()) record_->stop_details[std::string(key)] = word(text);
}

void Transcript::close(bool whole) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        Choice& at = choices_[i];
        at.splitter.finish(i == 0 ? record_->reasoning : at.reasoning,
                           i == 0 ? record_->text : at.text);
        if (i == 0) continue;
        record_->text += at.text;
        record_->reasoning += at.reasoning;
        record_->tool_calls += at.tool_calls;
    }
    for (std::string* text : {&record_->text, &record_->reasoning, &record_->tool_calls})
        join_surrogates(*text);
    for (std::string* text : {&record_->response_id, &record_->response_model})
        text->resize(word(*text).size());
    if (record_->fullstop_cause)
        record_->fullstop_cause = std::string(word(*record_->fullstop_cause));
    name_choices();
    using TokenFact = answer::Fact<base::Tokens>;
    auto& timeline = record_->timeline;
    if (whole) {
        record_->counted_tokens = TokenFact::unavailable("one body held the whole answer");
        timeline.first_token = timeline.first_answer = timeline.last_token = std::nullopt;
    } else if (record_->text_events > 0) {
        record_->counted_tokens = TokenFact::measured(
            {record_->text_events}, "events with text; one event may hold several tokens");
    }
}

/// With several choices each has an end of its own, and one of them may be missing.
void Transcript::name_choices() {
    if (choices_.size() < 2) return;
    for (std::size_t i = 0; i < choices_.size(); ++i)
        record_->stop_details["finish_reason[" + std::to_string(i) + "]"] =
            choices_[i].finish.empty() ? "null" : choices_[i].finish;
}

}  // namespace fullstop::wire
