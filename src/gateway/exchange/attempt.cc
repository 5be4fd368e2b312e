// The body's framing and the reader of the copy are fed side by side; here are the reasons for
// which a response is not relayed at all.
#include "gateway/exchange/attempt.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "gateway/exchange/response_head.h"
#include "gateway/limits.h"

namespace fullstop::gateway {

Attempt::Attempt(UpstreamId id, const Upstream& upstream, std::int64_t need, bool others, Asks asks,
                 std::optional<std::int64_t> limit)
    : asks_(asks),
      upstream_(id),
      url_(upstream.options().url),
      name_(upstream.name()),
      need_(need),
      others_(others) {
    FULLSTOP_ASSERT(asks != Asks::kNothing, "an attempt asks for something");
    if (limit && *limit < kMostTokens)
        record_.requested_max_tokens =
            answer::Fact<base::Tokens>::measured({*limit}, "the limit in the request");
    reader_ = std::make_unique<wire::AnswerReader>(record_);
}

void Attempt::leave() {
    asks_ = Asks::kNothing;
    upstream_ = 0;
    name_.clear();
}

void Attempt::ask_for_the_rest() {
    FULLSTOP_ASSERT(asks_ == Asks::kTemplate, "the template is asked for first");
    asks_ = Asks::kAnswer;
    framing_ = {};
}

void Attempt::stand_for(std::string name, answer::Record record) {
    asks_ = Asks::kNothing;
    name_ = std::move(name);
    record_ = std::move(record);
}

std::string_view Attempt::next(std::string_view& bytes, bool in_head) {
    const std::string_view before = bytes;
    const std::string_view piece = framing_.next(bytes);
    if (in_head) raw_head_.append(before.substr(0, before.size() - bytes.size()));
    return piece;
}

std::optional<std::pair<Stop, std::string>> Attempt::unfit(bool answer) const {
    if (holds_control_bytes(raw_head_))
        return std::pair(Stop::kMalformed,
                         "the upstream's response head holds a NUL or a bare carriage return");
    if (answer && head().status < 300 && is_encoded(head()))
        return std::pair(
            Stop::kEncoded,
            fmt::format("the upstream answered with content-encoding {}, although none was asked "
                        "for: how such an answer ends cannot be read",
                        content_encoding(head())));
    if (untrusted_length(head()))
        return std::pair(Stop::kMalformed, "the upstream's content-length cannot be trusted");
    if (head().status == 101)
        return std::pair(Stop::kMalformed, "the upstream switched protocols unasked");
    return std::nullopt;
}

void Attempt::read(std::string_view bytes, base::Duration at) {
    reader_->bytes(bytes, at, answer::StampClock::kUserSpace);
    record_.capture.bytes.clear();
    record_.capture.arrivals.clear();
    record_.text.clear();
    record_.reasoning.clear();
    record_.tool_calls.clear();
    record_.timeline.gaps.clear();
}

void Attempt::read_end(wire::StreamEnd::Kind kind, base::Duration at) {
    if (reader_) reader_->end({kind}, at);
}

std::optional<answer::Api> Attempt::dialect() const {
    return reader_ ? reader_->dialect() : std::nullopt;
}

}  // namespace fullstop::gateway
