// Each flag is checked once, here, with a message that names it.
#include "cli/gateway/gateway_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <tuple>

#include "cli/listen_address.h"
#include "cli/probe/probe_options.h"

namespace fullstop::cli {
namespace {

constexpr const char* kFooter =
    R"(Relays requests to the servers, and each piece of an answer as it comes, bytes unchanged. An answer
that was cut never looks complete: its stream ends with one error object that names the cause, who cut
it, the limit and the elapsed time. No [DONE] and no last chunk follow, and the connection closes.

Answers wait here instead of being cut at the server. A server gets no more answers than it has slots,
and no more tokens (prompt and longest answer together) than its KV cache holds. The gateway learns
both from llama-server, fullstop serve, SGLang and TGI; for other servers, configure them. Where
answers share one KV pool, a request without max_tokens counts as a whole window and runs alone
(expected_output in the file). A full queue gives 429 with Retry-After; a wait beyond --queue-wait
gives 503. A waiting stream gets a comment now and then (--heartbeat).

A request goes to the least busy server. A session or a common prefix stays on its server while load
allows. A request is tried on another server only if connecting failed or the first one said 503, and
never after a byte of a response was relayed. A path that is unknown and could carry an answer is
refused (403), unless the file says [paths] other = "relay".

By default the only time limit is --idle. --queue-wait, --first-token and --total each end an answer
with a reason of their own. Token budgets (of one gateway, or shared through Redis or Valkey), length
limits, classes and models are set in the file: docs/gateway.toml. SIGHUP reads the file again; no
stream is dropped.

Prints 'listening on http://HOST:PORT' (https with --tls-cert) when ready. /health, /metrics and
/fullstop/status are the gateway's own.

Examples:
  fullstop gateway --upstream http://127.0.0.1:8080              in front of a server on this machine
  fullstop gateway --upstream http://10.0.0.5:8000/v1 --upstream http://10.0.0.6:8000/v1 --listen 0.0.0.0:8081
  fullstop gateway --config gateway.toml --check                 what can cut an answer here?
  fullstop gateway --upstream http://127.0.0.1:8080 --total 120s --explain-deadlines
  fullstop probe http://127.0.0.1:8081 --control http://127.0.0.1:8080   which of the two cuts answers?)";

using Limit = std::optional<base::Duration>;

/// "none" or a time above zero.
base::Result<Limit> parse_limit(const std::string& text, const std::string& flag) {
    if (text == "none") return Limit();
    const auto limit = parse_duration(text, flag);
    if (!limit) return std::unexpected(limit.error());
    if (*limit <= base::Duration::zero())
        return base::usage_error(flag + " wants a time above 0", "for example 300s, or none");
    return Limit(*limit);
}

base::Result<void> override_limits(const GatewayFlags& flags, gateway::Policy& policy) {
    struct Flag {
        const std::optional<std::string>& word;
        const char* name;
        Limit& target;
    };
    for (const Flag& flag : {Flag{flags.queue_wait, "--queue-wait", policy.deadlines.queue_wait},
                             Flag{flags.first_token, "--first-token", policy.deadlines.first_token},
                             Flag{flags.idle, "--idle", policy.deadlines.idle},
                             Flag{flags.total, "--total", policy.deadlines.total},
                             Flag{flags.heartbeat, "--heartbeat", policy.heartbeat}}) {
        if (!flag.word) continue;
        auto limit = parse_limit(*flag.word, flag.name);
        if (!limit) return std::unexpected(limit.error());
        flag.target = *limit;
    }
    if (!flags.drain) return {};
    const auto drain = parse_duration(*flags.drain, "--drain");
    if (!drain) return std::unexpected(drain.error());
    policy.drain = *drain;
    return {};
}

base::Result<void> override_upstreams(const GatewayFlags& flags, gateway::Policy& policy) {
    if (!flags.upstreams.empty()) policy.upstreams.clear();
    for (const std::string& text : flags.upstreams) {
        auto url = wire::parse_server_url(text);
        if (!url) return std::unexpected(url.error());
        gateway::UpstreamOptions upstream;
        upstream.url = std::move(*url);
        policy.upstreams.push_back(std::move(upstream));
    }
    for (std::size_t i = 0; i < policy.upstreams.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (policy.upstreams[i].url.text == policy.upstreams[j].url.text)
                return base::usage_error(fmt::format("the upstream {} is given more than once",
                                                     policy.upstreams[i].url.text),
                                         "name each server once");
    if (flags.max_concurrency && *flags.max_concurrency < 1)
        return base::usage_error("--max-concurrency wants a number of at least 1", "for example 4");
    if (flags.max_concurrency)
        for (gateway::UpstreamOptions& upstream : policy.upstreams)
            upstream.max_concurrency = flags.max_concurrency;
    for (gateway::UpstreamOptions& upstream : policy.upstreams)
        if (upstream.api_key_env.empty()) upstream.api_key_env = flags.api_key_env;
    if (flags.no_observe)
        for (gateway::UpstreamOptions& upstream : policy.upstreams) upstream.learn = false;
    return {};
}

/// The rest of a header line.
bool is_header_text(const std::string& text) {
    return std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7F; });
}

}  // namespace

