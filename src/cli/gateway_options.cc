// Each word is checked once, here, with a message that names the flag.
#include "cli/gateway_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <tuple>

#include "cli/listen_address.h"
#include "cli/probe_options.h"

namespace fullstop::cli {

void declare_gateway(CLI::App& app, GatewayWords& words) {
    app.add_option("--upstream", words.upstreams, "URL of the server behind: its root or its /v1 (one in this version)")->required();
    app.add_option("--listen", words.listen, "HOST:PORT; port 0 picks a free one")->capture_default_str();
    app.add_option("--tls-cert", words.tls_certificate, "PEM certificate chain for the clients: they then speak https (with --tls-key)");
    app.add_option("--tls-key", words.tls_key, "PEM key of --tls-cert, without a passphrase");
    app.add_option("--idle", words.idle,
                   "longest silence of the server, its head included; an answer that meets it ends with gateway_idle_timeout. 'none': no limit")
        ->capture_default_str();
    app.add_option("--drain", words.drain, "how long running answers may go on after SIGTERM")->capture_default_str();
    app.add_flag("--quiet", words.quiet, "no summary on standard error");
    app.footer(
        "Relays any request to the server and every piece of the answer as it comes, bytes unchanged. An answer that did not\n"
        "end by itself never looks as if it had: the stream then ends with one error object that names the cause and who\n"
        "ended it, without [DONE] and without the last chunk, and the connection closes. Of time only silence is limited (and the\n"
        "10 s of connecting); nothing is sent twice, and a client that leaves stops the server's work at once.\n"
        "Prints 'listening on http://HOST:PORT' (https with --tls-cert) when ready. /health, /metrics and /fullstop/status are the gateway's own.\n"
        "\nExamples:\n"
        "  fullstop gateway --upstream http://127.0.0.1:8080                      in front of a server on this machine\n"
        "  fullstop gateway --upstream http://10.0.0.5:8000/v1 --listen 0.0.0.0:8081 --idle 120s   for a whole network\n"
        "  fullstop probe http://127.0.0.1:8081 --control http://127.0.0.1:8080   which of the two shortens answers?");
}

base::Result<GatewayFlags> read_gateway(const GatewayWords& words) {
    GatewayFlags flags;
    if (words.upstreams.size() != 1) return base::usage_error("--upstream is given more than once", "this version relays to one server");
    auto upstream = wire::parse_server_url(words.upstreams.front());
    if (!upstream) return std::unexpected(upstream.error());
    flags.upstream = std::move(*upstream);
    auto listen = parse_listen_address(words.listen);
    if (!listen) return std::unexpected(listen.error());
    std::tie(flags.host, flags.port) = *listen;
    if (words.idle != "none") {
        const auto idle = parse_duration(words.idle, "--idle");
        if (!idle) return std::unexpected(idle.error());
        if (*idle <= base::Duration::zero()) return base::usage_error("--idle wants a time above 0", "for example 300s, or none");
        flags.idle = *idle;
    }
    const auto drain = parse_duration(words.drain, "--drain");
    if (!drain) return std::unexpected(drain.error());
    flags.drain = *drain;
    if (words.tls_certificate.empty() != words.tls_key.empty())
        return base::usage_error(fmt::format("{} is missing", words.tls_key.empty() ? "--tls-key" : "--tls-cert"), "certificate and key go together");
    flags.tls_certificate = words.tls_certificate;
    flags.tls_key = words.tls_key;
    flags.quiet = words.quiet;
    return flags;
}

}  // namespace fullstop::cli
