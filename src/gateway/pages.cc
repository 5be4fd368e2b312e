// The gateway's own pages: /health, /metrics and /fullstop/status. They ask nobody.
#include <boost/json.hpp>
#include <utility>

#include "gateway/gateway.h"
#include "net/limits.h"
#include "serving/reply.h"

namespace fullstop::gateway {
namespace {

namespace json = boost::json;

json::value in_ms(const std::optional<base::Duration>& limit) {
    if (!limit) return nullptr;
    return base::to_ms(*limit);
}

json::value or_null(const std::optional<std::int64_t>& value) {
    if (!value) return nullptr;
    return *value;
}

json::object upstream_object(const Upstream& upstream, base::Instant now) {
    return {{"name", upstream.name()},
            {"server", upstream.capacity().server},
            {"status", !upstream.takes_new()         ? "draining"
                       : upstream.health.usable(now) ? "ok"
                                                     : "failing"},
            {"running", upstream.running()},
            {"served", upstream.served()},
            {"slots", or_null(upstream.slots())},
            {"kv_tokens", or_null(upstream.pool())},
            {"kv_tokens_held", upstream.held()},
            {"busy", upstream.busy(now)}};
}

json::value store_object(const std::optional<SharedStore>& shared, const StoreState& state) {
    if (!shared) return nullptr;
    return json::object{{"store", shown(*shared)},
                        {"status", state.up ? "up" : "down"},
                        {"detail", state.trouble},
                        {"on_loss", to_string(shared->on_loss)},
                        {"timeout_ms", base::to_ms(shared->timeout)},
                        {"settlements_kept", state.kept},
                        {"settlements_dropped", state.dropped}};
}

}  // namespace

bool Gateway::own_page(base::Instant now, const net::ServiceRequest& request,
                       const std::string& request_id, Actions& out) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const bool health = path == "/health", metrics = path == "/metrics";
    if (!health && !metrics && path != "/fullstop/status") return false;
    const auto asker = serving::asker_of(request, request_id);
    if (request.method != "GET" && request.method != "HEAD") {
        serving::refuse_method(asker, path, "GET, HEAD", out.client);
    } else if (health) {
        serving::respond_health(asker, draining_, out.client);
    } else {
        std::string body =
            metrics ? metrics_.text(upstreams_, queue_, live_.size(), now) : status_body(now);
        if (metrics && options_.memory != nullptr) body += memory_text(*options_.memory);
        if (metrics && options_.records) body += records_text(options_.records());
        if (metrics && options_.policy.budgets.shared) store_metrics_.write(body, store_);
        serving::respond(asker, 200, metrics ? serving::kPrometheus : serving::kJson, body,
                         out.client);
    }
    return true;
}

std::string Gateway::status_body(base::Instant now) const {
    json::object ends;
    for (const auto& [cause, count] : metrics_.ends()) ends[answer::to_string(cause)] = count;
    json::array servers;
    for (const auto& [id, upstream] : upstreams_.all())
        servers.push_back(upstream_object(*upstream, now));
    const Policy& policy = options_.policy;
    const Deadlines& limits = policy.deadlines;
    json::object waiting;
    for (const Priority each : serving::kAllPriorities)
        waiting[to_string(each)] = queue_.size(each);
    return json::serialize(
        json::object{{"server", "fullstop"},
                     {"role", "gateway"},
                     {"version", options_.version},
                     {"status", draining_ ? "draining" : "ok"},
                     {"upstreams", std::move(servers)},
                     {"running", live_.size() - queue_.size()},
                     {"waiting", std::move(waiting)},
                     {"max_queue", policy.queue.requests},
                     {"queue_wait_limit_ms", in_ms(limits.queue_wait)},
                     {"first_token_limit_ms", in_ms(limits.first_token)},
                     {"idle_limit_ms", in_ms(limits.idle)},
                     {"total_limit_ms", in_ms(limits.total)},
                     {"connect_limit_ms", base::to_ms(net::kConnectTimeout)},
                     {"drain_limit_ms", base::to_ms(policy.drain)},
                     {"heartbeat_ms", in_ms(policy.heartbeat)},
                     {"max_tokens", or_null(policy.output.max_tokens)},
                     {"shared_budgets", store_object(policy.budgets.shared, store_)},
                     {"other_responses", metrics_.others()},
                     {"ends", std::move(ends)}});
}

}  // namespace fullstop::gateway
