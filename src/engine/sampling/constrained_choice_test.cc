// A choice under a constraint is the choice that masking everything first would have made.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "engine/sampling/sampler.h"

namespace fullstop::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Only final : public TokenConstraint {
public:
    explicit Only(std::function<bool(TokenId)> allows) : allows_(std::move(allows)) {}
    void keep_allowed(std::vector<TokenId>& tokens) override {
        asked += tokens.size();
        std::erase_if(tokens, [&](TokenId token) { return !allows_(token); });
    }
    void accept(TokenId) override {}
    std::size_t asked = 0;

private:
    std::function<bool(TokenId)> allows_;
};

/// Logits as a model has them: few high ones, many low ones.
std::vector<float> row_of(std::uint64_t seed, std::size_t size, double spread) {
    base::Random random(seed);
    std::vector<float> row(size);
    for (float& logit : row) logit = static_cast<float>(random.normal() * spread);
    return row;
}

/// What is left of the row when all that is refused is masked first.
std::vector<float> masked(std::vector<float> row, const std::function<bool(TokenId)>& allows) {
    for (std::size_t i = 0; i < row.size(); ++i)
        if (!allows(static_cast<TokenId>(i))) row[i] = -kInfinity;
    return row;
}

using Counts = std::map<TokenId, double>;
Counts shares(const Sampling& sampling, const std::vector<float>& row, TokenConstraint* constraint,
              int count) {
    Sampler sampler(sampling);
    Counts seen;
    for (int i = 0; i < count; ++i) seen[*sampler.pick(row, constraint)] += 1.0 / count;
    return seen;
}

/// Half of the summed differences: 0 for equal distributions, 1 for disjoint ones.
double distance(const Counts& a, const Counts& b) {
    Counts all = a;
    for (const auto& [token, share] : b) all[token] -= share;
    double sum = 0;
    for (const auto& [token, difference] : all) sum += std::abs(difference) / 2;
    return sum;
}

const std::vector<std::function<bool(TokenId)>> kForms = {
    [](TokenId) { return true; },
    [](TokenId token) { return token % 2 == 0; },
    [](TokenId token) { return token % 17 == 3; },
    [](TokenId token) { return token >= 290; },
};
const std::vector<Sampling> kSamplings = {
    {.seed = 1},
    {.temperature = 0.6, .seed = 2},
    {.top_p = 0.7, .seed = 3},
    {.top_k = 5, .seed = 4},
    {.min_p = 0.2, .seed = 5},
    {.temperature = 1.3, .top_p = 0.9, .top_k = 40, .min_p = 0.02, .seed = 6}};

TEST(ConstrainedChoice, IsASampleOfTheMaskedDistributionWhateverCutsThereAre) {
    constexpr int kDraws = 4000;
    for (std::size_t form = 0; form < kForms.size(); ++form)
        for (const Sampling& sampling : kSamplings) {
            const auto row = row_of(form + 10, 400, 2.0);
            Only constraint(kForms[form]);
            const Counts constrained = shares(sampling, row, &constraint, kDraws);
            Sampling other = sampling;
            other.seed += 1000;
            const auto reference = masked(row, kForms[form]);
            const Counts expected = shares(other, reference, nullptr, kDraws);
            // Two samples of one distribution over k tokens differ by at most about 0.56 sqrt(k /
            // draws).
            const double noise = 0.56 * std::sqrt(static_cast<double>(expected.size()) / kDraws);
            EXPECT_LT(distance(constrained, expected), 0.02 + noise)
                << "form " << form << ", seed " << sampling.seed;
            for (const auto& [token, share] : constrained)
                EXPECT_TRUE(kForms[form](token)) << token;
        }
}

