// What reading costs the client: nanoseconds of CPU per event, from socket bytes to the finished
// Record.
//
// Bulk events are the deltas of a real llama-server answer (290 bytes each, one chunk each), cut as
// a socket would cut them: 16 KiB reads at full speed, or one event per read.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/source_dir.h"
#include "wire/answer_reader.h"
#include "wire/http/response_text.h"

namespace {

using namespace fullstop;

std::string load(const std::string& name) {
    std::ifstream file(tests::source_dir() / ("tests/golden/captures/" + name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

void read(benchmark::State& state, const std::string& bytes, std::size_t piece) {
    std::int64_t events = 0;
    for (auto _ : state) {
        answer::Record record;
        wire::AnswerReader reader(record);
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            reader.bytes(std::string_view(bytes).substr(at, piece),
                         base::Duration(static_cast<std::int64_t>(at)),
                         answer::StampClock::kKernel);
        reader.end({}, {});
        events += record.text_events;
        benchmark::DoNotOptimize(record);
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
    state.counters["event"] = benchmark::Counter(
        static_cast<double>(events), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void llama_server_bulk(benchmark::State& state) {
    read(state, load("direct_stream_n1_0.raw"), 16 * 1024);
}
void llama_server_one_event_per_read(benchmark::State& state) {
    read(state, load("direct_stream_n1_0.raw"), 297);
}
void llama_server_byte_by_byte(benchmark::State& state) {
    read(state, load("direct_stream_n1_0.raw"), 1);
}
void ollama_v1_bulk(benchmark::State& state) {
    read(state, load("ollama_v1_ctx1024_n1_0.raw"), 16 * 1024);
}

void ollama_lines_bulk(benchmark::State& state) {
    std::string bytes = wire::stream_head("application/x-ndjson");
    for (int i = 0; i < 400; ++i)
        bytes += wire::chunk(
            R"({"model":"smol","created_at":"2026-11-30T01:37:58.097757746Z","message":{"role":"assistant","content":" word"},"done":false})"
            "\n");
    read(state, bytes + wire::last_chunk(), 16 * 1024);
}

BENCHMARK(llama_server_bulk);
BENCHMARK(llama_server_one_event_per_read);
BENCHMARK(llama_server_byte_by_byte);
BENCHMARK(ollama_v1_bulk);
BENCHMARK(ollama_lines_bulk);

}  // namespace

BENCHMARK_MAIN();
