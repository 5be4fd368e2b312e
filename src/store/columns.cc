// JSON for the named fields, little-endian integers for the two long lists of times, and columns of
// their own for what is asked for in queries and for bytes that need not be JSON.
#include "store/columns.h"

#include <array>
#include <optional>

#include "store/encoding.h"
#include "store/fields.h"

namespace fullstop::store {
namespace {

using enum ColumnType;
using enum ColumnRule;

void append(std::string& blob, std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
        blob.push_back(static_cast<char>(value >> shift & 0xFF));
}
std::uint64_t integer_at(std::string_view blob, std::size_t offset) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(blob[offset + i]))
                 << (8 * i);
    return value;
}
base::Duration time_at(std::string_view blob, std::size_t offset) {
    return base::Duration(static_cast<std::int64_t>(integer_at(blob, offset)));
}

void read_gaps(const std::string& blob, std::vector<base::Duration>& gaps) {
    expect(blob.size() % 8 == 0, "whole times");
    for (std::size_t i = 0; i < blob.size(); i += 8) gaps.push_back(time_at(blob, i));
}
void read_arrivals(const std::string& blob, std::vector<answer::Capture::Arrival>& arrivals) {
    expect(blob.size() % 16 == 0, "whole arrivals");
    for (std::size_t i = 0; i < blob.size(); i += 16)
        arrivals.push_back({.at = time_at(blob, i), .end = integer_at(blob, i + 8)});
}

Value maybe(const std::optional<std::int64_t>& value) { return value ? Value(*value) : Value(); }
Value maybe(const std::optional<double>& value) { return value ? Value(*value) : Value(); }
Value maybe(const std::optional<std::string>& value) {
    return value ? Value(Text{*value}) : Value();
}
Value maybe(const std::optional<base::Duration>& value) {
    return value ? Value(value->count()) : Value();
}
Value integer(std::int64_t value) { return value; }

using W = const RunRow&;
using R = const Row&;
constexpr auto kChanges = RunColumn::Use::kChanges;
constexpr auto kRunColumns = std::to_array<RunColumn>({
    {{"id", kText, kKey, ""},
     [](W w) -> Value { return Text{w.run.id}; },
     [](R r, int i, ReadRun& to) { to.run.id = r.text(i); }},
    {{"started_ns", kInteger, kRequired, "since the Unix epoch, UTC"},
     [](W w) { return integer(w.run.started.unix_ns); },
     [](R r, int i, ReadRun& to) { to.run.started.unix_ns = r.integer(i); }},
    {{"elapsed_ns", kInteger, kRequired, ""},
     [](W w) { return integer(w.run.elapsed.count()); },
     [](R r, int i, ReadRun& to) { to.run.elapsed = base::Duration(r.integer(i)); },
     kChanges},
    {{"fullstop_version", kText, kRequired, ""},
     [](W w) -> Value { return Text{w.run.fullstop_version}; },
     [](R r, int i, ReadRun& to) { to.run.fullstop_version = r.text(i); }},
    {{"fullstop_build", kText, kRequired, ""},
     [](W w) -> Value { return Text{w.run.fullstop_build}; },
     [](R r, int i, ReadRun& to) { to.run.fullstop_build = r.text(i); }},
    {{"url", kText, kRequired, ""},
     [](W w) -> Value { return Text{w.run.url}; },
     [](R r, int i, ReadRun& to) { to.run.url = r.text(i); }},
    {{"model", kText, kRequired, ""},
     [](W w) -> Value { return Text{w.run.model}; },
     [](R r, int i, ReadRun& to) { to.run.model = r.text(i); },
     kChanges},
    {{"api", kText, kRequired, ""},
     [](W w) -> Value { return Text{to_string(w.run.api)}; },
     [](R r, int i, ReadRun& to) { expect(from_word(r.text(i), to.run.api), "a known api"); }},
    {{"experiment", kText, kRequired, "JSON"},
     [](W w) -> Value { return Text{w.experiment}; },
     [](R r, int i, ReadRun& to) { from_text(r.text(i), to.run.experiment); },
     kChanges},
    {{"arms", kText, kRequired, "JSON"},
     [](W w) -> Value { return Text{w.arms}; },
     [](R r, int i, ReadRun& to) { from_text(r.text(i), to.run.arms); },
     kChanges},
    {{"server_before", kText, kRequired, "JSON, by arm"},
     [](W w) -> Value { return Text{w.server_before}; },
     [](R r, int i, ReadRun& to) { from_text(r.text(i), to.run.server_before); },
     kChanges},
    {{"server_after", kText, kRequired, "JSON, by arm"},
     [](W w) -> Value { return Text{w.server_after}; },
     [](R r, int i, ReadRun& to) { from_text(r.text(i), to.run.server_after); },
     kChanges},
    {{"notes", kText, kRequired, "JSON"},
     [](W w) -> Value { return Text{w.notes}; },
     [](R r, int i, ReadRun& to) { from_text(r.text(i), to.run.notes); },
     kChanges},
    {{"interrupted", kInteger, kRequired, ""},
     [](W w) { return integer(w.run.interrupted ? 1 : 0); },
     [](R r, int i, ReadRun& to) { to.run.interrupted = r.integer(i) != 0; },
     kChanges},
    {{"finished", kInteger, kRequired, "0: the process ended before the run did"},
     [](W w) { return integer(w.finished ? 1 : 0); },
     [](R r, int i, ReadRun& to) { to.finished = r.integer(i) != 0; },
     kChanges},
});