base::Result<void> read_api_keys(
    gateway::Policy& policy,
    const std::function<std::optional<std::string>(const std::string& name)>& env) {
    for (gateway::UpstreamOptions& upstream : policy.upstreams) {
        if (upstream.api_key_env.empty()) continue;
        const auto key = env(upstream.api_key_env);
        const std::string where = fmt::format("the API key for {}: the environment variable {}",
                                              upstream.url.text, upstream.api_key_env);
        if (!key || key->empty())
            return base::usage_error(
                where + " is not set",
                fmt::format("export {}=... and run again; the key is never stored or printed",
                            upstream.api_key_env));
        if (!is_header_text(*key))
            return base::usage_error(where + " holds a control character, which no key has");
        upstream.api_key = *key;
    }
    return {};
}

void declare_gateway(CLI::App& app, GatewayFlags& flags) {
    app.add_option(
           "--upstream", flags.upstreams,
           "URL of a server: its root or its /v1; may repeat. Replaces the upstreams of the file")
        ->expected(1)
        ->take_all();
    app.add_option("--api-key-env", flags.api_key_env,
                   "name of the environment variable with the key for the gateway's own requests "
                   "to the servers. With --api-key-file clients' requests carry it too, in place "
                   "of the client's key");
    declare_access(app, flags.access);
    app.add_option("--listen", flags.listen, "HOST:PORT; port 0 picks a free one [127.0.0.1:8081]");
    app.add_option("--tls-cert", flags.tls_certificate,
                   "PEM certificate chain: clients speak https (with --tls-key)");
    app.add_option("--tls-key", flags.tls_key, "PEM key of --tls-cert, without a passphrase");
    app.add_option("--config", flags.config,
                   "TOML file with all settings; docs/gateway.toml explains each");
    app.add_option(
        "--max-concurrency", flags.max_concurrency,
        "answers at once per server; further ones wait [learned from the server, else no limit]");
    app.add_option("--max-queue", flags.max_queue,
                   "requests that may wait; further ones get 429 [128]");
    app.add_option("--queue-wait", flags.queue_wait,
                   "longest wait in the queue; then 503, gateway_deadline [none]");
    app.add_option(
        "--first-token", flags.first_token,
        "longest time from dispatch to the first token of a stream; then gateway_deadline [none]");
    app.add_option("--idle", flags.idle,
                   "longest silence of a server, also before its response head; then "
                   "gateway_idle_timeout [300s]");
    app.add_option(
        "--total", flags.total,
        "longest time from arrival to the end of the answer; then gateway_deadline [none]");
    app.add_option(
        "--heartbeat", flags.heartbeat,
        "send a comment to a waiting stream after so long a silence; 'none': never [20s]");
    app.add_option("--drain", flags.drain, "time that running answers have after SIGTERM [30s]");
    app.add_option("--store", flags.store,
                   "keep a record of each answer, without its text; a probe's record of the same "
                   "answer has the same request id. An SQLite file, or "
                   "postgresql://USER@HOST:PORT/DB (password: PGPASSWORD or ~/.pgpass) [none]");
    app.add_flag(
        "--no-observe", flags.no_observe,
        "do not ask the servers for their slots, memory and load; only the configuration counts");
    app.add_flag("--check", flags.check,
                 "check the settings, list what can cut an answer here, and exit");
    app.add_flag(
        "--explain-deadlines", flags.explain_deadlines,
        "show the length of answer that each deadline allows at 1, 2, 4 and 8 users, and exit");
    app.add_option(
        "--tokens-per-second", flags.tokens_per_second,
        "with --explain-deadlines: the server's speed for one user; default: measured briefly");
    app.add_flag("--quiet", flags.quiet, "no summary on standard error");
    app.footer(kFooter);
}

base::Result<GatewaySettings> read_gateway(const GatewayFlags& flags,
                                           const std::optional<std::string>& config_text) {
    GatewaySettings settings;
    if (config_text) {
        auto read = read_gateway_config(*config_text, flags.config);
        if (!read) return read;
        settings = std::move(*read);
    }
    if (flags.tls_certificate.empty() != flags.tls_key.empty())
        return base::usage_error(
            fmt::format("{} is missing", flags.tls_key.empty() ? "--tls-key" : "--tls-cert"),
            "certificate and key go together");
    if (flags.listen) {
        auto listen = parse_listen_address(*flags.listen);
        if (!listen) return std::unexpected(listen.error());
        std::tie(settings.host, settings.port) = *listen;
    }
    if (!flags.access.key_file.empty()) settings.access.key_file = flags.access.key_file;
    if (!flags.access.origins.empty()) settings.access.origins = flags.access.origins;
    if (auto done = override_upstreams(flags, settings.policy); !done)
        return std::unexpected(done.error());
    if (auto done = override_limits(flags, settings.policy); !done)
        return std::unexpected(done.error());
    if (flags.max_queue && *flags.max_queue < 0)
        return base::usage_error("--max-queue wants a number of at least 0", "0: nobody waits");
    if (flags.max_queue)
        settings.policy.queue.requests = static_cast<std::size_t>(*flags.max_queue);
    if (flags.tokens_per_second && (!flags.explain_deadlines || !(*flags.tokens_per_second > 0)))
        return base::usage_error(
            "--tokens-per-second wants a number above 0, and --explain-deadlines",
            "for example --explain-deadlines --tokens-per-second 40");
    if (settings.policy.upstreams.empty())
        return base::usage_error("no server to relay to",
                                 "name one with --upstream URL, or [[upstream]] in --config FILE");
    return settings;
}

}  // namespace fullstop::cli
