// /metrics is what Prometheus reads: every family described once, histograms that add up, and the
// numbers the engine has.
#include "engine/http/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/test_host.h"

namespace fullstop::engine {
namespace {

using testing::HasSubstr;

/// The text format 0.0.4, strictly: sample -> value, and the type of each family.
struct Exposition {
    std::map<std::string, double> samples;
    std::map<std::string, std::string> types;

    explicit Exposition(const std::string& text) {
        std::istringstream lines(text);
        std::set<std::string> helped;
        std::string family;
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string hash, kind, name;
            if (line.starts_with('#')) {
                words >> hash >> kind >> name;
                if (kind == "HELP") EXPECT_TRUE(helped.insert(name).second) << line;
                if (kind == "TYPE") {
                    EXPECT_TRUE(helped.contains(name)) << line;
                    words >> types[name];
                    family = name;
                }
                continue;
            }
            const std::size_t space = line.rfind(' ');
            const std::string series = line.substr(0, space), number = line.substr(space + 1);
            double value = -1;
            const auto [end, error] =
                std::from_chars(number.data(), number.data() + number.size(), value);
            EXPECT_TRUE(error == std::errc() && end == number.data() + number.size()) << line;
            EXPECT_TRUE(samples.emplace(series, value).second) << "twice: " << line;
            EXPECT_TRUE(series.starts_with(family)) << line << " stands below " << family;
        }
        EXPECT_TRUE(text.ends_with('\n'));
    }
    double operator[](const std::string& series) const {
        return samples.contains(series) ? samples.at(series) : -1;
    }
};

TEST(Metrics, FollowTheRulesOfTheFormat) {
    Host host(TestBackend{base::Tokens{64}, 2});
    for (int i = 0; i < 3; ++i) host.chat(R"("stream":true,"max_tokens":20)");
    host.run();
    const Exposition read(host.get("/metrics"));
    for (const auto& [family, type] : read.types) {
        EXPECT_TRUE(type == "gauge" || type == "counter" || type == "histogram") << family;
        EXPECT_EQ(type == "counter", family.ends_with("_total") && type != "gauge") << family;
        if (type != "histogram") continue;
        double below = 0;
        std::vector<std::pair<double, double>> buckets;
        for (const auto& [series, value] : read.samples) {
            if (!series.starts_with(family + "_bucket{le=\"") || series.ends_with("\"+Inf\"}"))
                continue;
            buckets.emplace_back(std::stod(series.substr(family.size() + 12)), value);
        }
        std::ranges::sort(buckets);
        EXPECT_GE(buckets.size(), 10U) << family;
        for (const auto& [bound, count] : buckets)
            EXPECT_GE(count, std::exchange(below, count)) << family << ' ' << bound;
        EXPECT_GE(read[family + "_bucket{le=\"+Inf\"}"], below);
        EXPECT_EQ(read[family + "_bucket{le=\"+Inf\"}"], read[family + "_count"]) << family;
        EXPECT_GE(read[family + "_sum"], 0) << family;
    }
}

TEST(Metrics, BlocksAddUpAndEachKindOfPauseIsCounted) {
    Host host(TestBackend{base::Tokens{64}, 2});
    host.backend.answers["user:hi\n"] = std::string(40, 'x');
    for (int i = 0; i < 2; ++i) host.chat(R"("stream":true,"max_tokens":20)");
    for (int i = 0; i < 4; ++i) host.step();
    const Exposition read(host.get("/metrics"));
    EXPECT_EQ(read["fullstop_kv_blocks{state=\"owned\"}"], 2) << "two answers below 16 tokens";
    EXPECT_EQ(read["fullstop_kv_blocks{state=\"promised\"}"], 2)
        << "8 + 20 tokens each need two blocks";
    EXPECT_EQ(read["fullstop_kv_blocks{state=\"free\"}"], 4);
    EXPECT_EQ(read["fullstop_preemptions_total{kind=\"recompute\"}"], 0);

    Occupancy busy;
    busy.kv_total = {64};
    busy.swaps = 3;
    busy.recomputes = 2;
    busy.swapped_out = {700};
    busy.swapped_in = {500};
    busy.demoted = 4;
    busy.rejected_early = 5;
    const Exposition counted(Metrics().text(busy, 2));
    EXPECT_EQ(counted["fullstop_preemptions_total{kind=\"swap\"}"], 3);
    EXPECT_EQ(counted["fullstop_preemptions_total{kind=\"recompute\"}"], 2);
    EXPECT_EQ(counted["fullstop_slo_actions_total{action=\"demoted\"}"], 4);
    EXPECT_EQ(counted["fullstop_slo_actions_total{action=\"rejected\"}"], 5);
    EXPECT_EQ(counted["fullstop_swapped_out_bytes_total"], 700);
    EXPECT_EQ(counted["fullstop_swapped_in_bytes_total"], 500);
}

TEST(Metrics, EachEndIsCountedOnceByItsCause) {
    Host host(TestBackend{base::Tokens{64}, 1}, 1);
    host.backend.answers["user:hi\n"] = std::string(40, 'x');
    host.chat(R"("stream":true,"max_tokens":3)");
    host.chat(R"("stream":true,"max_tokens":900)");
    host.chat(R"("stream":true,"max_tokens":3)");
    host.chat(R"("stream":true,"max_tokens":3)");
    host.run();
    const Exposition read(host.get("/metrics"));
    EXPECT_EQ(read["fullstop_answers_total{cause=\"token_limit\",layer=\"settings\"}"], 2);
    EXPECT_EQ(read["fullstop_answers_total{cause=\"request_rejected\",layer=\"settings\"}"], 1);
    EXPECT_EQ(read["fullstop_answers_total{cause=\"admission_rejected\",layer=\"runtime\"}"], 1);
    EXPECT_EQ(read["fullstop_time_to_first_token_seconds_count"], 2);
    EXPECT_EQ(read["fullstop_inter_token_latency_seconds_count"], 4)
        << "two gaps in each of two answers";
    EXPECT_EQ(read["fullstop_output_tokens_total"], 6);
}

}  // namespace
}  // namespace fullstop::engine