using A = const RecordRow&;
using answer::Record;
constexpr auto kCapture = RecordColumn::Use::kCapture;
constexpr auto kRecordColumns = std::to_array<RecordColumn>({
    {{"run", kText, kRun, ""}, [](A a) -> Value { return Text{a.run}; }, nullptr},
    {{"id", kText, kRequired, "the request's, also in X-Request-Id"},
     [](A a) -> Value { return Text{a.record.request.id}; },
     nullptr},
    {{"arm", kText, kRequired, ""},
     [](A a) -> Value { return Text{a.record.request.arm}; },
     nullptr},
    {{"concurrency", kInteger, kRequired, ""},
     [](A a) { return integer(a.record.request.concurrency); },
     nullptr},
    {{"prompt", kText, kRequired, ""},
     [](A a) -> Value { return Text{a.record.request.prompt_id}; },
     nullptr},
    {{"seed", kInteger, kRequired, ""},
     [](A a) { return integer(a.record.request.seed); },
     nullptr},
    {{"repeat", kInteger, kRequired, ""},
     [](A a) { return integer(a.record.request.repeat); },
     nullptr},
    {{"reason", kText, kOptional, "raw word of the server"},
     [](A a) { return maybe(a.record.end.reason); },
     nullptr},
    {{"transport", kText, kRequired, ""},
     [](A a) -> Value { return Text{to_string(a.record.end.transport)}; },
     nullptr},
    {{"tokens", kInteger, kOptional, "reported, else counted"},
     [](A a) { return maybe(a.record.length_tokens()); },
     nullptr},
    {{"ended_ns", kInteger, kOptional, "since the start of the run"},
     [](A a) { return maybe(a.record.timeline.ended); },
     nullptr},
    {{"text", kText, kRequired, ""},
     [](A a) -> Value { return Text{a.record.text}; },
     [](R r, int i, Record& to) { to.text = r.text(i); }},
    {{"reasoning", kText, kRequired, ""},
     [](A a) -> Value { return Text{a.record.reasoning}; },
     [](R r, int i, Record& to) { to.reasoning = r.text(i); }},
    {{"tool_calls", kText, kRequired, ""},
     [](A a) -> Value { return Text{a.record.tool_calls}; },
     [](R r, int i, Record& to) { to.tool_calls = r.text(i); }},
    {{"recorded", kText, kRequired,
      "JSON: everything else; the columns above repeat some of it for queries"},
     [](A a) -> Value { return Text{a.recorded}; },
     [](R r, int i, Record& to) { from_text(r.text(i), to); }},
    {{"gaps", kBlob, kRequired, "int64 nanoseconds, little-endian"},
     [](A a) -> Value { return Blob{a.gaps}; },
     [](R r, int i, Record& to) { read_gaps(r.blob(i), to.timeline.gaps); }},
    {{"capture", kBlob, kRequired, "raw bytes from the socket"},
     [](A a) -> Value { return Blob{a.record.capture.bytes}; },
     [](R r, int i, Record& to) { to.capture.bytes = r.blob(i); },
     kCapture},
    {{"arrivals", kBlob, kRequired,
      "pairs: int64 nanoseconds since the start, uint64 offset after the read"},
     [](A a) -> Value { return Blob{a.arrivals}; },
     [](R r, int i, Record& to) { read_arrivals(r.blob(i), to.capture.arrivals); },
     kCapture},
});

