// The names in braces keep the keys of one prefix on one node of a cluster, as the script needs
// them.
#include "adapters/redis/script_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "adapters/redis/budget_lua.h"
#include "adapters/redis/limits.h"

namespace fullstop::adapters::redis {
namespace {

constexpr std::string_view word(Operation operation) {
    switch (operation) {
        case Operation::kReserve: return "reserve";
        case Operation::kSettle: return "settle";
        case Operation::kRenew: return "renew";
    }
    return "";
}

std::int64_t in_ms(base::Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

std::optional<std::int64_t> number(const Reply& array, std::size_t at) {
    if (at >= array.elements.size() || array.elements[at].kind != Reply::Kind::kInteger)
        return std::nullopt;
    return array.elements[at].integer;
}

}  // namespace

std::string call_bytes(const ScriptCall& call, const std::string& sha) {
    std::vector<std::string> words = sha.empty()
                                         ? std::vector<std::string>{"EVAL", std::string(kBudgetLua)}
                                         : std::vector<std::string>{"EVALSHA", sha};
    words.push_back(std::to_string(2 * call.ask.windows.size()));
    for (const gateway::SharedWindow& window : call.ask.windows) {
        // With another length the count begins anew, as it does in one process.
        words.push_back(
            fmt::format("{{{}}}:{}:{}", call.prefix, window.name, in_ms(window.limit.window)));
        words.push_back(words.back() + ":leases");
    }
    words.emplace_back(word(call.operation));
    words.push_back(fmt::format("{}-{:x}", call.instance, call.ask.id));
    for (const std::int64_t value : {call.ask.tokens, in_ms(kLease), call.used})
        words.push_back(std::to_string(value));
    words.emplace_back(call.add_unknown ? "add" : "skip");
    for (const gateway::SharedWindow& window : call.ask.windows) {
        words.push_back(std::to_string(in_ms(window.limit.window)));
        words.push_back(std::to_string(window.limit.tokens));
    }
    return command(words);
}

std::optional<Verdict> read_verdict(const Reply& reply) {
    if (reply.kind != Reply::Kind::kArray) return std::nullopt;
    const auto granted = number(reply, 0), window = number(reply, 1), left = number(reply, 2),
               wait = number(reply, 3);
    if (granted == 1) return Verdict{.granted = true};
    if (granted != 0 || !window || *window < 1 || !left || !wait) return std::nullopt;
    Verdict out{.granted = false, .window = static_cast<std::size_t>(*window - 1), .left = *left};
    if (*wait >= 0) out.retry_after = std::chrono::milliseconds(*wait);
    return out;
}

std::string error_words(std::string_view text) {
    std::string out(text.substr(0, kMaxErrorWords));
    std::ranges::replace_if(out, [](char each) { return each < ' ' || each > '~'; }, '?');
    return out;
}

}  // namespace fullstop::adapters::redis
