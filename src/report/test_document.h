// Hand-built judged runs for the tests of this folder: one that was cut, one that only slowed down,
// one that could not be decided and whose server sends everything that breaks documents.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include <string>

#include "report/json/document.h"

namespace fullstop::report::sample {

using namespace answer;
using namespace std::chrono_literals;

/// Broken UTF-8, control characters, an escape sequence, markup of every format, and a line break.
inline const std::string kNasty = std::string(
                                      "\xff\xfe \x1b[31mred\x1b[0m <b>&\"'|`* [x](y) @name "
                                      ",;\n\x01 \xe6\xbc\xa2 \xed\xa0\x80 end") +
                                  '\0';

inline Record cut_answer(int concurrency, const std::string& id, bool cut) {
    Record r;
    r.request = {.id = id,
                 .arm = "deployed",
                 .concurrency = concurrency,
                 .phase = concurrency == 1 ? "baseline_before" : "level",
                 .prompt_id = "planets",
                 .seed = 1,
                 .repeat = 0,
                 .api = Api::kOpenAiChat,
                 .model = "SmolLM2",
                 .messages = {{"user", "List the planets."}},
                 .max_tokens = base::Tokens{400},
                 .temperature = 0.7,
                 .top_p = {},
                 .stop = {},
                 .stream = true};
    r.timeline.clock = StampClock::kKernel;
    r.timeline.started = 1000ms, r.timeline.sent = 1001ms, r.timeline.first_token = 1051ms,
    r.timeline.first_answer = 1051ms, r.timeline.ended = cut ? 2601ms : 5301ms;
    r.timeline.gaps = {12ms, 13ms, 12500us, 40ms};
    r.status = 200;
    r.text = cut ? "1. Mercury\n2. Ven" : "1. Mercury\n2. Venus";
    r.text_events = 5;
    if (cut) {
        r.end = {.reason = {},
                 .error = ServerError{500, "500", "server_error", "Context size has been exceeded.",
                                      ErrorPlace::kStream},
                 .terminator = false,
                 .transport = Transport::kClean};
        r.server_errors = {*r.end.error};
        r.output_tokens = Fact<base::Tokens>::unavailable("the stream ended without usage");
    } else {
        r.end = {.reason = "stop", .error = {}, .terminator = true, .transport = Transport::kClean};
        r.output_tokens = Fact<base::Tokens>::reported({328}, "usage.completion_tokens");
    }
    r.disconnect = {Disconnect::By::kPeer, Disconnect::Kind::kFin, 41'234};
    r.requested_max_tokens = Fact<base::Tokens>::measured({400}, "max_tokens of the request");
    r.prompt_tokens = Fact<base::Tokens>::reported({41}, "usage.prompt_tokens");
    r.counted_tokens = Fact<base::Tokens>::measured({cut ? 80 : 328}, "text events");
    r.queue_ms = Fact<double>::derived(3.25, "ttft - timings.prompt_ms - one gap");
    r.kv_bytes =
        Fact<base::Bytes>::derived({cut ? 2'787'840 : 8'501'760}, "tokens x 23040 bytes per token");
    r.memory_free_bytes = Fact<base::Bytes>::measured({3'100'000'000}, "MemAvailable");
    return r;
}

inline judge::Finding finding(Cause cause, Confidence confidence, std::optional<bool> shortened) {
    judge::Finding f{
        .cause = cause,
        .layer = entry(cause).layer,
        .confidence = confidence,
        .shortened = shortened,
        .evidence = {},
        .alternatives = {},
        .next = {},
        .coverage = Fact<double>::derived(shortened.value_or(false) ? 0.25 : 1, "items found of 8"),
        .prefix_of_baseline = shortened,
        .open_ending = shortened.value_or(false)};
    if (shortened.value_or(false)) {
        f.evidence = {{.text = "error object in the stream: Context size has been exceeded.",
                       .records = {},
                       .value = {},
                       .where = "event 81"}};
        f.alternatives = {
            {.cause = Cause::kTokenLimit, .why_not = "80 tokens came, 400 were asked for"}};
        f.next = "raise -c";
    }
    return f;
}

inline judge::LevelJudgement level(int concurrency, std::int64_t answers, std::int64_t cut) {
    judge::LevelJudgement l;
    const double share = static_cast<double>(answers - cut) / static_cast<double>(answers);
    l.concurrency = concurrency, l.answers = answers, l.natural = answers - cut, l.cut = cut;
    l.verdict = cut > 0 ? judge::Verdict::kServingDefect : judge::Verdict::kUnaffected;
    l.why = cut > 0 ? fmt::format("{} of {} answers were cut, none alone", cut, answers)
                    : "no answer was cut";
    l.completion_rate =
        judge::Interval{share, std::max(0.0, share - 0.2), std::min(1.0, share + 0.2)};
    l.coverage = judge::Interval{cut > 0 ? 0.31 : 1, cut > 0 ? 0.2 : 0.9, cut > 0 ? 0.45 : 1};
    l.output_tokens_p50 = cut > 0 ? 80 : 328, l.output_tokens_mean = cut > 0 ? 96.5 : 330.25;
    if (concurrency > 1)
        l.paired_length =
            judge::PairedLength{cut > 0 ? 0.244 : 1.0, cut > 0 ? 0.2 : 0.97, cut > 0 ? 0.3 : 1.02,
                                cut > 0 ? 0.0001 : 0.8, answers};
    l.ttft_ms = judge::Quantiles{50.0 * concurrency, 61.0 * concurrency, 80.0 * concurrency,
                                 90.0 * concurrency, answers};
    l.itl_ms = judge::Quantiles{12.0 * concurrency, 15.0 * concurrency, 40.0 * concurrency,
                                55.5 * concurrency, answers * 80};
    l.queue_ms = judge::Quantiles{1, 2.5, 3, 3, answers};
    l.kv_bytes_peak =
        Fact<base::Bytes>::derived({8'501'760 * concurrency}, "tokens x bytes per token");
    l.memory_free_bytes_min = Fact<base::Bytes>::measured({3'100'000'000}, "MemAvailable");
    l.p_cut = cut > 0 ? 0.00002 : 1;
    if (concurrency > 1) {
        l.tests.push_back(
            {"labelled rate", {cut, answers}, {0, 32}, {}, cut > 0 ? 4e6 : 1.0, cut > 0});
        l.bound = cut > 0 ? 1 : 0.18;
    }
    if (cut < answers)
        l.causes.push_back({Cause::kNaturalEnd, Layer::kModel, answers - cut, Confidence::kProven});
    if (cut > 0)
        l.causes.insert(l.causes.begin(),
                        {Cause::kKvPoolExhausted, Layer::kMemory, cut, Confidence::kProven});
    return l;
}

inline Run plain_run() {
    Run run;
    run.id = "20261130-0317-ab12";
    run.started.unix_ns = 1'796'008'626'123'000'000;
    run.elapsed = 187s;
    run.fullstop_version = "0.1.0", run.fullstop_build = "";
    run.url = "http://127.0.0.1:8080", run.model = "SmolLM2-135M-Instruct";
    run.experiment.levels = {1, 4, 8};
    run.experiment.prompts.resize(8);
    run.experiment.max_tokens = base::Tokens{400};
    run.experiment.order = {{"deployed", "baseline_before", 1},
                            {"control", "level", 8},
                            {"deployed", "level", 8},
                            {"deployed", "baseline_after", 1}};
    run.arms = {{"deployed", run.url, "the path users take"},
                {"control", run.url,
                 "the same server, no time-outs of ours; gateway effects cannot be separated"}};
    ServerFacts& server = run.server_before["deployed"];
    server.name = "llama-server", server.version = "b10434", server.how = "/props build_info",
    server.model = run.model;
    server.window = Fact<base::Tokens>::reported({1024}, "/props n_ctx"),
    server.pool = Fact<base::Tokens>::reported({1024}, "/props n_ctx");
    server.slots = Fact<std::int64_t>::reported(8, "/props total_slots"),
    server.shared_pool = Fact<bool>::derived(true, "n_ctx per slot equals n_ctx");
    run.samples = {{.at = 1s,
                    .arm = "deployed",
                    .kv_used = 0.25,
                    .running = 1,
                    .waiting = 0,
                    .preemptions = {},
                    .free_bytes = 3.2e9,
                    .server_bytes = 2.5e8,
                    .counters = {}},
                   {.at = 2s,
                    .arm = "deployed",
                    .kv_used = 0.998,
                    .running = 8,
                    .waiting = {},
                    .preemptions = {},
                    .free_bytes = 3.1e9,
                    .server_bytes = {},
                    .counters = {}}};
    return run;
}

/// Eight users share a pool that holds two and a half answers.
inline Document defect() {
    Run run = plain_run();
    run.records = {cut_answer(1, "r-1", false), cut_answer(8, "r-2", true)};
    run.notes = {"the server's /metrics is off: start it with --metrics to see its queue"};
    judge::RunJudgement j;
    j.verdict = {
        .value = judge::Verdict::kServingDefect,
        .headline =
            "Alone every answer was complete; with 8 users 14 of 16 were cut, because the shared "
            "KV cache of 1024 tokens was full. The control arm "
            "shows the same.",
        .cause = Cause::kKvPoolExhausted,
        .layer = Layer::kMemory,
        .confidence = Confidence::kProven,
        .load = {.value = judge::LoadBrings::kProven,
                 .why = "the pool is shared: one user alone cannot fill it",
                 .bound = {}},
        .from_concurrency = 4,
        .evidence =
            {{.text =
                  "14 answers ended with the server's own error: Context size has been exceeded.",
              .records = {"r-2"},
              .value = 14,
              .where = "event 81"},
             {.text = "8 answers need 8 x (41 + 328) = 2952 tokens; the pool holds 1024",
              .records = {},
              .value = 2952,
              .where = {}}},
        .remedies = {{.text = "Give the server a cache that holds 8 whole answers",
                      .setting = "-c 3328",
                      .number = 3328},
                     {.text = "or let only 2 run at once; others wait",
                      .setting = "-np 2",
                      .number = 2}},
        .missing = {},
        .next = "run again with -c 3328",
        .firm = true};
    j.arms = {{.name = "deployed",
               .url = run.url,
               .verdict = j.verdict,
               .levels = {level(1, 16, 0), level(4, 16, 5), level(8, 16, 14)}},
              {.name = "control",
               .url = run.url,
               .verdict = j.verdict,
               .levels = {level(1, 8, 0), level(8, 8, 7)}}};
    j.findings = {{"r-1", finding(Cause::kNaturalEnd, Confidence::kProven, false)},
                  {"r-2", finding(Cause::kKvPoolExhausted, Confidence::kProven, true)}};
    return make_document(run, j);
}

/// Nothing was shortened; one arm.
inline Document slower() {
    Run run = plain_run();
    run.arms.resize(1);
    run.records = {cut_answer(1, "r-1", false)};
    run.experiment.reduced = "--quick: 4 prompts, one repeat";
    judge::RunJudgement j;
    j.verdict.value = judge::Verdict::kLatencyOnly;
    j.verdict.headline =
        "Every answer was complete at every level; with 8 users the first token takes 8 times as "
        "long.";
    j.verdict.firm = true;
    j.verdict.load = {.value = judge::LoadBrings::kOpen,
                      .why = "no level is shortened beyond chance",
                      .bound = 0.0961};
    j.verdict.evidence = {
        {.text = "48 of 48 answers ended by themselves", .records = {}, .value = 48, .where = {}}};
    j.arms = {{.name = "deployed",
               .url = run.url,
               .verdict = j.verdict,
               .levels = {level(1, 16, 0), level(8, 32, 0)}}};
    j.arms[0].levels[1].verdict = judge::Verdict::kLatencyOnly;
    j.arms[0].levels[0].preemptions = Fact<std::int64_t>::reported(
        0, "increases of the server's counter while these answers ran");
    j.arms[0].levels[1].preemptions = Fact<std::int64_t>::reported(
        5, "increases of the server's counter while these answers ran");
    j.findings = {{"r-1", finding(Cause::kNaturalEnd, Confidence::kProven, false)}};
    return make_document(run, j);
}

/// Interrupted, nothing known of the server, and every text of it hostile.
inline Document undecided() {
    Run run = plain_run();
    run.interrupted = true;
    run.model = kNasty;
    run.server_before.clear();
    run.samples.clear();
    run.notes = {kNasty, std::string(200, 'x')};
    run.arms = {{"deployed", run.url, kNasty}};
    Record record;
    record.request = {.id = "r-1",
                      .arm = "deployed",
                      .concurrency = 8,
                      .phase = "level",
                      .prompt_id = kNasty,
                      .seed = 1,
                      .repeat = 0,
                      .api = Api::kOllama,
                      .model = {},
                      .messages = {},
                      .max_tokens = {},
                      .temperature = {},
                      .top_p = {},
                      .stop = {},
                      .stream = true};
    record.text = kNasty;
    record.end = {.reason = kNasty,
                  .error = ServerError{{}, kNasty, "", kNasty, ErrorPlace::kHttp},
                  .terminator = false,
                  .transport = Transport::kReset};
    run.records = {record};
    judge::RunJudgement j;
    j.verdict.headline = "Not decided: the run was interrupted before a second level was measured.";
    j.verdict.missing = {"a single-user baseline", kNasty};
    j.verdict.next = "run again with --budget 10m";
    judge::LevelJudgement only;
    only.concurrency = 8, only.answers = 123'456, only.failed = 1;
    only.why = kNasty;
    only.paired_length = judge::PairedLength{123456.789, 1, 1, 1, 1};
    only.ttft_ms = judge::Quantiles{1234567, 2345678, 3, 4, 5};
    only.itl_ms = judge::Quantiles{1234567, 2, 2345678, 4, 5};
    only.completion_rate = judge::Interval{0.997, 0.5, 1};
    j.arms = {{.name = "deployed", .url = run.url, .verdict = j.verdict, .levels = {only}}};
    return make_document(run, j);
}

}  // namespace fullstop::report::sample