using S = const SampleRow&;
using answer::Sample;
constexpr auto kSampleColumns = std::to_array<SampleColumn>({
    {{"run", kText, kRun, ""}, [](S s) -> Value { return Text{s.run}; }, nullptr},
    {{"at_ns", kInteger, kRequired, "since the start of the run"},
     [](S s) { return integer(s.sample.at.count()); },
     [](R r, int i, Sample& to) { to.at = base::Duration(r.integer(i)); }},
    {{"arm", kText, kRequired, ""},
     [](S s) -> Value { return Text{s.sample.arm}; },
     [](R r, int i, Sample& to) { to.arm = r.text(i); }},
    {{"kv_used", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.kv_used); },
     [](R r, int i, Sample& to) { to.kv_used = r.real(i); }},
    {{"running", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.running); },
     [](R r, int i, Sample& to) { to.running = r.real(i); }},
    {{"waiting", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.waiting); },
     [](R r, int i, Sample& to) { to.waiting = r.real(i); }},
    {{"preemptions", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.preemptions); },
     [](R r, int i, Sample& to) { to.preemptions = r.real(i); }},
    {{"free_bytes", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.free_bytes); },
     [](R r, int i, Sample& to) { to.free_bytes = r.real(i); }},
    {{"server_bytes", kReal, kOptional, ""},
     [](S s) { return maybe(s.sample.server_bytes); },
     [](R r, int i, Sample& to) { to.server_bytes = r.real(i); }},
    {{"counters", kText, kRequired, "JSON"},
     [](S s) -> Value { return Text{s.counters}; },
     [](R r, int i, Sample& to) { from_text(r.text(i), to.counters); }},
});

}  // namespace

std::span<const RunColumn> run_columns() { return kRunColumns; }
std::span<const RecordColumn> record_columns() { return kRecordColumns; }
std::span<const SampleColumn> sample_columns() { return kSampleColumns; }

RunRow to_row(const answer::Run& run) {
    return {.run = run,
            .finished = false,
            .experiment = to_text(run.experiment),
            .arms = to_text(run.arms),
            .server_before = to_text(run.server_before),
            .server_after = to_text(run.server_after),
            .notes = to_text(run.notes)};
}

RecordRow to_row(std::string_view run, const Record& record) {
    RecordRow row{
        .run = run, .record = record, .recorded = to_text(record), .gaps = {}, .arrivals = {}};
    row.gaps.reserve(record.timeline.gaps.size() * 8);
    for (const base::Duration gap : record.timeline.gaps)
        append(row.gaps, static_cast<std::uint64_t>(gap.count()));
    row.arrivals.reserve(record.capture.arrivals.size() * 16);
    for (const auto& arrival : record.capture.arrivals) {
        append(row.arrivals, static_cast<std::uint64_t>(arrival.at.count()));
        append(row.arrivals, arrival.end);
    }
    return row;
}

SampleRow to_row(std::string_view run, const Sample& sample) {
    return {.run = run, .sample = sample, .counters = to_text(sample.counters)};
}

}  // namespace fullstop::store
