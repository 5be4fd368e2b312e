// For tests: what every kind of store owes. A run that was stored comes back exactly, every field
// of it. The comparison unpacks every structure by structured bindings, so a field added to one
// breaks the build of these tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "store/store.h"
#include "store/test_random_run.h"

namespace fullstop::answer {

template <class T>
inline bool same(const T& a, const T& b) {
    return a == b;
}
inline bool same(const Record& a, const Record& b);
inline bool same(const Sample& a, const Sample& b);
inline bool same(const Arm& a, const Arm& b);
inline bool same(const ServerFacts& a, const ServerFacts& b);
template <class T>
inline bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::ranges::equal(a, b, [](const T& x, const T& y) { return same(x, y); });
}
inline bool same(const std::map<std::string, ServerFacts>& a,
                 const std::map<std::string, ServerFacts>& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
        return x.first == y.first && same(x.second, y.second);
    });
}
inline bool same(const Arm& a, const Arm& b) {
    const auto& [a1, a2, a3] = a;
    return std::tie(a1, a2, a3) == std::tie(b.name, b.url, b.how);
}
inline bool same(const Timeline& a, const Timeline& b) {
    const auto tie = [](const Timeline& t) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14] = t;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14);
    };
    return tie(a) == tie(b);
}
inline bool same(const Capture& a, const Capture& b) {
    const auto& [bytes, arrivals, truncated] = a;
    return bytes == b.bytes && truncated == b.truncated &&
           std::ranges::equal(arrivals, b.arrivals,
                              [](const Capture::Arrival& x, const Capture::Arrival& y) {
                                  const auto& [at, end] = x;
                                  return at == y.at && end == y.end;
                              });
}
inline bool same(const Record& a, const Record& b) {
    const auto tie = [](const Record& r) {
        const auto& [a1, timeline, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16,
                     a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32,
                     a33, a34, a35, a36, a37, a38, capture] = r;
        return std::tie(a1, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
                        a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33,
                        a34, a35, a36, a37, a38);
    };
    return tie(a) == tie(b) && same(a.timeline, b.timeline) && same(a.capture, b.capture);
}
inline bool same(const Sample& a, const Sample& b) {
    const auto tie = [](const Sample& s) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9] = s;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9);
    };
    return tie(a) == tie(b);
}
inline bool same(const ServerFacts& a, const ServerFacts& b) {
    const auto tie = [](const ServerFacts& s) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13] = s;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13);
    };
    return tie(a) == tie(b);
}
inline bool same(const Experiment& a, const Experiment& b) {
    const auto tie = [](const Experiment& e) {
        const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14] = e;
        return std::tie(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14);
    };
    return tie(a) == tie(b);
}
/// Names what differs; "" when nothing does.
inline std::string difference(const Run& a, const Run& b) {
    const auto& [id, started, elapsed, version, build, url, model, api, experiment, arms, before,
                 after, records, samples, interrupted, notes] = a;
    if (std::tie(id, started.unix_ns, elapsed, version, build, url, model, api) !=
        std::tie(b.id, b.started.unix_ns, b.elapsed, b.fullstop_version, b.fullstop_build, b.url,
                 b.model, b.api))
        return "head";
    if (!same(experiment, b.experiment)) return "experiment";
    if (!same(arms, b.arms)) return "arms";
    if (!same(before, b.server_before) || !same(after, b.server_after)) return "server facts";
    if (!same(records, b.records)) return "records";
    if (!same(samples, b.samples)) return "samples";
    if (interrupted != b.interrupted || notes != b.notes) return "notes";
    return "";
}

}  // namespace fullstop::answer

namespace fullstop::store {

/// `reader` is the same store, opened for reading.
inline void any_run_comes_back_exactly_as_it_was_stored(Store& writer, const Store& reader) {
    int cases = 0;
    const bool held = rc::check("stored, loaded, equal", [&](std::uint64_t seed) {
        answer::Run run = answer::RandomRun(seed).run();
        run.id += "-" + std::to_string(++cases);  // a seed may come twice
        RC_ASSERT(writer.begin_run(run).has_value());
        for (const answer::Record& record : run.records)
            RC_ASSERT(writer.add_record(run.id, record).has_value());
        for (const answer::Sample& sample : run.samples)
            RC_ASSERT(writer.add_sample(run.id, sample).has_value());
        RC_ASSERT(writer.finish_run(run).has_value());
        RC_ASSERT(answer::difference(reader.load(run.id, Captures::kLoaded).value(), run) == "");
    });
    EXPECT_TRUE(held);
}

inline void what_changes_during_a_run_is_updated(Store& writer) {
    answer::Run run = answer::RandomRun(1).run();
    run.records.clear(), run.samples.clear();
    ASSERT_TRUE(writer.begin_run(run));
    run.experiment.order.push_back({"control", "level", 8});
    run.elapsed = std::chrono::seconds(77);
    run.interrupted = !run.interrupted;
    run.notes = {"one note"};
    run.server_after["deployed"].name = "llama-server";
    ASSERT_TRUE(writer.finish_run(run));
    EXPECT_EQ(answer::difference(writer.load("last", Captures::kLoaded).value(), run), "");
}

}  // namespace fullstop::store
