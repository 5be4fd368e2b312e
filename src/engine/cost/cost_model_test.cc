// The cost model against planted coefficients: what was put in comes out, through noise, through
// JSON, and while it runs.
#include "engine/cost/cost_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/random.h"
#include "engine/cost/cost_table.h"

namespace fullstop::engine {
namespace {

using base::Tokens;

/// libllama's F16 kernels with flash attention on two cores, in spirit: few rows are dear at depth,
/// 64 and more are cheap.
constexpr std::array<CostTerms, CostModel::kClasses> kCliff = {
    {{8, 0, 30e-3, 0, 0.5}, {10, 2, 25e-3, 1e-4, 0.5}, {20, 2.2, 1e-3, 1e-4, 0.5}}};

double planted_ms(const PassShape& pass) {
    const CostTerms& c = kCliff[CostModel::class_of(pass.rows)];
    return c[0] + c[1] * static_cast<double>(pass.rows) + c[2] * pass.row_kv +
           c[3] * pass.row_foreign + c[4] * static_cast<double>(pass.outputs);
}

std::vector<CostPoint> measured(double noise, std::uint64_t seed) {
    base::Random random(seed);
    std::vector<CostPoint> points;
    for (const std::int64_t rows : {1, 2, 4, 8, 16, 32, 63, 64, 128, 256})
        for (const std::int64_t depth : {0, 256, 512, 1024})
            for (const std::int64_t foreign : {0, 700}) {
                PassShape pass = rows_at(Tokens{depth}, rows, true, Tokens{foreign});
                if (rows <= 8) pass.outputs = rows;
                points.push_back({pass, planted_ms(pass) * std::exp(noise * random.normal())});
            }
    return points;
}

StepShape one_pass(const PassShape& pass) {
    StepShape step(false);
    step.add(pass);
    return step;
}

TEST(CostModel, ExactTimesGiveBackExactTimes) {
    const auto model = CostModel::fit(measured(0, 1));
    ASSERT_TRUE(model);
    EXPECT_LT(model->fit_error(), 1e-6);
    for (const std::int64_t rows : {1, 3, 24, 63, 64, 200}) {
        const PassShape pass = rows_at(Tokens{777}, rows, true, Tokens{rows > 1 ? 300 : 0});
        EXPECT_NEAR(base::to_ms(model->estimate(one_pass(pass))), planted_ms(pass),
                    0.01 * planted_ms(pass))
            << rows << " rows";
    }
}

RC_GTEST_PROP(CostModel, NoiseOfTenPercentMovesEstimatesByLess, ()) {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto model = CostModel::fit(measured(0.1, seed));
    RC_ASSERT(model.has_value());
    for (const CostTerms& terms : model->coefficients())
        for (const double c : terms) RC_ASSERT(c >= 0);
    RC_ASSERT(model->fit_noise() > 0.05 && model->fit_noise() < 0.2);
    double miss = 0;
    int count = 0;
    for (const CostPoint& point : measured(0, 1)) {
        miss += std::abs(base::to_ms(model->estimate(one_pass(point.pass))) / point.ms - 1);
        ++count;
    }
    RC_ASSERT(miss / count < 0.08);
}

TEST(CostModel, StreamsPayForEachPromptAndUnifiedOnceForAll) {
    const auto model = CostModel::fit(measured(0, 1));
    StepShape streams(true), unified(false);
    for (int i = 0; i < 3; ++i) {
        streams.add(rows_at(Tokens{100}, 1, true));
        unified.add(rows_at(Tokens{100}, 1, true));
    }
    for (int i = 0; i < 2; ++i) {
        streams.add(rows_at(Tokens{0}, 64, true));
        unified.add(rows_at(Tokens{0}, 64, true));
    }
    EXPECT_EQ(streams.passes().size(), 3U);
    EXPECT_EQ(unified.passes().size(), 1U);
    EXPECT_EQ(unified.passes().front().rows, 131);
    EXPECT_EQ(unified.passes().front().outputs, 5);
    const PassShape piece = rows_at(Tokens{0}, 64, true);
    EXPECT_NEAR(
        base::to_ms(model->estimate(streams)),
        base::to_ms(model->estimate(one_pass(streams.passes().front()))) + 2 * planted_ms(piece),
        0.01);
}

TEST(CostModel, AStepIsDescribedByItsRuns) {
    const std::vector<TokenId> tokens(100);
    const std::vector<engine::Run> runs = {{.sequence = 1,
                                            .position = Tokens{50},
                                            .tokens = std::span(tokens).first(1),
                                            .wants_logits = true},
                                           {.sequence = 2,
                                            .position = Tokens{10},
                                            .tokens = std::span(tokens).first(4),
                                            .wants_logits = false}};
    const StepShape unified(false, runs, Tokens{60});
    ASSERT_EQ(unified.passes().size(), 1U);
    EXPECT_EQ(unified.passes().front(), (PassShape{.rows = 5,
                                                   .outputs = 1,
                                                   .row_kv = 51 + 11 + 12 + 13 + 14,
                                                   .row_foreign = 10 + 4 * 50}));
    const StepShape streams(true, runs, Tokens{60});
    ASSERT_EQ(streams.passes().size(), 2U);
    EXPECT_EQ(streams.passes()[1].row_foreign, 0) << "a stream walks its own cells only";
}

TEST(CostModel, TheLargestPrefillIsNotTheFirstThatIsTooSlow) {
    const auto model = CostModel::fit(measured(0, 1));
    const StepShape alone(false);
    const auto time = [&](std::int64_t rows) {
        return planted_ms(rows_at(Tokens{1024}, rows, true));
    };
    ASSERT_GT(time(40), time(64)) << "the planted cliff";
    EXPECT_EQ(
        model->largest_prefill(alone, Tokens{1024}, Tokens{256}, base::from_ms(time(64) + 0.1)),
        Tokens{64});
    EXPECT_EQ(model->largest_prefill(alone, Tokens{1024}, Tokens{60}, base::from_ms(time(4) + 0.1)),
              Tokens{4});
    EXPECT_EQ(model->largest_prefill(alone, Tokens{1024}, Tokens{256}, base::from_ms(1)), Tokens{0})
        << "nothing fits a millisecond";
    EXPECT_EQ(model->largest_prefill(alone, Tokens{1024}, Tokens{0}, base::from_ms(1e6)),
              Tokens{0});
}

RC_GTEST_PROP(CostModel, TheLargestPrefillFitsAndNoLargerOneDoes, ()) {
    const auto model = CostModel::fit(measured(0.1, 3));
    StepShape step(*rc::gen::arbitrary<bool>());
    for (int decodes = *rc::gen::inRange(0, 9); decodes > 0; --decodes)
        step.add(rows_at(Tokens{*rc::gen::inRange(1, 1000)}, 1, true));
    const Tokens position{*rc::gen::inRange(0, 1000)}, most{*rc::gen::inRange(0, 300)};
    const auto budget = base::from_ms(*rc::gen::inRange(1, 2000));
    const auto time = [&](std::int64_t rows) {
        StepShape with = step;
        with.add(rows_at(position, rows, true));
        return model->estimate(with);
    };
    const Tokens rows = model->largest_prefill(step, position, most, budget);
    RC_ASSERT(rows.count >= 0 && rows <= most);
    RC_ASSERT(rows.count == 0 || time(rows.count) <= budget);
    for (std::int64_t more = rows.count + 1; more <= most.count; ++more)
        RC_ASSERT(time(more) > budget);
}

TEST(CostModel, ItFollowsAMachineThatBecameThreeTimesSlower) {
    auto model = *CostModel::fit(measured(0, 1));
    base::Random random(5);
    const StepShape decodes =
        one_pass({.rows = 8, .outputs = 8, .row_kv = 8 * 300, .row_foreign = 0});
    const StepShape prompt = one_pass(rows_at(Tokens{0}, 128, true));
    const auto before = model.estimate(decodes), other = model.estimate(prompt);
    EXPECT_LT(model.slack(1), 1.01);
    for (int i = 0; i < 10; ++i) model.observe(decodes, before * 3);
    EXPECT_GT(model.slack(1), 1.3) << "it knows that it is wrong";
    for (int i = 0; i < 200; ++i)
        model.observe(decodes,
                      base::from_ms(3 * base::to_ms(before) * std::exp(0.1 * random.normal())));
    EXPECT_NEAR(base::to_ms(model.estimate(decodes)) / base::to_ms(before), 3, 0.3);
    EXPECT_EQ(model.estimate(prompt), other) << "nothing was said of other row counts";
    EXPECT_NEAR(model.slack(1), 1.1, 0.06);
    EXPECT_NEAR(model.slack(2), model.slack(1) * model.slack(1), 1e-9);
}

TEST(CostModel, OneAccidentTeachesLittle) {
    auto model = *CostModel::fit(measured(0, 1));
    const StepShape step = one_pass({.rows = 8, .outputs = 8, .row_kv = 2400, .row_foreign = 0});
    const auto before = model.estimate(step);
    model.observe(step, std::chrono::hours(1));
    EXPECT_LT(base::to_ms(model.estimate(step)), 1.1 * base::to_ms(before));
    model.observe(step, base::Duration{});
    model.observe(StepShape(false), std::chrono::seconds(1));
    EXPECT_LT(base::to_ms(model.estimate(step)), 1.1 * base::to_ms(before))
        << "a step without time or without rows says nothing";
}

TEST(CostModel, PointsThatSayNothingAreRefused) {
    EXPECT_FALSE(CostModel::fit({}));
    EXPECT_FALSE(CostModel::fit({{rows_at({}, 1, true), 0}}));
    EXPECT_FALSE(CostModel::fit({{rows_at({}, 1, true), std::nan("")}}));
    EXPECT_FALSE(CostModel::fit({{PassShape{}, 1}}));
}

TEST(CostModel, AClassThatWasNotMeasuredBorrowsFromTheOthers) {
    const auto model = CostModel::fit(
        {{rows_at({}, 2, true), 14}, {rows_at({}, 4, true), 18}, {rows_at({}, 8, true), 26}});
    ASSERT_TRUE(model);
    EXPECT_NEAR(base::to_ms(model->estimate(one_pass(rows_at({}, 64, true)))), 138, 10);
}

TEST(CostTable, WhatIsWrittenIsRead) {
    const CostTable table{.key = {.model = "a \"b\"",
                                  .build = "c",
                                  .layout = KvLayout::kUnified,
                                  .kv_type = KvType::kQ8_0,
                                  .threads = 2},
                          .measured = "today",
                          .kv_bytes_per_token = base::Bytes{12240},
                          .model = *CostModel::fit(measured(0.1, 7)),
                          .swap = SwapCost({{Tokens{100}, 3, 2}, {Tokens{1100}, 23, 12}}),
                          .step_error = 0.125};
    const auto read = read_cost_table(cost_json(table), "cost.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->key, table.key);
    EXPECT_EQ(read->measured, "today");
    EXPECT_EQ(read->step_error, table.step_error);
    EXPECT_EQ(read->kv_bytes_per_token, table.kv_bytes_per_token);
    EXPECT_NEAR(base::to_ms(read->swap.out(Tokens{600})), 13, 0.01);
    EXPECT_NEAR(base::to_ms(read->swap.in(Tokens{600})), 7, 0.01);
    EXPECT_EQ(read->model.points().size(), table.model.points().size());
    EXPECT_NEAR(read->model.fit_error(), table.model.fit_error(), 1e-4);
    const auto again = read_cost_table(cost_json(*read), "cost.json");
    EXPECT_EQ(cost_json(*again), cost_json(*read)) << "whole nanoseconds are kept";
}

TEST(CostTable, ErrorsNameTheFileAndTheField) {
    const auto message = [](std::string_view text) {
        const auto read = read_cost_table(text, "cost.json");
        return read ? std::string("accepted") : read.error().message;
    };
    EXPECT_NE(message("{").find("cost.json is not JSON"), std::string::npos);
    EXPECT_NE(message(R"({"schema": "fullstop.run/1"})").find("not a fullstop.cost/1"),
              std::string::npos);
    const std::string head =
        R"({"schema": "fullstop.cost/1", "model": "m", "build": "b", "kv_type": "f16", "measured": "", )";
    EXPECT_NE(message(head + R"("layout": "heap", "threads": 1, "points": []})").find("layout"),
              std::string::npos);
    EXPECT_NE(message(head + R"("layout": "streams", "threads": 0, "points": []})").find("threads"),
              std::string::npos);
    EXPECT_NE(message(head + R"("layout": "streams", "threads": 1})").find("kv_bytes_per_token"),
              std::string::npos);
    const std::string body =
        head + R"("layout": "streams", "threads": 1, "kv_bytes_per_token": 10, )";
    EXPECT_NE(message(body + R"("points": []})").find("at least one"), std::string::npos);
    EXPECT_NE(message(body + R"("points": [{"rows": 1.5}]})").find("points[0]"), std::string::npos);
    EXPECT_NE(message(body + R"("nothing": 0})").find("points is a list"), std::string::npos);
    const std::string points =
        R"("points": [{"rows": 1, "outputs": 1, "row_kv": 1, "row_foreign": 0, "ms": 1}])";
    EXPECT_NE(message(body + points + "}").find("swaps is a list"), std::string::npos);
    EXPECT_NE(message(body + points + R"(, "swaps": [{"tokens": 0}]})").find("swaps[0]"),
              std::string::npos);
    EXPECT_EQ(message(body + points + R"(, "swaps": []})"), "accepted");
}

}  // namespace
}  // namespace fullstop::engine
