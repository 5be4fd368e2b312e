// The fields of every stored structure, each named once, and the words of the enumerations among
// them. Text, reasoning, tool calls, gaps and captures have columns of their own (columns.cc) and
// are left out here.
#pragma once

#include <string_view>

#include "answer/run.h"

namespace fullstop::answer {

inline bool take(auto parsed, auto& value) {
    if (parsed) value = *parsed;
    return parsed.has_value();
}
inline bool from_word(std::string_view word, Provenance& value) {
    return take(parse_provenance(word), value);
}
inline bool from_word(std::string_view word, Api& value) { return take(parse_api(word), value); }
inline bool from_word(std::string_view word, Framing& value) {
    return take(parse_framing(word), value);
}
inline bool from_word(std::string_view word, Transport& value) {
    return take(parse_transport(word), value);
}
inline bool from_word(std::string_view word, ErrorPlace& value) {
    return take(parse_error_place(word), value);
}
inline bool from_word(std::string_view word, Disconnect::By& value) {
    return take(parse_disconnect_by(word), value);
}
inline bool from_word(std::string_view word, Disconnect::Kind& value) {
    return take(parse_disconnect_kind(word), value);
}
inline bool from_word(std::string_view word, DeadlineFired& value) {
    return take(parse_deadline_fired(word), value);
}
inline bool from_word(std::string_view word, StampClock& value) {
    value = word == to_string(StampClock::kKernel) ? StampClock::kKernel : StampClock::kUserSpace;
    return word == to_string(value);
}

template <class Visitor>
void fields(Visitor& v, Message& m) {
    v("role", m.role), v("content", m.content);
}
template <class Visitor>
void fields(Visitor& v, Check& c) {
    v("items", c.items), v("contains", c.contains), v("json", c.json), v("regex", c.regex),
        v("ends_with", c.ends_with);
}
template <class Visitor>
void fields(Visitor& v, Prompt& p) {
    v("id", p.id), v("messages", p.messages), v("max_tokens", p.max_tokens), v("check", p.check),
        v("tags", p.tags);
}
template <class Visitor>
void fields(Visitor& v, Request& r) {
    v("id", r.id), v("arm", r.arm), v("concurrency", r.concurrency), v("phase", r.phase),
        v("prompt_id", r.prompt_id);
    v("seed", r.seed), v("repeat", r.repeat), v("api", r.api), v("model", r.model),
        v("messages", r.messages);
    v("max_tokens", r.max_tokens), v("temperature", r.temperature), v("top_p", r.top_p),
        v("stop", r.stop), v("stream", r.stream);
}
template <class Visitor>
void fields(Visitor& v, Timeline& t) {
    v("started", t.started), v("connected", t.connected), v("sent", t.sent),
        v("headers", t.headers), v("first_byte", t.first_byte);
    v("first_comment", t.first_comment), v("first_token", t.first_token),
        v("first_answer", t.first_answer), v("last_token", t.last_token);
    v("finish", t.finish), v("terminator", t.terminator), v("ended", t.ended), v("clock", t.clock);
}
template <class Visitor>
void fields(Visitor& v, ServerError& e) {
    v("status", e.status), v("code", e.code), v("type", e.type), v("text", e.text),
        v("where", e.where);
}
template <class Visitor>
void fields(Visitor& v, EndFacts& e) {
    v("reason", e.reason), v("error", e.error), v("terminator", e.terminator),
        v("transport", e.transport);
}
template <class Visitor>
void fields(Visitor& v, Disconnect& d) {
    v("by", d.by), v("kind", d.kind), v("at_byte", d.at_byte);
}
template <class Visitor>
void fields(Visitor& v, StreamShape& s) {
    v("crlf_events", s.crlf_events), v("tight_data", s.tight_data), v("id_or_retry", s.id_or_retry),
        v("leading_colon", s.leading_colon);
    v("comment_as_data", s.comment_as_data), v("created_first", s.created_first),
        v("created_last", s.created_last);
}
template <class Visitor>
void fields(Visitor& v, Record& r) {
    v("request", r.request), v("timeline", r.timeline), v("status", r.status),
        v("headers", r.headers), v("http_version", r.http_version);
    v("framing", r.framing), v("text_events", r.text_events), v("comments", r.comments),
        v("unread_events", r.unread_events);
    v("response_id", r.response_id), v("response_model", r.response_model), v("shape", r.shape),
        v("end", r.end), v("disconnect", r.disconnect);
    v("server_errors", r.server_errors), v("stop_details", r.stop_details),
        v("finish_events", r.finish_events);
    v("requested_max_tokens", r.requested_max_tokens),
        v("effective_max_tokens", r.effective_max_tokens);
    v("prompt_tokens", r.prompt_tokens), v("cached_tokens", r.cached_tokens),
        v("output_tokens", r.output_tokens);
    v("reasoning_tokens", r.reasoning_tokens), v("counted_tokens", r.counted_tokens),
        v("queue_ms", r.queue_ms), v("prompt_ms", r.prompt_ms);
    v("client_deadline_ms", r.client_deadline_ms), v("gateway_deadline_ms", r.gateway_deadline_ms),
        v("server_deadline_ms", r.server_deadline_ms);
    v("deadline_fired", r.deadline_fired), v("preemptions", r.preemptions),
        v("paused_ms", r.paused_ms), v("kv_bytes", r.kv_bytes);
    v("memory_free_bytes", r.memory_free_bytes), v("fullstop_cause", r.fullstop_cause),
        v("capture_truncated", r.capture.truncated);
}
template <class Visitor>
void fields(Visitor& v, Experiment::Step& s) {
    v("arm", s.arm), v("phase", s.phase), v("concurrency", s.concurrency),
        v("first_repeat", s.first_repeat), v("repeats", s.repeats), v("seeds", s.seeds),
        v("admitted", s.admitted);
}
template <class Visitor>
void fields(Visitor& v, Experiment& e) {
    v("levels", e.levels), v("prompts", e.prompts), v("repeat", e.repeat),
        v("max_tokens", e.max_tokens), v("temperature", e.temperature);
    v("top_p", e.top_p), v("seed", e.seed), v("stream", e.stream), v("stagger", e.stagger),
        v("client_deadline", e.client_deadline);
    v("client_idle", e.client_idle), v("budget", e.budget), v("order", e.order),
        v("reduced", e.reduced);
}
template <class Visitor>
void fields(Visitor& v, Arm& a) {
    v("name", a.name), v("url", a.url), v("how", a.how);
}
template <class Visitor>
void fields(Visitor& v, ServerFacts& s) {
    v("name", s.name), v("version", s.version), v("how", s.how), v("model", s.model),
        v("window", s.window), v("pool", s.pool);
    v("slots", s.slots), v("shared_pool", s.shared_pool),
        v("default_max_tokens", s.default_max_tokens);
    v("kv_bytes_per_token", s.kv_bytes_per_token), v("max_queue", s.max_queue),
        v("output_deadline_ms", s.output_deadline_ms), v("raw", s.raw);
}

}  // namespace fullstop::answer
