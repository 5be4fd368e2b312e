// What does the engine make of the model? Tokens a second at batch 1, 2, 4, 8, the share of a step
// that is not the model's, what seven running answers feel of a long prompt that arrives, and how
// many texts one prompt and seed get in many loads, in a pool too small for them. No network:
// Backend and Engine in one thread. Prints one JSON document a line; bench/engine.py runs it beside
// llama-batched-bench of the same source.
//
//   engine_bench MODEL [--layout streams|unified] [--kv-type q8_0|f16] [--threads 2]
//                [--load-invariant on|off] [--batches 1,2,4,8|none] [--prompt 128] [--tokens 128]
//                [--long-prompt 900] [--itl-target MS] [--loads 0]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/llama/backend.h"
#include "base/random.h"
#include "engine/cost/measure_passes.h"
#include "engine/engine.h"

namespace {

using namespace fullstop;
using base::Tokens;
namespace llama = adapters::llama;

constexpr std::int64_t kWindow = 1280;  // the long prompt and an answer

struct Settings {
    llama::LoadOptions load;
    std::vector<int> batches = {1, 2, 4, 8};
    std::int64_t prompt = 128, tokens = 128, long_prompt = 900;
    std::optional<base::Duration> itl_target;
    int loads = 0;
};

base::Instant now() {
    return base::Instant(std::chrono::duration_cast<base::Duration>(
        std::chrono::steady_clock::now().time_since_epoch()));
}

class Clock final : public base::Clock {
public:
    base::Instant now() const override { return ::now(); }
    base::WallTime wall() const override { return {}; }
};

double seconds(base::Duration time) { return base::to_seconds(time); }

/// `length` tokens that no other prompt begins with.
std::string prompt_of(const engine::Backend& backend, std::int64_t length, int number) {
    std::string text = fmt::format("{}", number);
    while (static_cast<std::int64_t>(backend.tokenize(text).tokens.size()) < length) text += " a";
    return text;
}

/// One engine over a loaded model; answers run to their limit, since end tokens are forbidden.
class Bench {
public:
    Bench(engine::Backend& backend, const Settings& settings)
        : engine_(backend, {.host_memory = base::Bytes{0},
                            .itl_target = settings.itl_target,
                            .cost = settings.itl_target ? costs(backend) : std::nullopt}) {
        for (engine::TokenId token = 0; token < backend.facts().vocabulary; ++token)
            if (backend.is_end(token)) sampling_.logit_bias.emplace_back(token, -1e9F);
        sampling_.temperature = 0;
    }

    ~Bench() { engine_.cancel_all(now(), answer::Cause::kClientCancelled, "", events_); }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    void ask(engine::SequenceId id, std::string prompt, std::int64_t tokens) {
        engine_.submit(now(),
                       {.id = id,
                        .arrived = now(),
                        .prompt = std::move(prompt),
                        .sampling = sampling_,
                        .max_tokens = Tokens{tokens}},
                       events_);
    }
    /// False: nothing to do.
    bool step() {
        const auto start = now();
        if (!engine_.plan(start, events_)) return false;
        const auto planned = now();
        engine_.compute();
        const auto computed = now();
        engine_.commit(computed, events_);
        inside_ += computed - planned;
        outside_ += (planned - start) + (now() - computed);
        return true;
    }
    engine::EngineEvents take() { return std::exchange(events_, {}); }
    void start_counting() { inside_ = outside_ = {}; }
    base::Duration inside() const { return inside_; }
    base::Duration outside() const { return outside_; }

private:
    /// As `fullstop serve` measures them when it starts.
    static std::optional<engine::CostModel> costs(engine::Backend& backend) {
        const Clock clock;
        auto measured = engine::measure_passes(
            backend, clock, engine::kBriefly, [] { return false; }, [](double) {});
        return engine::CostModel::fit(std::move(measured.passes)).value();
    }

