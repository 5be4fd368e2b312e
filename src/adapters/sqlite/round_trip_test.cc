// A run that was stored comes back exactly: every field, with awkward bytes and numbers, from a random generator.
// The comparison unpacks every structure by structured bindings, so a field added to one breaks this test's build.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <limits>

#include "adapters/sqlite/store.h"
#include "base/random.h"

namespace fullstop::adapters::sqlite {
namespace {

namespace fs = std::filesystem;
using namespace answer;

class RandomRun {
public:
    explicit RandomRun(std::uint64_t seed) : random_(seed) {}

    template <class E>
    E pick(std::uint64_t count) {
        return static_cast<E>(random_.below(count));
    }
    bool flag() { return random_.chance(0.5); }
    std::int64_t integer() { return flag() ? static_cast<std::int64_t>(random_.next()) : static_cast<std::int64_t>(random_.below(1000)) - 3; }
    int small() { return static_cast<int>(integer()); }
    double number() {
        constexpr std::array<double, 6> kEdges = {0.0, 0.1, -1e-300, 1e300, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()};
        return flag() ? kEdges[random_.below(kEdges.size())] : random_.normal() * 1e5;
    }
    base::Duration time() { return base::Duration(integer()); }
    base::Tokens tokens() { return {integer()}; }
    base::Bytes bytes() { return {integer()}; }
    std::string text() {
        static const std::array<std::string, 7> kPieces = {
            "", "ends.", "\xff\xfe broken \xc3", std::string("nul\0inside", 10), "\"quote\\\n\r\t\x01", "größer 漢字 🙂", "\xed\xa0\x80"};
        std::string made;
        for (auto pieces = random_.below(3); pieces > 0; --pieces) made += kPieces[random_.below(kPieces.size())];
        return made;
    }
    template <class Make>
    auto list(Make make) {
        std::vector<decltype(make())> made;
        for (auto size = random_.below(3); size > 0; --size) made.push_back(make());
        return made;
    }
    template <class Make>
    auto map(Make make) {
        std::map<std::string, decltype(make())> made;
        for (auto size = random_.below(3); size > 0; --size) made[text()] = make();
        return made;
    }
    template <class Make>
    auto maybe(Make make) {
        return flag() ? std::optional(make()) : std::nullopt;
    }
    template <class Make>
    auto fact(Make make) -> Fact<decltype(make())> {
        if (flag()) return Fact<decltype(make())>::unavailable(text());
        return {make(), pick<Provenance>(3), text()};
    }
    std::optional<base::Duration> moment() {
        return maybe([&] { return time(); });
    }

