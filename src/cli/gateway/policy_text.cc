// One sentence for each setting, with its number and the cause that clients are told.
#include "cli/gateway/policy_text.h"

#include <fmt/format.h>

#include <vector>

#include "gateway/budget/shared_budget.h"
#include "gateway/placement/upstream.h"

namespace fullstop::cli {
namespace {

std::string seconds(base::Duration time) { return fmt::format("{:g} s", base::to_seconds(time)); }

std::vector<std::string> cuts(const gateway::Policy& policy) {
    const gateway::Deadlines& limits = policy.deadlines;
    std::vector<std::string> out;
    if (limits.first_token)
        out.push_back(
            fmt::format("no first token of a stream {} after a server got the request "
                        "(gateway_deadline, first_token)",
                        seconds(*limits.first_token)));
    if (limits.idle)
        out.push_back(fmt::format("{} of silence of its server (gateway_idle_timeout)",
                                  seconds(*limits.idle)));
    if (limits.total)
        out.push_back(
            fmt::format("{} from arrival to the end, waiting included (gateway_deadline, total)",
                        seconds(*limits.total)));
    out.push_back(fmt::format("the end of this process: {} after SIGTERM (gateway_deadline, drain)",
                              seconds(policy.drain)));
    return out;
}

std::vector<std::string> shortenings(const gateway::OutputLimits& output) {
    std::vector<std::string> out;
    if (output.max_tokens)
        out.push_back(
            fmt::format("to {} tokens, whatever is asked for (default_token_limit; "
                        "Fullstop-Effective-Max-Tokens)",
                        *output.max_tokens));
    for (const auto& step : output.by_load)
        out.push_back(
            fmt::format("to {} tokens from {} answers at once on (gateway_token_budget; "
                        "Fullstop-Effective-Max-Tokens)",
                        step.max_tokens, step.users));
    return out;
}

std::vector<std::string> refusals(const gateway::Policy& policy) {
    const gateway::QueueLimits& queue = policy.queue;
    std::vector<std::string> out = {
        fmt::format("{} requests or {} tokens wait already (429, gateway_rejected)", queue.requests,
                    queue.tokens)};
    if (policy.deadlines.queue_wait)
        out.push_back(fmt::format("it waited {} (503, gateway_deadline, queue_wait)",
                                  seconds(*policy.deadlines.queue_wait)));
    const auto budget = [&](const std::string& whose, const gateway::TokenWindow& window) {
        out.push_back(fmt::format("{} {} tokens in {} are used up (429, gateway_rejected)", whose,
                                  window.tokens, seconds(window.window)));
    };
    if (policy.budgets.overall) budget("all the", *policy.budgets.overall);
    if (policy.budgets.per_key) budget("its API key's", *policy.budgets.per_key);
    for (const auto& [path, window] : policy.budgets.routes) budget(path + "'s", window);
    if (const auto& shared = policy.budgets.shared;
        shared && shared->on_loss == gateway::SharedStore::OnLoss::kClosed)
        out.push_back(fmt::format(
            "the store of shared budgets does not answer within {} (503, gateway_rejected)",
            seconds(shared->timeout)));
    if (policy.other_paths == gateway::OtherPaths::kRefuse)
        out.emplace_back(
            "it is sent to a path that is not known and could carry an answer ([paths] other; "
            "403)");
    if (policy.output.any() || policy.budgets.overall || policy.budgets.per_key ||
        !policy.budgets.routes.empty())
        out.emplace_back(
            "its body is no JSON object to a strict reader, so that its limits cannot be told "
            "(400)");
    out.emplace_back(
        "its body holds more values than are read, or names a member that decides something twice "
        "(400)");
    out.emplace_back("no server can be reached (502, 503, 504)");
    return out;
}

std::string shared_text(const gateway::SharedStore& shared) {
    std::string out = fmt::format(
        "Budgets are counted in the store at {}, together with every gateway that has the prefix "
        "'{}'; no answer is cut for them.\n",
        gateway::shown(shared), shared.prefix);
    if (shared.on_loss == gateway::SharedStore::OnLoss::kClosed) return out;
    return out + fmt::format(
                     "When it does not answer within {}, this gateway's own counts alone decide: N "
                     "gateways then use at most N times each budget.\n",
                     seconds(shared.timeout));
}

std::string upstream_text(const gateway::UpstreamOptions& upstream) {
    std::string out = upstream.url.text + ": ";
    if (upstream.draining) return out + "draining, gets nothing new";
    const std::string unknown =
        upstream.learn ? "as learned from it, else not limited" : "not limited";
    out +=
        fmt::format("answers at once {}, tokens they share {}",
                    upstream.max_concurrency ? std::to_string(*upstream.max_concurrency) : unknown,
                    upstream.kv_tokens ? std::to_string(*upstream.kv_tokens) : unknown);
    out +=
        fmt::format(", a request without a limit is taken to need {}",
                    upstream.expected_output ? fmt::format("{} tokens", *upstream.expected_output)
                                             : "its whole window");
    for (std::size_t i = 0; i < upstream.models.size(); ++i)
        out += (i == 0 ? ", models " : ", ") + upstream.models[i];
    return out;
}

std::string list(const std::string& title, const std::vector<std::string>& items) {
    std::string out = title + "\n";
    for (const auto& item : items) out += "  - " + item + "\n";
    return out;
}

}  // namespace

std::string policy_text(const GatewaySettings& settings) {
    const gateway::Policy& policy = settings.policy;
    std::vector<std::string> servers;
    for (const auto& upstream : policy.upstreams) servers.push_back(upstream_text(upstream));
    std::string out = list("An answer can be cut here by:", cuts(policy));
    const auto shorter = shortenings(policy.output);
    out += shorter.empty()
               ? "No answer is shortened: limits on length are the client's and the server's.\n"
               : list("An answer can be shortened here:", shorter);
    out += list("A request is refused here when:", refusals(policy));
    out += access_summary(settings.access, policy.access);
    if (policy.budgets.shared) out += shared_text(*policy.budgets.shared);
    if (policy.other_paths == gateway::OtherPaths::kRelay)
        out +=
            "Paths that are not known are relayed: what is asked for there is not queued, counted "
            "or shortened, even where it is an answer.\n";
    out += list("Servers:", servers);
    std::string floors;
    for (const auto each : serving::kAllPriorities)
        if (const int floor = policy.queue.floors[static_cast<std::size_t>(each)]; floor > 0)
            floors += fmt::format("; {} kept for {}", floor, to_string(each));
    out += fmt::format("Waiting requests move up one class every {}{}.\n",
                       seconds(policy.queue.ageing), floors);
    out += policy.heartbeat
               ? fmt::format(
                     "A waiting stream gets its head and a comment after {} of silence; later "
                     "errors come inside it.\n",
                     seconds(*policy.heartbeat))
               : "No heartbeats: a waiting stream hears nothing until its server begins.\n";
    out += policy.retry && policy.upstreams.size() > 1
               ? "A request goes to another server only after a failed connection or 503, before "
                 "any byte of a response.\n"
               : "Nothing that a server may have read is sent twice.\n";
    if (policy.continuation)
        out +=
            "When a server dies inside a streamed chat answer, another one (a llama-server or "
            "fullstop serve with the same model) writes the rest; the seam is "
            "declared.\n";
    return out;
}

std::string policy_line(const gateway::Policy& policy) {
    std::string servers, by;
    for (const auto& upstream : policy.upstreams)
        servers += (servers.empty() ? "" : ", ") + upstream.url.text;
    for (const auto& cut : cuts(policy)) by += (by.empty() ? "" : "; ") + cut;
    const auto shorter = shortenings(policy.output);
    for (const auto& each : shorter) by += "; shortened " + each;
    return fmt::format("relaying to {}; an answer can be cut here by: {}\n", servers, by);
}

}  // namespace fullstop::cli
