// One run: the experiment as it was planned, what the server said of itself, every record, and the
// timeline beside them. Produced by probe and observe, kept by store, read by judge and report. It
// holds no verdict.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answer/fact.h"
#include "answer/record.h"
#include "answer/request.h"
#include "base/time.h"
#include "base/units.h"

namespace fullstop::answer {

/// Everything that decides the schedule; two equal Experiments send the same requests in the same
/// order.
struct Experiment {
    struct Step {
        std::string arm;
        std::string phase;  ///< as Request::phase
        int concurrency = 1;
        int first_repeat = 0;  ///< the step carries repeats first_repeat ... first_repeat + repeats
                               ///< - 1 of every prompt
        int repeats = 1;
        int seeds = 1;     ///< distinct seeds among them; more repeats than seeds fill a level that
                           ///< has more users than pairs
        int admitted = 0;  ///< at most so many of its users' requests were in flight; 0: all
        bool operator==(const Step&) const = default;
    };
    std::vector<int> levels = {1, 2, 4, 8};
    std::vector<Prompt> prompts;
    int repeat = 2;
    std::optional<base::Tokens> max_tokens =
        base::Tokens{512};  ///< absent: omitted from the request
    std::optional<double> temperature = 0.7;
    std::optional<double> top_p;
    std::int64_t seed = 1;
    bool stream = true;
    base::Duration stagger{};  ///< delay between the first requests of a level; zero: together
    std::optional<base::Duration> client_deadline;
    std::optional<base::Duration> client_idle;
    base::Duration budget = std::chrono::minutes(10);
    std::vector<Step> order;             ///< fixed before the first request; batches are appended
    std::optional<std::string> reduced;  ///< why and how levels or repeats were shrunk, for people
};

/// Answers beyond the plan that would decide something.
struct Batch {
    int concurrency = 1;
    int repeats = 1;           ///< of every prompt
    bool known_pairs = false;  ///< the first seeds again, whose baselines are known; else new ones
    bool with_alone = false;   ///< the same new pairs alone afterwards
    std::string why = {};      ///< for people: "answers are whole at 2 users and cut at 4"
};

struct Arm {
    std::string name;  ///< "deployed" or "control"
    std::string url;
    std::string how;  ///< what sets it apart, for people
};

/// What a server says of itself, read once before and once after the load. Whatever is missing says
/// why.
struct ServerFacts {
    std::string name = "unknown";  ///< "llama-server", "ollama", "vllm", "fullstop", ...
    std::string version;
    std::string how = "nothing recognised";  ///< how it was recognised
    std::string model;
    Fact<base::Tokens> window;  ///< tokens one request may hold (prompt + output)
    Fact<base::Tokens> pool;    ///< tokens that all running requests share
    Fact<std::int64_t> slots;   ///< requests that can run at once
    Fact<bool> shared_pool;     ///< true: slots share `pool`; false: each owns `window`
    Fact<base::Tokens> default_max_tokens;
    Fact<base::Bytes> kv_bytes_per_token;
    Fact<std::int64_t> max_queue;
    Fact<double> output_deadline_ms;
    std::map<std::string, std::string>
        raw;  ///< endpoint -> verbatim body (bounded), for judging again
};

/// One reading beside the load, about once a second. Absent fields were not to be had.
struct Sample {
    base::Duration at{};  ///< relative to the start of the run
    std::string arm;
    std::optional<double> kv_used;  ///< share of the pool, 0..1
    std::optional<double> running;
    std::optional<double> waiting;
    std::optional<double> preemptions;  ///< the server's cumulative counter
    std::optional<double> free_bytes;   ///< of the machine (MemAvailable)
    std::optional<double>
        server_bytes;  ///< resident memory of the server process, when it is ours to see
    std::map<std::string, double> counters;  ///< further counters by their own names
};

struct Run {
    std::string id;
    base::WallTime started;
    base::Duration elapsed{};
    std::string fullstop_version;
    std::string fullstop_build;
    std::string url;
    std::string model;
    Api api = Api::kOpenAiChat;
    Experiment experiment;
    std::vector<Arm> arms;
    std::map<std::string, ServerFacts> server_before;  ///< by arm
    std::map<std::string, ServerFacts> server_after;
    std::vector<Record> records;  ///< in the order in which they ended
    std::vector<Sample> samples;
    bool interrupted = false;
    std::vector<std::string>
        notes;  ///< warnings for people: reductions, missing endpoints, store trouble
};

}  // namespace fullstop::answer