    Message message() { return {text(), text()}; }
    Prompt prompt() {
        Check check{maybe([&] { return small(); }), list([&] { return text(); }), flag(), maybe([&] { return text(); }), maybe([&] { return text(); })};
        return {text(), list([&] { return message(); }), maybe([&] { return tokens(); }), check, list([&] { return text(); })};
    }
    Experiment experiment() {
        return {list([&] { return small(); }),
                list([&] { return prompt(); }),
                small(),
                maybe([&] { return tokens(); }),
                maybe([&] { return number(); }),
                maybe([&] { return number(); }),
                integer(),
                flag(),
                time(),
                moment(),
                moment(),
                time(),
                list([&] { return Experiment::Step{text(), text(), small()}; }),
                maybe([&] { return text(); })};
    }
    ServerFacts server() {
        return {text(),
                text(),
                text(),
                text(),
                fact([&] { return tokens(); }),
                fact([&] { return tokens(); }),
                fact([&] { return integer(); }),
                fact([&] { return flag(); }),
                fact([&] { return tokens(); }),
                fact([&] { return bytes(); }),
                fact([&] { return integer(); }),
                fact([&] { return number(); }),
                map([&] { return text(); })};
    }
    Sample sample() {
        const auto real = [&] { return maybe([&] { return number(); }); };
        return {time(), text(), real(), real(), real(), real(), real(), real(), map([&] { return number(); })};
    }
    ServerError error() {
        return {maybe([&] { return small(); }), text(), text(), text(), pick<ErrorPlace>(3)};
    }
    Record record() {
        Record r;
        r.request = {text(),
                     text(),
                     small(),
                     text(),
                     text(),
                     integer(),
                     small(),
                     pick<Api>(6),
                     text(),
                     list([&] { return message(); }),
                     maybe([&] { return tokens(); }),
                     maybe([&] { return number(); }),
                     maybe([&] { return number(); }),
                     list([&] { return text(); }),
                     flag()};
        r.timeline = {moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      pick<StampClock>(2),
                      list([&] { return time(); })};
        r.status = maybe([&] { return small(); });
        r.headers = map([&] { return text(); });
        r.http_version = text();
        r.framing = pick<Framing>(4);
        r.text = text(), r.reasoning = text(), r.tool_calls = text();
        r.text_events = integer(), r.comments = integer(), r.unread_events = integer();
        r.response_id = text(), r.response_model = text();
        r.end = {maybe([&] { return text(); }), maybe([&] { return error(); }), flag(), pick<Transport>(7)};
        r.disconnect = {pick<Disconnect::By>(4), pick<Disconnect::Kind>(3), integer()};
        r.server_errors = list([&] { return error(); });
        r.stop_details = map([&] { return text(); });
        r.finish_events = small();
        for (auto* field :
             {&r.requested_max_tokens, &r.effective_max_tokens, &r.prompt_tokens, &r.cached_tokens, &r.output_tokens, &r.reasoning_tokens, &r.counted_tokens})
            *field = fact([&] { return tokens(); });
        for (auto* field : {&r.queue_ms, &r.prompt_ms, &r.client_deadline_ms, &r.gateway_deadline_ms, &r.server_deadline_ms, &r.paused_ms})
            *field = fact([&] { return number(); });
        r.deadline_fired = pick<DeadlineFired>(4);
        r.preemptions = fact([&] { return integer(); });
        r.kv_bytes = fact([&] { return bytes(); }), r.memory_free_bytes = fact([&] { return bytes(); });
        r.fullstop_cause = maybe([&] { return text(); });
        r.shape = {flag(), flag(), flag(), flag(), flag(), maybe([&] { return integer(); }), maybe([&] { return integer(); })};
        r.capture = {text(), list([&] { return Capture::Arrival{time(), random_.next()}; }), flag()};
        return r;
    }

    Run run() {
        Run r{.id = "run-" + std::to_string(random_.next()),
              .started = {integer()},
              .elapsed = time(),
              .fullstop_version = text(),
              .fullstop_build = text(),
              .url = text(),
              .model = text(),
              .api = pick<Api>(6),
              .experiment = experiment(),
              .arms = {},
              .server_before = {},
              .server_after = {},
              .records = {},
              .samples = {},
              .interrupted = flag(),
              .notes = list([&] { return text(); })};
        r.arms = list([&] { return Arm{text(), text(), text()}; });
        r.server_before = map([&] { return server(); });
        r.server_after = map([&] { return server(); });
        r.records = list([&] { return record(); });
        r.samples = list([&] { return sample(); });
        return r;
    }

private:
    base::Random random_;
};

template <class T>
bool same(const T& a, const T& b) {
    return a == b;
}
bool same(const Record& a, const Record& b);
bool same(const Sample& a, const Sample& b);
bool same(const Arm& a, const Arm& b);
bool same(const ServerFacts& a, const ServerFacts& b);
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::ranges::equal(a, b, [](const T& x, const T& y) { return same(x, y); });
}
bool same(const std::map<std::string, ServerFacts>& a, const std::map<std::string, ServerFacts>& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}
bool same(const Arm& a, const Arm& b) {
    const auto& [a1, a2, a3] = a;
    return std::tie(a1, a2, a3) == std::tie(b.name, b.url, b.how);
}
bool same(const Timeline& a, const Timeline& b) {
    const auto tie = [](const Timeline& t) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14] = t;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14);
    };
    return tie(a) == tie(b);
}
bool same(const Capture& a, const Capture& b) {
    const auto& [bytes, arrivals, truncated] = a;
    return bytes == b.bytes && truncated == b.truncated && std::ranges::equal(arrivals, b.arrivals, [](const Capture::Arrival& x, const Capture::Arrival& y) {
               const auto& [at, end] = x;
               return at == y.at && end == y.end;
           });
}
bool same(const Record& a, const Record& b) {
    const auto tie = [](const Record& r) {
        const auto& [a1, timeline, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28,
                     a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, capture] = r;
        return std::tie(a1, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30,
                        a31, a32, a33, a34, a35, a36, a37, a38);
    };
    return tie(a) == tie(b) && same(a.timeline, b.timeline) && same(a.capture, b.capture);
}
bool same(const Sample& a, const Sample& b) {
    const auto tie = [](const Sample& s) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9] = s;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9);
    };
    return tie(a) == tie(b);
}
bool same(const ServerFacts& a, const ServerFacts& b) {
    const auto tie = [](const ServerFacts& s) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13] = s;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13);
    };
    return tie(a) == tie(b);
}
bool same(const Experiment& a, const Experiment& b) {
    const auto tie = [](const Experiment& e) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14] = e;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14);
    };
    return tie(a) == tie(b);
}
/// Names what differs; "" when nothing does.
std::string difference(const Run& a, const Run& b) {
    const auto& [id, started, elapsed, version, build, url, model, api, experiment, arms, before, after, records, samples, interrupted, notes] = a;
    if (std::tie(id, started.unix_ns, elapsed, version, build, url, model, api) !=
        std::tie(b.id, b.started.unix_ns, b.elapsed, b.fullstop_version, b.fullstop_build, b.url, b.model, b.api))
        return "head";
    if (!same(experiment, b.experiment)) return "experiment";
    if (!same(arms, b.arms)) return "arms";
    if (!same(before, b.server_before) || !same(after, b.server_after)) return "server facts";
    if (!same(records, b.records)) return "records";
    if (!same(samples, b.samples)) return "samples";
    if (interrupted != b.interrupted || notes != b.notes) return "notes";
    return "";
}

