// The quick search finds what a search that tries every token at every place finds.
#include "adapters/llama/text/control_tokens.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

namespace fullstop::adapters::llama {
namespace {

TEST(ControlTokens, AreFoundWhereATrialOfAllFindsThem) {
    EXPECT_TRUE(rc::check([] {
        const auto word =
            rc::gen::container<std::string>(rc::gen::elementOf(std::string("<|a>\x80")));
        std::map<std::string, engine::TokenId> all;
        for (const std::string& text :
             *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(word)))
            all.emplace(text, static_cast<engine::TokenId>(all.size()));
        const ControlTokens tokens({all.begin(), all.end()});
        const std::string text = *word;
        std::size_t from = 0;
        for (std::size_t at = 0; at < text.size(); ++at) {
            const std::pair<const std::string, engine::TokenId>* longest = nullptr;
            for (const auto& each : all)
                if (text.substr(at).starts_with(each.first) &&
                    (longest == nullptr || each.first.size() > longest->first.size()))
                    longest = &each;
            if (longest == nullptr) continue;
            const auto found = tokens.next(text, from);
            RC_ASSERT(found.has_value());
            RC_ASSERT(found->at == at);
            RC_ASSERT(found->length == longest->first.size());
            RC_ASSERT(found->token == longest->second);
            from = at + 1;
        }
        RC_ASSERT(!tokens.next(text, from).has_value());
    }));
}

TEST(ControlTokens, NoneOfNone) { EXPECT_FALSE(ControlTokens({}).next("<|im_end|>", 0)); }

}  // namespace
}  // namespace fullstop::adapters::llama
