// Reported: thinking eats the whole budget.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

TEST(ThinkingTookTheBudget, ALimitReachedInThinkingIsTheReasoningBudget) {
    Exchange exchange;
    exchange.asks(150).stream();
    for (int i = 0; i < 149; ++i) exchange.event(reasoning(" step"));
    exchange.event(finish("length"))
        .event(
            R"({"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":150,"completion_tokens_details":{"reasoning_tokens":150}}})")
        .done()
        .last_chunk();
    const judge::Finding finding = judged(exchange.ends());
    EXPECT_EQ(finding.cause, Cause::kReasoningBudget) << word(finding);
    EXPECT_EQ(finding.layer, Layer::kModel);
    EXPECT_NE(finding.next.find("max_tokens"), std::string::npos);
}

TEST(ThinkingTookTheBudget, AnUnclosedThinkInContentCountsToo) {
    const judge::Finding finding = judged(Exchange()
                                              .asks(40)
                                              .stream()
                                              .event(delta("<think>First"))
                                              .events(38, " step")
                                              .event(finish("length"))
                                              .event(usage(20, 40))
                                              .done()
                                              .last_chunk()
                                              .ends());
    EXPECT_EQ(finding.cause, Cause::kReasoningBudget) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
