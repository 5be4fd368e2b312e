// The pool counts exactly, whatever happens to it.
#include "engine/scheduling/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

namespace fullstop::engine {
namespace {

using base::Blocks;
using base::Tokens;

TEST(BlockPool, PromisesTurnIntoOwnedBlocksAndComeBackWhole) {
    BlockPool pool(Tokens{100}, Tokens{16});  // 6 whole blocks
    EXPECT_EQ(pool.total(), Blocks{6});
    pool.reserve(1, Tokens{40});
    EXPECT_EQ(pool.promised(), Blocks{3});
    EXPECT_EQ(pool.free(), Blocks{3});
    pool.grow(1, Tokens{17});
    EXPECT_EQ(pool.owned(), Blocks{2});
    EXPECT_EQ(pool.promised(), Blocks{1});
    EXPECT_EQ(pool.free(), Blocks{3});
    EXPECT_TRUE(pool.can_reserve(Tokens{48}));
    EXPECT_FALSE(pool.can_reserve(Tokens{49}));
    pool.release(1);
    EXPECT_EQ(pool.free(), Blocks{6});
    pool.check();
}

TEST(BlockPool, GrowingBeyondAPromiseIsABug) {
    BlockPool pool(Tokens{64}, Tokens{16});
    pool.reserve(1, Tokens{16});
    EXPECT_DEATH(pool.grow(1, Tokens{17}), "within its promise");
    EXPECT_DEATH(pool.reserve(1, Tokens{16}), "reserves once");
    EXPECT_DEATH(pool.reserve(2, Tokens{64}), "fits the free blocks");
}

TEST(BlockPool, APromiseGrowsOutOfWhatIsFreeAndNoFurther) {
    BlockPool pool(Tokens{64}, Tokens{16});
    pool.reserve(1, Tokens{16});
    pool.reserve(2, Tokens{16});
    EXPECT_TRUE(pool.can_extend(1, Tokens{48}));
    EXPECT_FALSE(pool.can_extend(1, Tokens{49}));
    pool.extend(1, Tokens{33});
    pool.extend(1, Tokens{20});  // has it already
    EXPECT_EQ(pool.promised(), base::Blocks{4});
    pool.grow(1, Tokens{33});
    EXPECT_EQ(pool.free(), base::Blocks{0});
    EXPECT_DEATH(pool.extend(2, Tokens{17}), "fits the free blocks");
    pool.check();
}

TEST(BlockPool, FreePromisedAndOwnedAreAllBlocksAfterAnyHistory) {
    EXPECT_TRUE(rc::check([] {
        BlockPool pool(Tokens{*rc::gen::inRange(16, 400)}, Tokens{16});
        std::map<SequenceId, std::pair<std::int64_t, std::int64_t>> model;  // worst case, tokens
        for (const int what : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
            const auto id = static_cast<SequenceId>(what % 7);
            const auto held = model.find(id);
            if (what % 3 == 0 && held != model.end()) {
                pool.release(id);
                model.erase(held);
            } else if (held == model.end()) {
                const Tokens worst{1 + what % 90};
                if (!pool.can_reserve(worst)) continue;
                pool.reserve(id, worst);
                model[id] = {worst.count, 0};
            } else if (held->second.second < held->second.first) {
                pool.grow(id, Tokens{++held->second.second});
            }
            pool.check();
            Blocks owned, reserved;
            for (const auto& [key, value] : model) {
                owned += base::blocks_for(Tokens{value.second}, Tokens{16});
                reserved += base::blocks_for(Tokens{value.first}, Tokens{16});
            }
            RC_ASSERT(pool.owned() == owned);
            RC_ASSERT(pool.owned() + pool.promised() == reserved);
            RC_ASSERT(pool.free() == pool.total() - reserved);
        }
    }));
}

TEST(BlockPool, ASharedBeginningIsCountedOnceAndFreeWhenItsLastHolderLeaves) {
    BlockPool pool(Tokens{160}, Tokens{16});
    pool.reserve(1, Tokens{64});
    pool.grow(1, Tokens{40});
    pool.reserve(2, Tokens{48}, BlockPool::Beginning{.of = 1, .blocks = {2}});
    EXPECT_EQ(pool.owned(), Blocks{3});
    EXPECT_EQ(pool.promised(), Blocks{2})
        << "one of each: 64 are 4 blocks, 3 owned; 48 are 3, 2 shared";
    EXPECT_EQ(pool.counted_twice(), Blocks{2});
    EXPECT_EQ(pool.freed_by(std::array<SequenceId, 1>{1}), Blocks{2})
        << "its third block and its promise";
    EXPECT_EQ(pool.freed_by(std::array<SequenceId, 2>{1, 2}), Blocks{5});
    pool.grow(2, Tokens{48});
    pool.check();
    pool.release(1);
    EXPECT_EQ(pool.owned(), Blocks{3}) << "the beginning lives on";
    EXPECT_EQ(pool.counted_twice(), Blocks{0});
    pool.check();
    pool.release(2);
    EXPECT_EQ(pool.free(), pool.total());
    EXPECT_DEATH(pool.reserve(3, Tokens{16}, BlockPool::Beginning{.of = 1, .blocks = {1}}),
                 "one that has it");
}

TEST(BlockPool, SharedBlocksAreExactAfterAnyHistory) {
    EXPECT_TRUE(rc::check([] {
        BlockPool pool(Tokens{*rc::gen::inRange(64, 600)}, Tokens{16});
        std::map<SequenceId, std::vector<int>> model;  // names of its blocks
        int next = 0;
        for (const int what : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
            const auto id = static_cast<SequenceId>(what % 9);
            if (model.contains(id)) {
                if (what % 2 == 0) {
                    std::set<int> others, mine(model[id].begin(), model[id].end());
                    for (const auto& [key, blocks] : model)
                        if (key != id) others.insert(blocks.begin(), blocks.end());
                    const auto own = std::ranges::count_if(
                        mine, [&](int block) { return !others.contains(block); });
                    RC_ASSERT(pool.freed_by(std::array{id}) == Blocks{own});
                    pool.release(id);
                    model.erase(id);
                } else if (const Tokens more{
                               static_cast<std::int64_t>(16 * (model[id].size() + 1))};
                           pool.can_extend(id, more)) {
                    pool.extend(id, more);
                    pool.grow(id, more);
                    model[id].push_back(next++);
                }
            } else {
                const auto with = model.lower_bound(static_cast<SequenceId>(what / 9 % 9));
                const auto blocks = with == model.end() ? 0 : what % (std::ssize(with->second) + 1);
                pool.reserve(id, Tokens{16 * blocks},
                             blocks == 0
                                 ? std::nullopt
                                 : std::optional(BlockPool::Beginning{with->first, {blocks}}));
                if (blocks > 0)
                    model[id].assign(with->second.begin(), with->second.begin() + blocks);
                else
                    model[id] = {};
            }
            pool.check();
            std::set<int> all;
            std::int64_t sum = 0;
            for (const auto& [key, blocks_of] : model)
                all.insert(blocks_of.begin(), blocks_of.end()), sum += std::ssize(blocks_of);
            RC_ASSERT(pool.owned() == Blocks{std::ssize(all)});
            RC_ASSERT(pool.counted_twice() == Blocks{sum - std::ssize(all)});
        }
    }));
}

}  // namespace
}  // namespace fullstop::engine