/// With cuts exactly the same tokens are left, so the rare ones cannot hide in the noise of the
/// test above.
TEST(ConstrainedChoice, CutsLeaveTheSameTokensAsIfAllWereMaskedFirst) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed)
        for (const Sampling& cut : {Sampling{.top_p = 0.5}, Sampling{.top_k = 3},
                                    Sampling{.min_p = 0.3}, Sampling{.top_p = 0.8, .top_k = 20}}) {
            const auto& form = kForms[seed % kForms.size()];
            const auto row = row_of(seed, 300, 1.0 + static_cast<double>(seed % 5));
            Only constraint(form);
            Sampling sampling = cut;
            sampling.seed = seed;
            const Counts constrained = shares(sampling, row, &constraint, 1200);
            const Counts reference = shares(sampling, masked(row, form), nullptr, 1200);
            for (const auto& [token, share] : constrained)
                if (share > 0.015)
                    EXPECT_TRUE(reference.contains(token))
                        << "seed " << seed << ", token " << token;
            for (const auto& [token, share] : reference)
                if (share > 0.015)
                    EXPECT_TRUE(constrained.contains(token))
                        << "seed " << seed << ", token " << token;
        }
}

TEST(ConstrainedChoice, TemperatureZeroTakesTheMostProbableAllowedOne) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const auto row = row_of(seed, 2000, 3.0);
        for (const auto& form : kForms) {
            Only constraint(form);
            Sampler free({.temperature = 0}), bound({.temperature = 0});
            EXPECT_EQ(bound.pick(row, &constraint), free.pick(masked(row, form)));
        }
    }
}

TEST(ConstrainedChoice, AFormThatRefusesNothingChangesNoToken) {
    const auto row = row_of(3, 2000, 2.5);
    for (const Sampling& sampling :
         {Sampling{.temperature = 0}, Sampling{.temperature = 0.8, .seed = 4}}) {
        Sampler free(sampling), bound(sampling);
        Only constraint(kForms[0]);
        for (int i = 0; i < 50; ++i) EXPECT_EQ(bound.pick(row, &constraint), free.pick(row));
        EXPECT_EQ(constraint.asked, 50U) << "about each of them once";
    }
}

TEST(ConstrainedChoice, CutsAskAboutFewTokensOfARowThatModelsMake) {
    auto row = row_of(3, 20'000, 2.0);
    for (int i = 0; i < 30; ++i)
        row[static_cast<std::size_t>(i) * 500] = 18.0F - 0.3F * static_cast<float>(i);
    for (const Sampling& sampling :
         {Sampling{.top_p = 0.9, .seed = 1}, Sampling{.top_k = 30, .seed = 1},
          Sampling{.min_p = 0.05, .seed = 1}}) {
        Sampler bound(sampling);
        Only constraint(kForms[0]);
        for (int i = 0; i < 50; ++i) bound.pick(row, &constraint);
        EXPECT_LT(constraint.asked, 50U * 200);
    }
}

TEST(ConstrainedChoice, AnImprobableTokenIsFoundWhenItIsTheOnlyOneAllowed) {
    std::vector<float> row(5000, 0.0F);
    row[7] = 60, row[4321] = -80;
    Only one([](TokenId token) { return token == 4321; });
    for (const Sampling& sampling : kSamplings) EXPECT_EQ(Sampler(sampling).pick(row, &one), 4321);
    EXPECT_EQ(Sampler({.temperature = 0}).pick(row, &one), 4321);
}

TEST(ConstrainedChoice, NothingAllowedIsNoToken) {
    Only none([](TokenId) { return false; }), lost([](TokenId token) { return token == 1; });
    for (const Sampling& sampling : kSamplings) {
        EXPECT_EQ(Sampler(sampling).pick(row_of(1, 100, 1), &none), std::nullopt);
        EXPECT_EQ(Sampler(sampling).pick(std::vector<float>{1, -kInfinity, 2}, &lost), std::nullopt)
            << "allowed, but the model forbids it";
        EXPECT_EQ(Sampler(sampling).pick(std::vector<float>{std::nanf("")}, &lost), std::nullopt);
    }
}

}  // namespace
}  // namespace fullstop::engine