    engine::Engine engine_;
    engine::Sampling sampling_;
    engine::EngineEvents events_;
    base::Duration inside_{}, outside_{};
};

void decode(engine::Backend& backend, const Settings& settings, int batch) {
    Bench bench(backend, settings);
    for (int id = 1; id <= batch; ++id)
        bench.ask(static_cast<engine::SequenceId>(id), prompt_of(backend, settings.prompt, id),
                  settings.tokens + 64);
    const auto began = now();
    for (std::size_t first = 0; first < static_cast<std::size_t>(batch) && bench.step();)
        for (const auto& event : bench.take())
            if (const auto* produced = std::get_if<engine::Produced>(&event))
                first += !produced->gap;
    const auto prefilled = now();
    bench.start_counting();
    for (std::int64_t i = 0; i < settings.tokens; ++i) bench.step();
    const double taken = seconds(now() - prefilled);
    fmt::print(
        R"({{"what":"decode","layout":"{}","kv_type":"{}","load_invariant":"{}","threads":{},"batch":{},"prefill_tokens_per_s":{:.1f},"tokens_per_s":{:.1f},"outside_share":{:.5f}}})"
        "\n",
        to_string(backend.facts().layout), to_string(backend.facts().kv_type),
        backend.facts().load_invariant, backend.facts().threads, batch,
        static_cast<double>(batch * settings.prompt) / seconds(prefilled - began),
        static_cast<double>(batch * settings.tokens) / taken,
        seconds(bench.outside()) / seconds(bench.outside() + bench.inside()));
    std::fflush(stdout);
}

/// Seven answers run; a long prompt comes: their gaps until its first token.
void long_prompt(engine::Backend& backend, const Settings& settings) {
    constexpr engine::SequenceId kLong = 8;
    Bench bench(backend, settings);
    const std::string question =
        prompt_of(backend, settings.long_prompt, kLong);  // which takes longer than a step
    for (engine::SequenceId id = 1; id < kLong; ++id)
        bench.ask(id, prompt_of(backend, 32, static_cast<int>(id)), 400);
    for (int i = 0; i < 60; ++i) bench.step();
    std::vector<double> before, during;
    const auto read = [&](std::vector<double>& into) {
        bool first = false;
        for (const auto& event : bench.take())
            if (const auto* produced = std::get_if<engine::Produced>(&event)) {
                first = first || produced->id == kLong;
                if (produced->id != kLong && produced->gap)
                    into.push_back(base::to_ms(*produced->gap));
            }
        return first;
    };
    bench.take();
    for (int i = 0; i < 20; ++i) bench.step();
    read(before);
    bench.ask(kLong, question, 10);
    const auto came = now();
    while (bench.step() && !read(during)) {
    }
    const double ttft = base::to_ms(now() - came);
    std::ranges::sort(before);
    std::ranges::sort(during);
    const auto at = [](const std::vector<double>& values, double q) {
        return values.empty()
                   ? 0
                   : values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
    };
    fmt::print(
        R"({{"what":"long_prompt","layout":"{}","kv_type":"{}","threads":{},"prompt":{},"itl_target_ms":{:.0f},"itl_before_p50_ms":{:.1f},"itl_p50_ms":{:.1f},"itl_p99_ms":{:.1f},"itl_max_ms":{:.1f},"ttft_ms":{:.0f}}})"
        "\n",
        to_string(backend.facts().layout), to_string(backend.facts().kv_type),
        backend.facts().threads, settings.long_prompt,
        settings.itl_target ? base::to_ms(*settings.itl_target) : 0.0, at(before, 0.5),
        at(during, 0.5), at(during, 0.99), at(during, 1), ttft);
    std::fflush(stdout);
}

/// One question with one seed, alone and then in `loads` loads of seven others that come, are
/// paused and leave at random.
void distinct_texts(engine::Backend& backend, const Settings& settings) {
    constexpr engine::SequenceId kMeasured = 1;
    std::map<std::string, int> texts;
    std::int64_t pauses = 0;
    base::Random random(1);
    for (int load = 0; load <= settings.loads; ++load) {
        engine::Engine engine(backend, {.admission = engine::AdmissionMode::kEager});
        engine::EngineEvents events;
        std::string text;
        bool ended = false;
        const auto ask = [&](engine::SequenceId id, std::string question, double temperature,
                             engine::Priority priority) {
            engine.submit(now(),
                          {.id = id,
                           .arrived = now(),
                           .prompt = std::vector<answer::Message>{{"user", std::move(question)}},
                           .sampling = {.temperature = temperature, .seed = 7},
                           .max_tokens = Tokens{60},
                           .priority = priority},
                          events);
        };
        const auto step = [&] {
            if (!engine.plan(now(), events)) return false;
            engine.compute();
            engine.commit(now(), events);
            for (const auto& event : std::exchange(events, {})) {
                if (const auto* produced = std::get_if<engine::Produced>(&event);
                    produced && produced->id == kMeasured)
                    text += produced->text;
                if (const auto* over = std::get_if<engine::Ended>(&event);
                    over && over->id == kMeasured) {
                    text += over->text;
                    ended = true;
                    pauses += over->end.numbers.swaps + over->end.numbers.recomputes;
                }
            }
            return true;
        };
        const auto others = load == 0 ? 0U : 7U;
        const auto before = random.below(others + 1);
        for (engine::SequenceId id = 2; id < 2 + others; ++id) {
            if (id - 2 == before)
                ask(kMeasured, "Why is the sky blue?", 0.8, engine::Priority::kBatch);
            ask(id,
                fmt::format("Tell me {} things about the number {}.", random.below(20),
                            random.below(1000)),
                0.8, engine::Priority::kNormal);
            for (auto steps = random.below(8); steps > 0; --steps) step();
        }
        if (before == others) ask(kMeasured, "Why is the sky blue?", 0.8, engine::Priority::kBatch);
        while (!ended && step())
            if (random.below(25) == 0)
                engine.cancel(now(), 2 + random.below(others + 1), answer::Cause::kClientCancelled,
                              "", events);
        ++texts[text];
        engine.cancel_all(now(), answer::Cause::kClientCancelled, "", events);
    }
    fmt::print(
        R"({{"what":"distinct_texts","layout":"{}","kv_type":"{}","load_invariant":"{}","pool":{},"loads":{},"texts":{},"pauses_of_the_measured":{}}})"
        "\n",
        to_string(backend.facts().layout), to_string(backend.facts().kv_type),
        backend.facts().load_invariant, backend.facts().pool.count, settings.loads, texts.size(),
        pauses);
}

std::optional<Settings> read(int argc, char** argv) {
    if (argc < 2 || argc % 2 != 0) return std::nullopt;
    Settings settings;
    settings.load.model = argv[1];
    settings.load.layout = llama::KvLayout::kStreams;
    settings.load.threads = 2;
    settings.load.max_sequences = 8;
    settings.load.kv_tokens = Tokens{kWindow * 8};
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i], value = argv[i + 1];
        const auto number = [&] { return std::atol(argv[i + 1]); };
        if (name == "--layout")
            settings.load.layout =
                value == "unified" ? llama::KvLayout::kUnified : llama::KvLayout::kStreams;
        else if (name == "--kv-type")
            settings.load.kv_type = value == "f16" ? llama::KvType::kF16 : llama::KvType::kQ8_0;
        else if (name == "--load-invariant")
            settings.load.load_invariant = value == "on";
        else if (name == "--threads")
            settings.load.threads = static_cast<int>(number());
        else if (name == "--prompt")
            settings.prompt = number();
        else if (name == "--tokens")
            settings.tokens = number();
        else if (name == "--long-prompt")
            settings.long_prompt = number();
        else if (name == "--loads")
            settings.loads = static_cast<int>(number());
        else if (name == "--kv-tokens")
            settings.load.kv_tokens = Tokens{number()};
        else if (name == "--itl-target")
            settings.itl_target = std::chrono::milliseconds(number());
        else if (name == "--batches") {
            settings.batches.clear();
            if (value == "none") continue;
            for (std::string_view rest = value; !rest.empty();) {
                settings.batches.push_back(std::atoi(std::string(rest).c_str()));
                const auto comma = rest.find(',');
                rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
            }
        } else
            return std::nullopt;
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const auto settings = read(argc, argv);
    if (!settings) {
        fmt::print(stderr,
                   "engine_bench MODEL [--layout streams|unified] [--kv-type q8_0|f16] "
                   "[--load-invariant on|off] [--threads N] [--batches 1,2,4,8|none]\n"
                   "             [--prompt N] [--tokens N] [--long-prompt N, 0: without] "
                   "[--itl-target MS] [--loads N] [--kv-tokens N]\n");
        return 2;
    }
    auto backend = llama::load(settings->load);
    if (!backend) {
        fmt::print(stderr, "engine_bench: {}\n", backend.error().message);
        return 4;
    }
    for (const int batch : settings->batches) decode(**backend, *settings, batch);
    if (settings->long_prompt > 0) long_prompt(**backend, *settings);
    if (settings->loads > 0) distinct_texts(**backend, *settings);
    return 0;
}
