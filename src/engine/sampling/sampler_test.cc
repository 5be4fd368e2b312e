// The next token depends on the logits and the seed, and on nothing else.
#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace fullstop::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::map<TokenId, int> draws(Sampling sampling, const std::vector<float>& logits, int count) {
    Sampler sampler(sampling);
    std::map<TokenId, int> seen;
    for (int i = 0; i < count; ++i) ++seen[*sampler.pick(logits)];
    return seen;
}

TEST(Sampler, TemperatureZeroTakesTheHighestAndTheLowerIdOfEquals) {
    Sampler sampler({.temperature = 0});
    EXPECT_EQ(sampler.pick(std::vector<float>{0, 3, 1, 3, 2, 0, 0, 0, 0, -1}), 1);
    EXPECT_EQ(sampler.pick(std::vector<float>{-5, -4, -9}), 1);
}

TEST(Sampler, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
    base::Random random(7);
    std::vector<std::vector<float>> rows(50, std::vector<float>(1000));
    for (auto& row : rows)
        for (float& logit : row) logit = static_cast<float>(random.normal());
    const auto run = [&](std::uint64_t seed) {
        Sampler sampler({.seed = seed});
        std::vector<TokenId> out;
        for (const auto& row : rows) out.push_back(*sampler.pick(row));
        return out;
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_NE(run(1), run(2));
}

TEST(Sampler, TokensComeAsOftenAsTheirProbabilitySays) {
    const auto seen = draws({.temperature = 1, .seed = 3},
                            {std::log(0.5F), std::log(0.3F), std::log(0.2F)}, 20'000);
    EXPECT_NEAR(seen.at(0), 10'000, 300);
    EXPECT_NEAR(seen.at(1), 6'000, 300);
    EXPECT_NEAR(seen.at(2), 4'000, 300);
}

TEST(Sampler, TemperatureFlattens) {
    const std::vector<float> logits = {2, 0};
    const auto cold = draws({.temperature = 0.5, .seed = 1}, logits, 10'000),
               hot = draws({.temperature = 4, .seed = 1}, logits, 10'000);
    EXPECT_NEAR(cold.at(0), 10'000 / (1 + std::exp(-4.0)), 200);
    EXPECT_NEAR(hot.at(0), 10'000 / (1 + std::exp(-0.5)), 300);
}

TEST(Sampler, EachCutLeavesOnlyWhatItAllows) {
    const std::vector<float> logits = {std::log(0.4F), std::log(0.3F), std::log(0.2F),
                                       std::log(0.1F)};
    EXPECT_EQ(draws({.top_k = 2, .seed = 1}, logits, 2000).size(), 2U);
    EXPECT_EQ(draws({.top_p = 0.65, .seed = 1}, logits, 2000).size(), 2U);  // 0.4 + 0.3 reach it
    EXPECT_EQ(draws({.top_p = 0.01, .seed = 1}, logits, 2000).size(), 1U);  // never fewer than one
    EXPECT_EQ(draws({.min_p = 0.45, .seed = 1}, logits, 2000).size(),
              3U);  // 0.2 is half of 0.4, 0.1 a quarter
}

TEST(Sampler, BiasForbidsAndForces) {
    const std::vector<float> logits = {3, 2, 1};
    Sampler banned({.temperature = 0, .logit_bias = {{0, -100.0F}}});
    EXPECT_EQ(banned.pick(logits), 1);
    EXPECT_EQ(banned.pick(logits), 1);
    EXPECT_EQ(draws({.seed = 1, .logit_bias = {{2, 100.0F}}}, logits, 500).size(), 1U);
}

TEST(Sampler, PenaltiesCountWhatThisAnswerChoseBefore) {
    const std::vector<float> logits = {10, 9.2F, 8};
    Sampler once({.temperature = 0, .presence_penalty = 1});
    std::vector<TokenId> seen;
    for (int i = 0; i < 4; ++i) seen.push_back(*once.pick(logits));
    EXPECT_EQ(seen, (std::vector<TokenId>{0, 1, 0, 0}))
        << "10, then 9 below 9.2, then both paid once: 9, 8.2";
    Sampler each({.temperature = 0, .frequency_penalty = 1});
    seen.clear();
    for (int i = 0; i < 6; ++i) seen.push_back(*each.pick(logits));
    EXPECT_EQ(seen, (std::vector<TokenId>{0, 1, 0, 1, 0, 2}))
        << "10 9.2 | 9 9.2 | 9 8.2 | 8 8.2 | 8 7.2 8 | 7 7.2 8";
    Sampler reward({.temperature = 0, .presence_penalty = -2});
    EXPECT_EQ(reward.pick(std::vector<float>{1, 0}), 0);
    EXPECT_EQ(reward.pick(std::vector<float>{0, 1}), 0);
}

TEST(Sampler, NothingFiniteIsNoTokenAndForbiddenTokensAreNeverDrawn) {
    Sampler sampler({.seed = 1});
    EXPECT_EQ(sampler.pick(std::vector<float>{std::nanf(""), std::nanf("")}), std::nullopt);
    EXPECT_EQ(sampler.pick(std::vector<float>{-kInfinity, -kInfinity}), std::nullopt);
    EXPECT_EQ(sampler.pick(std::vector<float>{kInfinity, 1}), std::nullopt);
    EXPECT_EQ(sampler.pick(std::vector<float>(40)).has_value(), true);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(sampler.pick(std::vector<float>{-kInfinity, 1, std::nanf("")}), 1);
}

}  // namespace
}  // namespace fullstop::engine
