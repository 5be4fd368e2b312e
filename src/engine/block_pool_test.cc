// The pool counts exactly, whatever happens to it.
#include "engine/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

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

}  // namespace
}  // namespace fullstop::engine
