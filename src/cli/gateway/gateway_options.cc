// Each word is checked once, here, with a message that names the flag.
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
    "Relays requests to the servers and every piece of an answer as it comes, bytes unchanged. An "
    "answer that did not end by\n"
    "itself never looks as if it had: the stream then ends with one error object that names the "
    "cause, who ended it, the limit\n"
    "and the elapsed time, without [DONE] and without the last chunk, and the connection closes.\n"
    "\n"
    "Answers wait here instead of being cut there: no server gets more answers at once than it has "
    "slots, nor more tokens\n"
    "(prompt and longest answer together) than its KV cache holds. What a server tells of itself "
    "is learned (llama-server,\n"
    "fullstop serve, SGLang, TGI); the rest is configured. Where answers share memory, one without "
    "max_tokens is taken to need\n"
    "its whole window and runs alone (expected_output in the file). A full queue is 429 with "
    "Retry-After, a wait beyond\n"
    "--queue-wait 503.\n"
    "A client that asked for a stream hears a comment now and then while it waits (--heartbeat).\n"
    "\n"
    "A path that is not known and could carry an answer is refused (403), unless the file says "
    "[paths] other = \"relay\".\n"
    "\n"
    "Which server: the least busy one; the same session or prefix stays where it was while load "
    "allows. A request is tried at\n"
    "another server only when connecting failed or 503 came, and never after a byte of a response "
    "went on.\n"
    "\n"
    "Of time only silence is limited (--idle), unless more is asked for: --queue-wait, "
    "--first-token and --total each end an\n"
    "answer with their own reason. Budgets (one process's, or shared by several through a Redis "
    "or\n"
    "Valkey), limits on length, classes and models stand in the file: see docs/gateway.toml.\n"
    "'--check' says in plain words what can cut an answer; SIGHUP reads the file again without "
    "dropping a stream.\n"
    "Prints 'listening on http://HOST:PORT' (https with --tls-cert) when ready. /health, /metrics "
    "and /fullstop/status are the gateway's own.\n"
    "\n"
    "Examples:\n"
    "  fullstop gateway --upstream http://127.0.0.1:8080                      in front of a server "
    "on this machine\n"
    "  fullstop gateway --upstream http://10.0.0.5:8000/v1 --upstream http://10.0.0.6:8000/v1 "
    "--listen 0.0.0.0:8081\n"
    "  fullstop gateway --config gateway.toml --check                         what can cut an "
    "answer here?\n"
    "  fullstop gateway --upstream http://127.0.0.1:8080 --total 120s --explain-deadlines   what "
    "length does that allow?\n"
    "  fullstop probe http://127.0.0.1:8081 --control http://127.0.0.1:8080   which of the two "
    "shortens answers?";

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

base::Result<void> override_limits(const GatewayWords& words, gateway::Policy& policy) {
    struct Flag {
        const std::optional<std::string>& word;
        const char* name;
        Limit& target;
    };
    for (const Flag& flag : {Flag{words.queue_wait, "--queue-wait", policy.deadlines.queue_wait},
                             Flag{words.first_token, "--first-token", policy.deadlines.first_token},
                             Flag{words.idle, "--idle", policy.deadlines.idle},
                             Flag{words.total, "--total", policy.deadlines.total},
                             Flag{words.heartbeat, "--heartbeat", policy.heartbeat}}) {
        if (!flag.word) continue;
        auto limit = parse_limit(*flag.word, flag.name);
        if (!limit) return std::unexpected(limit.error());
        flag.target = *limit;
    }
    if (!words.drain) return {};
    const auto drain = parse_duration(*words.drain, "--drain");
    if (!drain) return std::unexpected(drain.error());
    policy.drain = *drain;
    return {};
}

