// Which upstream, by room, load, session and health; and how much room an answer needs.
#include "gateway/placement/placement.h"

#include <gtest/gtest.h>

#include <set>

namespace fullstop::gateway {
namespace {

using std::chrono::seconds;

constexpr base::Instant kNow{seconds(1000)};

UpstreamOptions at_port(int port) {
    return {.url = *wire::parse_server_url("http://127.0.0.1:" + std::to_string(port))};
}

Work work_of(std::int64_t prompt_bytes = 300, std::optional<std::int64_t> max_tokens = 100) {
    Work work;
    work.answer = true;
    work.prompt_bytes = prompt_bytes;
    work.messages = 1;
    work.max_tokens = max_tokens;
    return work;
}

struct Pool : testing::Test {
    Upstreams upstreams;
    void SetUp() override { upstreams.configure({at_port(1), at_port(2), at_port(3)}); }
    std::optional<Upstreams::Choice> choose(const Work& work, double affinity = kDefaultAffinity,
                                            base::Instant now = kNow) {
        return upstreams.choose(upstreams.eligible(work, {}), work, work.max_tokens, {}, affinity,
                                now);
    }
    Upstream& upstream(UpstreamId id) { return *upstreams.find(id); }
};

TEST_F(Pool, WithoutAnyKnowledgeWorkIsSpreadEvenly) {
    std::map<UpstreamId, int> got;
    for (int i = 0; i < 9; ++i) {
        const auto choice = choose(work_of());
        ASSERT_TRUE(choice);
        upstream(choice->id).take(choice->need, true);
        ++got[choice->id];
    }
    EXPECT_EQ(got, (std::map<UpstreamId, int>{{1, 3}, {2, 3}, {3, 3}}));
}

TEST_F(Pool, TheLessBusyServerIsChosenAlsoWhenOthersUseIt) {
    upstream(1).learned({.server = "x", .slots = 4});
    upstream(2).learned({.server = "x", .slots = 4});
    upstream(3).learned({.server = "x", .slots = 4});
    upstream(1).loaded({.running = 3, .waiting = 2, .kv_used = {}}, kNow);
    upstream(2).loaded({.running = {}, .waiting = {}, .kv_used = 0.9}, kNow);
    EXPECT_EQ(choose(work_of())->id, 3U);
    upstream(3).loaded({.running = 4, .waiting = 4, .kv_used = {}}, kNow);
    EXPECT_EQ(choose(work_of())->id, 2U);
    EXPECT_EQ(choose(work_of(), kDefaultAffinity, kNow + seconds(10))->id, 1U)
        << "what was said ten seconds ago does not count";
}

TEST_F(Pool, ASessionStaysWhereItWasUntilLoadOverrules) {
    Work work = work_of();
    work.affinity = 77;
    const UpstreamId home = choose(work)->id;
    upstream(home).take(100, true);  // one of eight nominal slots: within the bonus
    EXPECT_EQ(choose(work)->id, home);
    upstream(home).take(100, true);
    upstream(home).take(100, true);
    EXPECT_NE(choose(work)->id, home) << "three of eight is more than the bonus";
}

TEST_F(Pool, OnlyTheSessionsOfALostUpstreamMove) {
    std::map<std::uint64_t, UpstreamId> home;
    for (std::uint64_t session = 1; session <= 200; ++session) {
        Work work = work_of();
        work.affinity = session * 0x9E3779B97F4A7C15ULL;
        home[session] = choose(work)->id;
    }
    std::map<UpstreamId, int> shares;
    for (const auto& [session, id] : home) ++shares[id];
    for (const auto& [id, share] : shares) EXPECT_NEAR(share, 67, 30) << id;
    upstreams.configure({at_port(1), at_port(2)});
    for (const auto& [session, id] : home) {
        Work work = work_of();
        work.affinity = session * 0x9E3779B97F4A7C15ULL;
        if (id != 3) EXPECT_EQ(choose(work)->id, id);
    }
}

TEST_F(Pool, SlotsAndTokensBothLimit) {
    upstreams.configure({at_port(1)});
    upstream(1).learned({.server = "llama-server", .slots = 8, .pool = 1024, .window = 1024});
    const Work work = work_of(120, 250);  // 40 + 32 + 8 of prompt
    int placed = 0;
    while (const auto choice = choose(work)) {
        EXPECT_EQ(choice->need, 330);
        upstream(1).take(choice->need, true);
        ASSERT_LE(++placed, 8);
    }
    EXPECT_EQ(placed, 3) << "a pool of 1024 holds three of 330";
    upstream(1).give_back(330, true);
    EXPECT_TRUE(choose(work));
}

TEST_F(Pool, WhatIsLargerThanThePoolRunsAlone) {
    upstreams.configure({at_port(1)});
    upstream(1).learned({.server = "llama-server", .slots = 8, .pool = 1024, .window = 4096});
    const Work large = work_of(120, 4000);
    ASSERT_TRUE(choose(large));
    EXPECT_EQ(choose(large)->need, 1024);
    upstream(1).take(1024, true);
    EXPECT_FALSE(choose(work_of(10, 1)));
}

TEST_F(Pool, ARequestWithoutALimitNeedsTheWholeWindow) {
    upstreams.configure({at_port(1)});
    upstream(1).learned({.server = "llama-server", .slots = 8, .pool = 2048, .window = 2048});
    EXPECT_EQ(choose(work_of(120, std::nullopt))->need, 2048);
    upstream(1).learned({.server = "llama-server",
                         .slots = 8,
                         .pool = 2048,
                         .window = 2048,
                         .default_output = 128});
    EXPECT_EQ(choose(work_of(120, std::nullopt))->need, 208);
}

TEST_F(Pool, WithAnExpectedLengthMoreRequestsWithoutALimitRunAtOnce) {
    UpstreamOptions options = at_port(1);
    options.expected_output = 400;
    upstreams.configure({options});
    upstream(1).learned({.server = "llama-server", .slots = 8, .pool = 2048, .window = 2048});
    EXPECT_EQ(choose(work_of(120, std::nullopt))->need, 480);
    EXPECT_EQ(choose(work_of(120, 100))->need, 180) << "a limit that is named counts";
}

TEST_F(Pool, ConfiguredNumbersGoBeforeLearnedOnes) {
    UpstreamOptions options = at_port(1);
    options.max_concurrency = 2;
    upstreams.configure({options});
    upstream(1).learned({.server = "x", .slots = 8, .pool = 4096});
    EXPECT_EQ(upstream(1).slots(), 2);
    EXPECT_EQ(upstream(1).pool(), 4096);
    options.learn = false;
    options.kv_tokens = 99;
    upstreams.configure({options});
    EXPECT_EQ(upstream(1).slots(), 2);
    EXPECT_EQ(upstream(1).pool(), 99);
    options.max_concurrency = {};
    options.kv_tokens = {};
    upstreams.configure({options});
    EXPECT_FALSE(upstream(1).slots());
    EXPECT_FALSE(upstream(1).pool());
}

TEST_F(Pool, TokensPerByteAreLearnedFromUsageAndRiseAtOnce) {
    upstreams.configure({at_port(1)});
    const Work work = work_of(3000, 0);
    const auto first = upstream(1).need(work, 0);
    EXPECT_EQ(first, 1000 + 32 + 8);
    upstream(1).measured(work, 2040);  // two thirds of a token for each byte
    EXPECT_EQ(upstream(1).need(work, 0), 2100 + 40);
    for (int i = 0; i < 100; ++i) upstream(1).measured(work, 640);
    EXPECT_NEAR(static_cast<double>(upstream(1).need(work, 0)), 670, 5);
}

TEST_F(Pool, ModelsChooseTheirServersAndAnUnknownNameGoesAnywhere) {
    upstream(1).learned({.server = "a", .models = {"large"}});
    upstream(2).learned({.server = "b", .models = {"small", "tiny"}});
    Work work = work_of();
    work.model = "tiny";
    EXPECT_EQ(upstreams.eligible(work, {}), (std::vector<UpstreamId>{2, 3}))
        << "3 does not say what it serves";
    work.model = "whatever";
    EXPECT_EQ(upstreams.eligible(work, {}), (std::vector<UpstreamId>{1, 2, 3}));
    EXPECT_EQ(upstreams.eligible(work, {1, 2}), (std::vector<UpstreamId>{3}));
}

TEST_F(Pool, AFailingUpstreamIsLeftAloneThenTriedByOne) {
    upstreams.configure({at_port(1), at_port(2)});
    Work work = work_of();
    for (int i = 0; i < kFailuresToOpen; ++i) upstream(1).health.failed(kNow);
    EXPECT_FALSE(upstream(1).health.usable(kNow));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(choose(work)->id, 2U);
    const base::Instant later = kNow + kFirstPause;
    EXPECT_EQ(upstreams.next_trial(kNow), later);
    EXPECT_TRUE(upstream(1).health.usable(later));
    upstream(1).health.began();
    EXPECT_FALSE(upstream(1).health.usable(later)) << "one request at a time tries it";
    upstream(1).health.failed(later);
    EXPECT_FALSE(upstream(1).health.usable(later + kFirstPause)) << "the pause doubles";
    EXPECT_TRUE(upstream(1).health.usable(later + 2 * kFirstPause));
    upstream(1).health.began();
    upstream(1).health.succeeded();
    EXPECT_FALSE(upstream(1).health.open());
}

TEST_F(Pool, WhenAllAreFailingOneIsStillTried) {
    upstreams.configure({at_port(1), at_port(2)});
    for (int i = 0; i < kFailuresToOpen; ++i)
        upstream(1).health.failed(kNow), upstream(2).health.failed(kNow + seconds(1));
    EXPECT_EQ(choose(work_of())->id, 1U) << "its pause ends first";
}

TEST_F(Pool, ARemovedUpstreamGetsNothingNewAndGoesWhenItIsDone) {
    upstream(1).take(10, true);
    upstreams.configure({at_port(2), at_port(4)});
    EXPECT_EQ(upstreams.all().size(), 3U) << "1 still answers, 3 is gone, 4 is new";
    EXPECT_EQ(upstreams.eligible(work_of(), {}), (std::vector<UpstreamId>{2, 4}));
    upstream(1).give_back(10, true);
    upstreams.sweep();
    EXPECT_EQ(upstreams.find(1), nullptr);
    UpstreamOptions draining = at_port(2);
    draining.draining = true;
    upstreams.configure({draining, at_port(4)});
    EXPECT_EQ(upstreams.eligible(work_of(), {}), (std::vector<UpstreamId>{4}));
}

}  // namespace
}  // namespace fullstop::gateway
