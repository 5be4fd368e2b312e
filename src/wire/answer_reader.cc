// Joins the layers: framing -> body form -> JSON event -> dialect -> Record, and weighs the end
// when it comes.
#include "wire/answer_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wire/body_reader.h"
#include "wire/dialects/dialects.h"
#include "wire/dialects/transcript.h"
#include "wire/http/http_framing.h"
#include "wire/json/json.h"
#include "wire/limits.h"
#include "wire/stream_shape.h"

namespace fullstop::wire {
namespace {

using answer::Disconnect;
using answer::Record;
using answer::Transport;

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

struct AnswerReader::State final : BodySink {
    State(Record& target, Input kind) : record(&target), transcript(target), input(kind) {
        if (record->request.max_tokens && !record->requested_max_tokens)
            record->requested_max_tokens = answer::Fact<base::Tokens>::measured(
                *record->request.max_tokens, "the limit in the request");
    }

    void keep(std::string_view bytes, base::Duration at) {
        answer::Capture& capture = record->capture;
        received += static_cast<std::int64_t>(bytes.size());
        const std::size_t room =
            capture.arrivals.size() < kMaxArrivals
                ? kMaxCaptureBytes - std::min(kMaxCaptureBytes, capture.bytes.size())
                : 0;
        capture.truncated = capture.truncated || bytes.size() > room;
        if (room == 0) return;
        capture.bytes.append(bytes.substr(0, room));
        if (!capture.arrivals.empty() && capture.arrivals.back().at == at)
            capture.arrivals.back().end = capture.bytes.size();
        else
            capture.arrivals.push_back({at, capture.bytes.size()});
    }

    std::string_view full() const {
        if (received - at_last_text > kMaxQuietBytes)
            return "the part of the answer without any text is larger than 32 MiB";
        if (received > kMaxAnswerBytes) return "the answer is larger than 512 MiB";
        return transcript.full();
    }

    void take(std::string_view bytes) {
        if (input == Input::kBody) return feed_body(bytes);
        while (!bytes.empty() && !framing.overflowed()) {
            if (head_taken && input == Input::kUnframed) return feed_body(bytes);
            if (framing.complete()) break;
            const std::string_view piece = framing.next(bytes);
            if (framing.head_complete() && !head_taken) take_head();
            if (!piece.empty()) feed_body(piece);
        }
        if (input == Input::kHttp && framing.complete()) body.finish(*this);
    }

    void take_head() {
        head_taken = true;
        const ResponseHead& head = framing.head();
        record->framing = framing.framing();
        if (head.status == 0) return;  // not HTTP
        record->status = head.status;
        record->headers = head.headers;
        record->http_version = head.version;
        record->timeline.headers = now;
        if (const auto type = head.headers.find("content-type"); type != head.headers.end())
            body.expect(type->second);
        read_headers(*record);
    }

    void feed_body(std::string_view piece) {
        if (!record->timeline.first_byte) record->timeline.first_byte = now;
        body.feed(piece, *this);
    }

    // BodySink
    // ---------------------------------------------------------------------------------------------------------
    void on_event(std::string_view name, std::string_view data) override {
        data = trim(data);
        if (data.empty()) return;
        transcript.begin_event(now);
        if (data == "[DONE]") return transcript.terminator();
        if (data.front() == ':') return on_comment(data);  // a gateway wrapped a keep-alive as data
        const JsonValue event = json.read(data);
        if (!event.present()) {
            const bool words = !trim(data).empty() && data.front() != '{' && data.front() != '[';
            if (words) last_words = trim(data).substr(0, kMaxErrorTextBytes);
            return on_unread(data);
        }
        read(event, name == "error");
    }

    void on_comment(std::string_view) override {
        ++record->comments;
        if (!record->timeline.first_comment) record->timeline.first_comment = now;
    }

    void on_unknown_field(std::string_view name, std::string_view value,
                          std::string_view line) override {
        transcript.begin_event(now);
        const bool bare_json = line.front() == '{' || line.front() == '[';
        if (const JsonValue event = json.read(bare_json ? line : value); event.present())
            return read(event, name == "error");
        if (name != "error") return on_unread(line);
        transcript.error({std::nullopt, {}, {}, std::string(value), answer::ErrorPlace::kStream});
    }

    bool on_json(std::string_view text) override {
        const JsonValue event = json.read(text);
        if (!event.present()) return false;
        ++documents;
        transcript.begin_event(now);
        read(event, false);
        return true;
    }

    void on_unread(std::string_view text) override {
        ++record->unread_events;
        if (unread_start.empty()) unread_start = trim(text).substr(0, kMaxErrorTextBytes);
    }

    void read(JsonValue event, bool surely_error) {
        if (!read_event(event, surely_error || transcript.failed(), transcript)) on_unread({});
        const std::int64_t before = record->text_events;
        transcript.end_event();
        if (record->text_events == before) return;
        at_last_text = received;
        last_words.clear();
    }

    // The end
    // ----------------------------------------------------------------------------------------------------------
    Transport transport(StreamEnd::Kind kind) const {
        const bool framed = input == Input::kHttp;
        if (framed && framing.complete() && !body.overflowed()) return Transport::kClean;
        switch (kind) {
            case StreamEnd::Kind::kRst: return Transport::kReset;
            case StreamEnd::Kind::kTimedOut: return Transport::kTimedOut;
            case StreamEnd::Kind::kClosedByUs: return Transport::kClosedByUs;
            case StreamEnd::Kind::kFin:
            case StreamEnd::Kind::kUnknown: break;
        }
        const bool open = framed && framing.framing() == answer::Framing::kUntilClose;
        if (framed && (!open || framing.head().status == 0)) return Transport::kTruncated;
        return kind == StreamEnd::Kind::kFin ? Transport::kClean : Transport::kUnknown;
    }

