// Which keys there are. What is not in the file keeps the default that policy.h gives it.
#include "cli/gateway/gateway_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "cli/gateway/store_url.h"
#include "cli/gateway/toml_table.h"
#include "cli/listen_address.h"
#include "wire/http/request_path.h"

namespace fullstop::cli {
namespace {

using serving::Priority;

template <class T>
void set(T& target, const std::optional<T>& value) {
    if (value) target = *value;
}

void read_deadlines(TomlTable& table, gateway::Deadlines& out) {
    set(out.queue_wait, table.limit("queue_wait"));
    set(out.first_token, table.limit("first_token"));
    set(out.idle, table.limit("idle"));
    set(out.total, table.limit("total"));
}

void read_queue(TomlTable& table, gateway::QueueLimits& out) {
    if (const auto requests = table.integer("max_requests", 0, 1'000'000))
        out.requests = static_cast<std::size_t>(*requests);
    set(out.tokens, table.integer("max_tokens", 1));
    set(out.ageing, table.duration("ageing"));
    table.table("floors", [&](TomlTable& floors) {
        for (const Priority each : serving::kAllPriorities)
            if (const auto floor = floors.integer(to_string(each).data(), 0, 10'000))
                out.floors[static_cast<std::size_t>(each)] = static_cast<int>(*floor);
    });
}

void read_output(TomlTable& table, gateway::OutputLimits& out) {
    set(out.floor, table.integer("floor", 1, gateway::kMostTokens));
    if (const auto most = table.integer("max_tokens", 1, gateway::kMostTokens)) {
        out.max_tokens = most;
        if (*most < out.floor)
            table.wrong_value("max_tokens",
                              fmt::format("{} is below the floor of {}", *most, out.floor),
                              "raise it, or lower output.floor");
    }
    table.tables("by_load", [&](TomlTable& step) {
        const auto users = step.integer("users", 2),
                   tokens = step.integer("max_tokens", 1, gateway::kMostTokens);
        if (!users || !tokens)
            return step.wrong("wants users and max_tokens",
                              "for example users = 8 and max_tokens = 400");
        if (*tokens < out.floor)
            step.wrong_value("max_tokens",
                             fmt::format("{} is below the floor of {}", *tokens, out.floor),
                             "raise it, or lower output.floor");
        out.by_load.push_back({.users = *users, .max_tokens = *tokens});
    });
    std::ranges::sort(out.by_load, {}, &gateway::OutputLimits::Step::users);
}

std::optional<gateway::TokenWindow> read_window(TomlTable& table) {
    const auto tokens = table.integer("tokens", 1);
    const auto window = table.duration("window");
    if (!tokens || !window)
        return table.wrong("wants tokens and window",
                           "for example tokens = 100000 and window = \"1h\""),
               std::nullopt;
    return gateway::TokenWindow{.tokens = *tokens, .window = *window};
}

void read_shared(TomlTable& table, std::optional<gateway::SharedStore>& out) {
    gateway::SharedStore store;
    const auto url = table.text("url");
    if (!url)
        table.wrong("wants the url of a Redis or Valkey",
                    "for example url = \"redis://127.0.0.1:6379\"");
    else if (auto parsed = parse_store_url(*url))
        store = std::move(*parsed);
    else
        table.wrong_value("url", parsed.error().message, parsed.error().hint);
    if (const auto prefix = table.text("prefix")) {
        const auto plain = [](unsigned char each) {
            return std::isalnum(each) != 0 || each == '-' || each == '_' || each == '.' ||
                   each == ':';
        };
        if (prefix->empty() || prefix->size() > gateway::kMaxStorePrefix ||
            !std::ranges::all_of(*prefix, plain))
            table.wrong_value("prefix",
                              fmt::format("wants 1 to {} letters, digits or any of - _ . :",
                                          gateway::kMaxStorePrefix));
        store.prefix = *prefix;
    }
    if (const auto on_loss = table.text("on_loss")) {
        if (*on_loss != "fail_open" && *on_loss != "fail_closed")
            table.wrong_value("on_loss", "wants \"fail_open\" or \"fail_closed\"");
        if (*on_loss == "fail_closed") store.on_loss = gateway::SharedStore::OnLoss::kClosed;
    }
    set(store.timeout, table.duration("timeout"));
    out = std::move(store);
}

void read_paths(TomlTable& table, gateway::OtherPaths& out) {
    const auto other = table.text("other");
    if (!other) return;
    if (*other != "refuse" && *other != "relay")
        table.wrong_value("other", "wants \"refuse\" or \"relay\"");
    out = *other == "relay" ? gateway::OtherPaths::kRelay : gateway::OtherPaths::kRefuse;
}

/// A route's path as requests are looked up by it.
std::optional<std::string> read_route(TomlTable& table) {
    const auto path = table.text("path");
    const auto normal =
        path && path->starts_with('/') ? wire::normal_path(*path) : std::unexpected(std::string());
    if (normal && normal->query.empty()) return normal->path;
    table.wrong("wants the path of a request", "for example path = \"/v1/chat/completions\"");
    return std::nullopt;
}

void read_budget(TomlTable& table, gateway::Budgets& out) {
    table.table("overall", [&](TomlTable& window) { out.overall = read_window(window); });
    table.table("per_key", [&](TomlTable& window) { out.per_key = read_window(window); });
    table.tables("route", [&](TomlTable& window) {
        const auto path = read_route(window);
        const auto limit = read_window(window);
        if (path && limit) out.routes.insert_or_assign(*path, *limit);
    });
    table.table("shared", [&](TomlTable& inner) { read_shared(inner, out.shared); });
    if (out.shared && !out.overall && !out.per_key && out.routes.empty())
        table.wrong("has nothing to share",
                    "give it budget.overall, budget.per_key or [[budget.route]], or leave "
                    "budget.shared out");
}

void read_upstream(TomlTable& table, std::vector<gateway::UpstreamOptions>& out) {
    gateway::UpstreamOptions upstream;
    const auto url = table.text("url");
    if (!url) {
        table.wrong("wants a url", "for example url = \"http://127.0.0.1:8080\"");
    } else if (auto parsed = wire::parse_server_url(*url)) {
        upstream.url = std::move(*parsed);
    } else {
        table.wrong_value("url", parsed.error().message, parsed.error().hint);
    }
    if (const auto most = table.integer("max_concurrency", 1, 1'000'000))
        upstream.max_concurrency = most;
    if (const auto tokens = table.integer("kv_tokens", 1)) upstream.kv_tokens = tokens;
    if (const auto tokens = table.integer("expected_output", 1, gateway::kMostTokens))
        upstream.expected_output = tokens;
    set(upstream.learn, table.boolean("learn"));
    set(upstream.draining, table.boolean("draining"));
    set(upstream.models, table.texts("models"));
    if (const auto name = table.text("api_key_env")) {
        if (name->empty())
            table.wrong_value("api_key_env", "wants the name of an environment variable",
                              "for example api_key_env = \"LLAMA_API_KEY\"");
        upstream.api_key_env = *name;
    }
    out.push_back(std::move(upstream));
}

void read_all(TomlTable& table, GatewaySettings& out) {
    if (const auto listen = table.text("listen")) {
        if (const auto address = parse_listen_address(*listen))
            std::tie(out.host, out.port) = *address;
        else
            table.wrong_value("listen", address.error().message, address.error().hint);
    }
    set(out.access.key_file, table.text("api_key_file"));
    set(out.access.origins, table.texts("allow_origin"));
    set(out.policy.drain, table.duration("drain"));
    set(out.policy.heartbeat, table.limit("heartbeat"));
    set(out.policy.retry, table.boolean("retry"));
    set(out.policy.continuation, table.boolean("continuation"));
    set(out.policy.affinity, table.number("affinity", 0, 10));
    table.table("deadlines",
                [&](TomlTable& inner) { read_deadlines(inner, out.policy.deadlines); });
    table.table("queue", [&](TomlTable& inner) { read_queue(inner, out.policy.queue); });
    table.table("output", [&](TomlTable& inner) { read_output(inner, out.policy.output); });
    table.table("paths", [&](TomlTable& inner) { read_paths(inner, out.policy.other_paths); });
    table.table("budget", [&](TomlTable& inner) { read_budget(inner, out.policy.budgets); });
    table.tables("upstream", [&](TomlTable& inner) { read_upstream(inner, out.policy.upstreams); });
}

}  // namespace

base::Result<GatewaySettings> read_gateway_config(std::string_view text, const std::string& name,
                                                  std::set<std::string>* keys) {
    GatewaySettings settings;
    TomlError error{.file = name, .first = {}, .asked = {}};
    try {
        const toml::table root = toml::parse(text);
        TomlTable table(root, "", error);
        read_all(table, settings);
    } catch (const toml::parse_error& broken) {
        return base::usage_error(
            fmt::format("{}:{}: {}", name, broken.source().begin.line, broken.description()));
    }
    if (keys != nullptr) *keys = error.asked;
    if (error.first) return std::unexpected(*error.first);
    return settings;
}

}  // namespace fullstop::cli