fs::path fresh_folder() {
    std::string name = (fs::path(testing::TempDir()) / "fullstop_store_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return name;
}

class RoundTrip : public testing::Test {
protected:
    fs::path folder = fresh_folder();
    ~RoundTrip() override { fs::remove_all(folder); }
};

TEST_F(RoundTrip, AnyRunComesBackExactlyAsItWasStored) {
    auto store = Store::open(folder / "runs.sqlite", Store::Access::kWrite).value();
    const auto reader = Store::open(folder / "runs.sqlite", Store::Access::kRead).value();
    int cases = 0;
    const bool held = rc::check("stored, loaded, equal", [&](std::uint64_t seed) {
        answer::Run run = RandomRun(seed).run();
        run.id += "-" + std::to_string(++cases);  // a seed may come twice
        RC_ASSERT(store.begin_run(run).has_value());
        for (const Record& record : run.records) RC_ASSERT(store.add_record(run.id, record).has_value());
        for (const Sample& sample : run.samples) RC_ASSERT(store.add_sample(run.id, sample).has_value());
        RC_ASSERT(store.finish_run(run).has_value());
        RC_ASSERT(difference(reader.load(run.id, Captures::kLoaded).value(), run) == "");
    });
    EXPECT_TRUE(held);
}

TEST_F(RoundTrip, WhatChangesDuringARunIsUpdated) {
    answer::Run run = RandomRun(1).run();
    run.records.clear(), run.samples.clear();
    auto store = Store::open(folder / "runs.sqlite", Store::Access::kWrite).value();
    ASSERT_TRUE(store.begin_run(run));
    run.experiment.order.push_back({"control", "level", 8});
    run.elapsed = std::chrono::seconds(77);
    run.interrupted = !run.interrupted;
    run.notes = {"one note"};
    run.server_after["deployed"].name = "llama-server";
    ASSERT_TRUE(store.finish_run(run));
    EXPECT_EQ(difference(store.load("last", Captures::kLoaded).value(), run), "");
}

TEST_F(RoundTrip, TheComparisonItselfSeesEveryKindOfDifference) {
    const answer::Run run = RandomRun(4).run();
    ASSERT_FALSE(run.records.empty());
    answer::Run other = run;
    other.records[0].timeline.gaps.push_back(base::Duration(1));
    EXPECT_EQ(difference(run, other), "records");
    other = run;
    other.records[0].capture.bytes += "x";
    EXPECT_EQ(difference(run, other), "records");
    other = run;
    other.experiment.seed += 1;
    EXPECT_EQ(difference(run, other), "experiment");
}

}  // namespace
}  // namespace fullstop::adapters::sqlite