base::Result<void> override_upstreams(const GatewayWords& words, gateway::Policy& policy) {
    if (!words.upstreams.empty()) policy.upstreams.clear();
    for (const std::string& text : words.upstreams) {
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
    if (words.max_concurrency && *words.max_concurrency < 1)
        return base::usage_error("--max-concurrency wants a number of at least 1", "for example 4");
    if (words.max_concurrency)
        for (gateway::UpstreamOptions& upstream : policy.upstreams)
            upstream.max_concurrency = words.max_concurrency;
    for (gateway::UpstreamOptions& upstream : policy.upstreams)
        if (upstream.api_key_env.empty()) upstream.api_key_env = words.api_key_env;
    if (words.no_observe)
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

void declare_gateway(CLI::App& app, GatewayWords& words) {
    app.add_option(
           "--upstream", words.upstreams,
           "URL of a server behind: its root or its /v1; may repeat. Replaces those of the file")
        ->expected(1)
        ->take_all();
    app.add_option("--api-key-env", words.api_key_env,
                   "name of the environment variable with the key that the gateway's own questions "
                   "to the servers carry; clients' requests keep theirs, unless "
                   "there is an --api-key-file: "
                   "then no client's key goes on, and requests carry this one");
    declare_access(app, words.access);
    app.add_option("--listen", words.listen, "HOST:PORT; port 0 picks a free one [127.0.0.1:8081]");
    app.add_option("--tls-cert", words.tls_certificate,
                   "PEM certificate chain for the clients: they then speak https (with --tls-key)");
    app.add_option("--tls-key", words.tls_key, "PEM key of --tls-cert, without a passphrase");
    app.add_option("--config", words.config,
                   "TOML file with all settings; docs/gateway.toml explains each");
    app.add_option("--max-concurrency", words.max_concurrency,
                   "answers at once per server; further ones wait [as learned from the server, "
                   "else not limited]");
    app.add_option("--max-queue", words.max_queue, "requests that may wait; beyond that 429 [128]");
    app.add_option("--queue-wait", words.queue_wait,
                   "longest wait for a server; beyond that 503, gateway_deadline [none]");
    app.add_option(
        "--first-token", words.first_token,
        "longest time from then to the first token of a stream; gateway_deadline [none]");
    app.add_option("--idle", words.idle,
                   "longest silence of the server, its head included; gateway_idle_timeout [300s]");
    app.add_option("--total", words.total,
                   "longest time from arrival to the end; gateway_deadline [none]");
    app.add_option("--heartbeat", words.heartbeat,
                   "a comment for a waiting stream after this silence; 'none': never [20s]");
    app.add_option("--drain", words.drain,
                   "how long running answers may go on after SIGTERM [30s]");
    app.add_option("--store", words.store,
                   "keeps one record of each answer, without its text, joined with a probe's by "
                   "request id: an SQLite file, or "
                   "postgresql://USER@HOST:PORT/DB (password: PGPASSWORD or ~/.pgpass) [none]");
    app.add_flag("--no-observe", words.no_observe,
                 "ask the servers nothing about themselves: no slots, no memory, no load but what "
                 "is configured");
    app.add_flag("--check", words.check,
                 "check the settings, say what can cut an answer here, and end");
    app.add_flag("--explain-deadlines", words.explain_deadlines,
                 "say what length of answer each deadline allows at 1, 2, 4 and 8 users, and end");
    app.add_option("--tokens-per-second", words.tokens_per_second,
                   "with --explain-deadlines: the server's speed for one user, instead of a short "
                   "measurement");
    app.add_flag("--quiet", words.quiet, "no summary on standard error");
    app.footer(kFooter);
}

base::Result<GatewaySettings> read_gateway(const GatewayWords& words,
                                           const std::optional<std::string>& config_text) {
    GatewaySettings settings;
    if (config_text) {
        auto read = read_gateway_config(*config_text, words.config);
        if (!read) return read;
        settings = std::move(*read);
    }
    if (words.tls_certificate.empty() != words.tls_key.empty())
        return base::usage_error(
            fmt::format("{} is missing", words.tls_key.empty() ? "--tls-key" : "--tls-cert"),
            "certificate and key go together");
    if (words.listen) {
        auto listen = parse_listen_address(*words.listen);
        if (!listen) return std::unexpected(listen.error());
        std::tie(settings.host, settings.port) = *listen;
    }
    if (!words.access.key_file.empty()) settings.access.key_file = words.access.key_file;
    if (!words.access.origins.empty()) settings.access.origins = words.access.origins;
    if (auto done = override_upstreams(words, settings.policy); !done)
        return std::unexpected(done.error());
    if (auto done = override_limits(words, settings.policy); !done)
        return std::unexpected(done.error());
    if (words.max_queue && *words.max_queue < 0)
        return base::usage_error("--max-queue wants a number of at least 0", "0: nobody waits");
    if (words.max_queue)
        settings.policy.queue.requests = static_cast<std::size_t>(*words.max_queue);
    if (words.tokens_per_second && (!words.explain_deadlines || !(*words.tokens_per_second > 0)))
        return base::usage_error(
            "--tokens-per-second wants a number above 0, and --explain-deadlines",
            "for example --explain-deadlines --tokens-per-second 40");
    if (settings.policy.upstreams.empty())
        return base::usage_error("no server to relay to",
                                 "name one with --upstream URL, or [[upstream]] in --config FILE");
    return settings;
}

}  // namespace fullstop::cli