    Disconnect disconnect(StreamEnd::Kind kind) const {
        if (input == Input::kHttp && framing.complete())
            return {Disconnect::By::kNone, Disconnect::Kind::kNone, received};
        switch (kind) {
            case StreamEnd::Kind::kFin:
                return {Disconnect::By::kPeer, Disconnect::Kind::kFin, received};
            case StreamEnd::Kind::kRst:
                return {Disconnect::By::kPeer, Disconnect::Kind::kRst, received};
            case StreamEnd::Kind::kTimedOut:
            case StreamEnd::Kind::kClosedByUs:
                return {Disconnect::By::kUs, Disconnect::Kind::kFin, received};
            case StreamEnd::Kind::kUnknown: break;
        }
        return {Disconnect::By::kUnknown, Disconnect::Kind::kNone, received};
    }

    void finish(StreamEnd::Kind kind) {
        std::string words = std::move(last_words);
        last_words.clear();
        const std::int64_t before = record->text_events;
        body.finish(*this);
        // Half an event is no word of the server's.
        last_words = record->text_events > before ? std::string() : std::move(words);
        record->timeline.ended = now;
        record->framing = framing.framing();
        record->end.transport = transport(kind);
        record->disconnect = disconnect(kind);
        const bool whole = is_whole_json();
        if (whole && !record->end.terminator) transcript.terminator();
        transcript.close(whole);
        name_failure();
        derive_queue();
    }

    /// One JSON text that was a whole answer (or a whole error), and that the framing does not
    /// contradict.
    bool is_whole_json() const {
        const Transport end = record->end.transport;
        if (documents != 1 || transcript.saw_partial() || record->unread_events > 0 ||
            body.form() == BodyForm::kSse)
            return false;
        if (end != Transport::kClean && end != Transport::kUnknown) return false;
        const auto type = record->headers.find("content-type");
        const bool lines =
            type != record->headers.end() && type->second.find("ndjson") != std::string::npos;
        return !(lines && transcript.saw_error_only());
    }

    /// A failure that no JSON spoke of: HTTP status alone, an HTML page where an answer was due, a
    /// limit of ours.
    void name_failure() {
        const auto named = [&](std::string text) {
            transcript.error({record->status, {}, {}, std::move(text), answer::ErrorPlace::kHttp});
        };
        if (framing.overflowed())
            return named("the response head is larger than " + std::to_string(kMaxHeadBytes) +
                         " bytes");
        if (body.overflowed())
            return named("one event is larger than " + std::to_string(kMaxEventBytes) + " bytes");
        if (record->end.error) return;
        const bool no_answer = body.form() == BodyForm::kOther && record->unread_events > 0;
        if (no_answer || transcript.failed())
            return named(unread_start.empty() ? framing.head().phrase : unread_start);
        // Some servers write what went wrong as plain text into the stream, and nothing after it.
        if (!last_words.empty() && !record->end.reason && !record->end.terminator)
            transcript.error(
                {std::nullopt, {}, {}, std::move(last_words), answer::ErrorPlace::kStream, true});
    }

    /// llama-server reports no queue time, but what its own prefill and one token do not explain of
    /// TTFT was waiting.
    void derive_queue() {
        const auto per_token = record->stop_details.find("timings.predicted_per_token_ms");
        const auto ttft = record->ttft();
        if (record->queue_ms || per_token == record->stop_details.end() || !ttft ||
            !record->prompt_ms)
            return;
        const double queue = base::to_ms(*ttft) - *record->prompt_ms -
                             std::strtod(per_token->second.c_str(), nullptr);
        record->queue_ms = answer::Fact<double>::derived(
            std::max(0.0, queue), "TTFT - timings.prompt_ms - timings.predicted_per_token_ms");
    }

    Record* record;
    Transcript transcript;
    Input input;
    HttpFraming framing;
    BodyReader body;
    JsonReader json;
    base::Duration now{};
    std::int64_t received = 0, at_last_text = 0;
    int documents = 0;         ///< JSON texts of a body that is not SSE
    std::string unread_start;  ///< start of the first part that was not understood
    std::string last_words;    ///< plain text where an event was due, and no answer text since
    bool head_taken = false;
    bool ended = false;
};

AnswerReader::AnswerReader(Record& record, Input input)
    : state_(std::make_unique<State>(record, input)) {}
AnswerReader::~AnswerReader() = default;
AnswerReader::AnswerReader(AnswerReader&&) noexcept = default;
AnswerReader& AnswerReader::operator=(AnswerReader&&) noexcept = default;

void AnswerReader::bytes(std::string_view bytes, base::Duration at, answer::StampClock clock) {
    state_->now = at;
    state_->record->timeline.clock = clock;
    state_->keep(bytes, at);
    state_->take(bytes);
}

void AnswerReader::end(StreamEnd end, base::Duration at) {
    if (std::exchange(state_->ended, true)) return;
    state_->now = at;
    state_->finish(end.kind);
    state_->record->shape = shape_of(state_->record->capture.bytes);
}

bool AnswerReader::complete() const {
    return state_->input == Input::kHttp && state_->framing.complete();
}
std::optional<answer::Api> AnswerReader::dialect() const { return state_->transcript.dialect(); }
OwnEnd AnswerReader::own_end() const { return state_->transcript.own_end(); }
std::size_t AnswerReader::held_bytes() const { return state_->body.held_bytes(); }
std::string_view AnswerReader::full() const { return state_->full(); }
bool AnswerReader::overflowed() const {
    return state_->framing.overflowed() || state_->body.overflowed();
}

}  // namespace fullstop::wire
