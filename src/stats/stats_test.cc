// Every expected number is a published or hand-countable one, named beside it.
#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <array>

#include "stats/evalues.h"
#include "stats/interval.h"
#include "stats/quantile.h"
#include "stats/tests_of_pairs.h"
#include "stats/tests_of_rates.h"

namespace fullstop::stats {
namespace {

TEST(Quantile, InterpolatesLinearlyBetweenOrderStatistics) {
    const std::array values{4.0, 1.0, 3.0, 2.0};
    EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);  // R: quantile(1:4, 0.25)
    EXPECT_DOUBLE_EQ(median(values), 2.5);
    EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
    EXPECT_DOUBLE_EQ(quantile(std::array{7.0}, 0.99), 7);
}

TEST(ClopperPearson, GivesTheTabulatedExactIntervals) {
    EXPECT_NEAR(clopper_pearson(0, 10).high, 0.3085, 5e-5);
    EXPECT_EQ(clopper_pearson(0, 10).low, 0);
    EXPECT_NEAR(clopper_pearson(4, 20).low, 0.0573, 5e-5);
    EXPECT_NEAR(clopper_pearson(4, 20).high, 0.4366, 5e-5);
    EXPECT_NEAR(clopper_pearson(10, 10).low, 0.6915, 5e-5);
    EXPECT_EQ(clopper_pearson(10, 10).high, 1);
    EXPECT_EQ(clopper_pearson(0, 0).high, 1);
}

TEST(MedianInterval, TakesTheTabulatedOrderStatistics) {
    std::vector<double> ten, fifteen, five;
    for (int i = 1; i <= 15; ++i) {
        if (i <= 5) five.push_back(i);
        if (i <= 10) ten.push_back(i);
        fifteen.push_back(i);
    }
    EXPECT_EQ(median_interval(ten).low, 2);  // n = 10: 2nd and 9th, 97.9 %
    EXPECT_EQ(median_interval(ten).high, 9);
    EXPECT_EQ(median_interval(fifteen).low, 4);  // n = 15: 4th and 12th, 96.5 %
    EXPECT_EQ(median_interval(fifteen).high, 12);
    EXPECT_EQ(median_interval(five).low, 1);
    EXPECT_EQ(median_interval(five).high, 5);
}

TEST(BootstrapMean, IsRepeatableAndHoldsTheMean) {
    const std::array values{1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
    const Bounds once = bootstrap_mean(values, 1), again = bootstrap_mean(values, 1);
    EXPECT_EQ(once.low, again.low);
    EXPECT_EQ(once.high, again.high);
    EXPECT_LT(once.low, 3.5);
    EXPECT_GT(once.high, 3.5);
    EXPECT_GT(once.low, 1);
}

TEST(Fisher, FindsTheLadyTastingTea) {
    EXPECT_NEAR(fisher_greater({3, 4}, {1, 4}), 17.0 / 70, 1e-12);  // Fisher 1935
    EXPECT_NEAR(fisher_greater({4, 4}, {0, 4}), 1.0 / 70, 1e-12);
    EXPECT_EQ(fisher_greater({0, 4}, {4, 4}), 1);
    EXPECT_EQ(fisher_greater({3, 3}, {0, 0}), 1);
}

TEST(Fisher, SeesEightCutsOfSixteenAgainstTheDefaultBaseline) {
    EXPECT_LT(fisher_greater({8, 16}, {0, 32}) * 3, 0.01);
}

TEST(Holm, StepsDownThroughTheOrderedValues) {
    const std::vector<double> adjusted = holm(std::array{0.01, 0.04, 0.03, 0.005});
    EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
    EXPECT_DOUBLE_EQ(adjusted[1], 0.06);
    EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
    EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
    EXPECT_TRUE(holm({}).empty());
}

TEST(SignFlip, AgreesWithFishersEnumerationOfDarwinsMaize) {
    const std::array darwin{49.0, -67.0, 8.0,  16.0, 6.0,  23.0, 28.0, 41.0,
                            14.0, 29.0,  56.0, 24.0, 75.0, 60.0, -48.0};
    EXPECT_NEAR(sign_flip(darwin, 1), 1726.0 / 32768, 0.007);  // 4 standard errors of 10 000 draws
    EXPECT_EQ(sign_flip(darwin, 1), sign_flip(darwin, 1));
    EXPECT_EQ(sign_flip({}, 1), 1);
}

TEST(SignFlip, IsNeverZeroAndSaysNothingOfEqualPairs) {
    EXPECT_EQ(sign_flip(std::array{0.0, 0.0, 0.0}, 1), 1);
    const std::vector<double> shift(40, -1.0);
    EXPECT_GT(sign_flip(shift, 1), 0);
    EXPECT_LT(sign_flip(shift, 1), 0.001);
}

TEST(SignTest, GivesTheTextbookValue) {
    const std::array legs{4.0, 4.0, -4.0, 3.0, 4.0,
                          2.0, 5.0, -1.0, 5.0, 2.0};  // Zar: 8 of 10 deer, p = 0.109
    EXPECT_NEAR(sign_test(legs), 0.109375, 1e-9);
    EXPECT_EQ(sign_test(std::array{0.0, 0.0}), 1);
}

TEST(Stats, EveryIntervalHoldsItsEstimate) {
    EXPECT_TRUE(rc::check("clopper_pearson", [] {
        const int n = *rc::gen::inRange(1, 400);
        const int k = *rc::gen::inRange(0, n + 1);
        const Bounds bounds = clopper_pearson(k, n);
        RC_ASSERT(bounds.low <= static_cast<double>(k) / n &&
                  static_cast<double>(k) / n <= bounds.high);
    }));
    EXPECT_TRUE(rc::check("fisher", [] {
        const int n = *rc::gen::inRange(1, 60), m = *rc::gen::inRange(1, 60);
        const int k = *rc::gen::inRange(0, n + 1), j = *rc::gen::inRange(0, m + 1);
        const double p = fisher_greater({k, n}, {j, m});
        RC_ASSERT(p > 0 && p <= 1);
        if (k > 0) RC_ASSERT(fisher_greater({k - 1, n}, {j, m}) >= p - 1e-12);
    }));
}

TEST(RateEvalue, GrowsWithEventsAsTheMixtureSays) {
    EXPECT_NEAR(rate_evalue({0, 16}), 0.164622, 1e-6);
    EXPECT_NEAR(rate_evalue({1, 1}), 22.7, 1e-9);
    EXPECT_NEAR(rate_evalue({1, 16}), 1.4851, 1e-4);
    EXPECT_NEAR(rate_evalue({2, 2}), 964.4, 1e-9);
    EXPECT_NEAR(rate_evalue({2, 16}), 16.636, 1e-3);
    EXPECT_NEAR(rate_evalue({3, 24}), 78.3572, 1e-4);
    EXPECT_NEAR(rate_evalue({4, 40}), 158.261, 1e-3);
    EXPECT_NEAR(rate_evalue({8, 8}) / 2.21124e14, 1, 1e-5);
}

TEST(RateEvalue, IsOneOnAverageAtTheToleratedRate) {
    double mean = 0;
    for (int k = 0; k <= 12; ++k) {
        double ways = 1;
        for (int i = 0; i < k; ++i) ways = ways * (12 - i) / (i + 1);
        mean += ways * std::pow(0.01, k) * std::pow(0.99, 12 - k) * rate_evalue({k, 12});
    }
    EXPECT_NEAR(mean, 1, 1e-9);
}

TEST(RateEvalue, OnceReachedItStaysReached) {
    const std::array<char, 6> early{1, 1, 0, 0, 0, 0};
    EXPECT_NEAR(highest_rate_evalue(early), 964.4, 1e-9);
    EXPECT_EQ(highest_rate_evalue(std::array<char, 2>{}), 1);
}

TEST(PairEvalue, ComparesLoadedWithAlone) {
    EXPECT_NEAR(pair_evalue(0, 0, 16), 0.709505, 1e-6);
    EXPECT_NEAR(pair_evalue(0, 4, 16), 14.6761, 1e-4);
    EXPECT_NEAR(pair_evalue(0, 8, 16), 403.072, 1e-3);
    EXPECT_NEAR(pair_evalue(1, 8, 16), 13.4537, 1e-4);
    EXPECT_NEAR(pair_evalue(0, 9, 60), 385.739, 1e-3);
}

TEST(RateBound, HoldsAtEveryMoment) {
    EXPECT_NEAR(rate_bound({0, 16}), 0.17867, 1e-5);
    EXPECT_NEAR(rate_bound({0, 31}), 0.09867, 1e-5);
    EXPECT_NEAR(rate_bound({0, 80}), 0.04060, 1e-5);
    EXPECT_NEAR(rate_bound({1, 40}), 0.17306, 1e-5);
    EXPECT_NEAR(rate_bound({2, 100}), 0.09504, 1e-5);
    EXPECT_EQ(rate_bound({0, 0}), 1);
    EXPECT_EQ(rate_bound({3, 3}), 1);
}

TEST(ScoreEvalue, BetsOnTheSignOfPairs) {
    EXPECT_NEAR(highest_score_evalue(std::array{1.0, 1.0, 1.0}), 5.01286, 1e-5);
    EXPECT_NEAR(highest_score_evalue(std::vector<double>(7, 0.95)), 44.1128, 1e-4);
    // The first bet wins 0.95 x (0.3 x 0.4 + 0.4 x 0.7 + 0.3 x 0.95); it never stands higher.
    EXPECT_NEAR(highest_score_evalue(std::array{0.95, -0.95, 0.95, 0.5}), 1.65075, 1e-9);
    EXPECT_EQ(highest_score_evalue(std::array{-1.0, -1.0}), 1);
}

TEST(FlipEvalue, CountsWhoStoppedFirst) {
    EXPECT_NEAR(flip_evalue({3, 3}), 273.387, 1e-3);
    EXPECT_NEAR(flip_evalue({4, 5}), 367.355, 1e-3);
    EXPECT_NEAR(flip_evalue({1, 10}), 0.155438, 1e-6);
    EXPECT_NEAR(flip_evalue({5, 12}), 28.5974, 1e-4);
}

}  // namespace
}  // namespace fullstop::stats
