#include "judge/population/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace fullstop::judge {

std::optional<Pool> pool_of(const answer::ServerFacts* server) {
    if (server == nullptr) return std::nullopt;
    if (server->pool) return Pool{(*server->pool).count, server->pool.how};
    const bool several = server->slots && *server->slots > 1;
    const bool split = server->shared_pool && !*server->shared_pool;
    if (server->window && several && !split)
        return Pool{(*server->window).count, server->window.how + ", shared by " +
                                                 std::to_string(*server->slots) + " slots"};
    return std::nullopt;
}

std::optional<std::int64_t> worst_case(const answer::Record& record, const Context& context) {
    const auto prompt = prompt_tokens_of(record, context.prompt_tokens);
    if (!prompt) return std::nullopt;
    if (record.requested_max_tokens) return *prompt + (*record.requested_max_tokens).count;
    std::int64_t longest = record.length_tokens().value_or(0);
    for (const auto* alone : context.baselines)
        longest = std::max(longest, alone->length_tokens().value_or(0));
    return *prompt + longest;
}

std::vector<Remedy> pool_remedies(const answer::Record& record, const Context& context) {
    std::vector<std::int64_t> needs;
    for (const auto* sibling : context.siblings)
        if (const auto need = worst_case(*sibling, context)) needs.push_back(*need);
    if (needs.empty())
        return {
            {"enlarge the KV cache (-c) to the sum of prompt and answer over all concurrent "
             "requests, or run fewer at once (-np)",
             "-c",
             {}}};
    std::ranges::sort(needs, std::greater<>());
    const auto users = std::max<std::size_t>(
        1, context.siblings.empty()
               ? 1
               : static_cast<std::size_t>(std::max(1, record.request.concurrency)));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < users; ++i) sum += needs[std::min(i, needs.size() - 1)];
    const std::int64_t context_size = round_up(sum);
    std::vector<Remedy> remedies;
    remedies.push_back(
        {fmt::format(
             "give the KV cache room for {} answers of up to {} tokens (prompt and answer): -c {}",
             users, needs.front(), context_size),
         fmt::format("-c {}", context_size), static_cast<double>(context_size)});
    const auto pool = pool_of(context.server);
    if (!pool) return remedies;
    if (const std::int64_t fit = pool->tokens / needs.front(); fit >= 1)
        remedies.push_back(
            {fmt::format("or let only {} run at once in the pool of {}; the others wait: -np {}",
                         fit, pool->tokens, fit),
             fmt::format("-np {}", fit), static_cast<double>(fit)});
    std::int64_t prompt = 0;
    for (const auto* sibling : context.siblings)
        prompt = std::max(prompt, prompt_tokens_of(*sibling, context.prompt_tokens).value_or(0));
    if (const std::int64_t share = pool->tokens / static_cast<std::int64_t>(users) - prompt;
        share > 0)
        remedies.push_back(
            {fmt::format("or ask for no more than {} tokens per answer, so that {} of them fit",
                         share, users),
             fmt::format("max_tokens {}", share), static_cast<double>(share)});
    return remedies;
}

}  // namespace fullstop::judge
