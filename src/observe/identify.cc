// A fixed list of questions, each asked only where the answers before it leave it open. What cannot
// be had costs at most kObserveTimeout, and two silent endpoints end the questioning.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "observe/exchange.h"
#include "observe/limits.h"
#include "observe/observer.h"
#include "observe/prometheus.h"
#include "observe/server_json.h"

namespace fullstop::observe {
namespace {

/// When a question is asked: always, while the server's name is open, or of one product only.
struct Question {
    std::string_view path;
    std::string_view only = {};  ///< name of the product; "?": while unknown; "": always
};

constexpr std::array kQuestions = {
    Question{"/v1/models"},
    Question{"/fullstop/status"},
    Question{"/props", "?"},
    Question{"/slots", "llama-server"},
    Question{"/api/extra/version", "?"},
    Question{"/api/extra/true_max_context_length", "koboldcpp"},
    Question{"/info", "?"},
    Question{"/get_server_info", "?"},
    Question{"/version", "?"},
    Question{"/api/version", "?"},
    Question{"/api/ps", "ollama"},
    Question{"/api/show", "ollama"},
    Question{"/api/v0/models", "?"},
    Question{"/metrics"},
};

bool looks_like_html(const Reply& reply) {
    const auto type = reply.headers.find("content-type");
    if (type != reply.headers.end() && type->second.find("text/html") != std::string::npos)
        return true;
    const auto first = reply.body.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    return first != std::string::npos && reply.body[first] == '<';
}

struct Trouble {
    std::string what, hint;
};

Trouble no_connection(const Reply& reply, bool tls) {
    const std::string words = reply.text.empty() ? "" : " (" + reply.text + ")";
    switch (reply.failure.value_or(net::ConnectFailure::kOther)) {
        case net::ConnectFailure::kResolve:
            return {"the host name is not known" + words,
                    "check the spelling of the host, or give its address"};
        case net::ConnectFailure::kRefused:
            return {"the connection was refused" + words,
                    "is the server running, and is the port right?"};
        case net::ConnectFailure::kUnreachable:
            return {"the host cannot be reached" + words,
                    "check the address and the network between"};
        case net::ConnectFailure::kTimedOut:
            return {"nobody answers at that address within 5 s" + words,
                    "check address, port and firewall"};
        case net::ConnectFailure::kTls:
            return {
                "the TLS handshake failed" + words,
                "does it speak plain HTTP (http://)? A self-signed certificate needs --insecure"};
        case net::ConnectFailure::kOther: break;
    }
    return {"no connection" + words, tls ? "does it speak plain HTTP (http://)?"
                                         : "is the server running, and is the port right?"};
}

/// What makes going on senseless, judged by the first reply.
std::optional<Trouble> trouble_of(const Reply& reply, bool tls) {
    switch (reply.outcome) {
        case Reply::Outcome::kNoConnection: return no_connection(reply, tls);
        case Reply::Outcome::kSilent:
            return Trouble{"it accepts connections and did not answer within 5 s",
                           tls ? "if it speaks plain HTTP, write http://: it may be the TLS "
                                 "handshake that it does not answer"
                               : "is it the right port, and is the server still loading or stuck? "
                                 "Look at its log"};
        case Reply::Outcome::kBroken:
            return Trouble{"it closed the connection without a whole HTTP answer" +
                               (reply.text.empty() ? std::string() : " (" + reply.text + ")"),
                           tls ? "is it an HTTP server?"
                               : "is it an HTTP server? If it speaks TLS, write https://"};
        case Reply::Outcome::kTooLarge:
            return Trouble{"its answer is no model list: " + reply.text,
                           "is it the address of an LLM server?"};
        case Reply::Outcome::kAnswered: break;
    }
    if (reply.status == 401 || reply.status == 403)
        return Trouble{
            fmt::format("it wants an API key (HTTP {}: {})", reply.status, message_of(reply.body)),
            "put the key into an environment variable and name it with --api-key-env NAME"};
    if (reply.status >= 300 && reply.status < 400) {
        const auto to = reply.headers.find("location");
        return Trouble{fmt::format("it redirects (HTTP {}) to {}", reply.status,
                                   to == reply.headers.end()
                                       ? "an unnamed place"
                                       : base::front_characters(to->second, kMaxNameBytes)),
                       "give the address it redirects to"};
    }
    if (reply.status >= 500 && reply.status != 501)
        return Trouble{
            fmt::format("it is not ready (HTTP {}: {})", reply.status, message_of(reply.body)),
            "wait until the model is loaded, or look at the server's log (behind a gateway: at "
            "both)"};
    return std::nullopt;
}

/// Facts that nothing spoke of get a reason that names the server.
void name_reasons(answer::ServerFacts& facts) {
    const std::string why =
        facts.name == "unknown" ? "the server is not recognised" : facts.name + " does not tell it";
    const auto give = [&](auto& fact) {
        if (!fact && fact.how == "not recorded") fact.how = why;
    };
    give(facts.window), give(facts.pool), give(facts.slots), give(facts.shared_pool),
        give(facts.default_max_tokens);
    give(facts.kv_bytes_per_token), give(facts.max_queue), give(facts.output_deadline_ms);
}

}  // namespace

struct Identify::State {
    State(wire::ServerUrl the_url, wire::Headers the_headers, Identity& target)
        : url(std::move(the_url)), headers(std::move(the_headers)), out(target) {}

    wire::ServerUrl url;
    wire::Headers headers;
    Identity& out;
    std::size_t next = 0;  ///< question to ask
    std::string_view asked;
    std::optional<Exchange> exchange;
    net::ConnectionId next_id = 1;
    std::string owner;
    std::optional<std::string> plain_version;  ///< of /version: whose, is not said there
    int silent = 0;
    bool saw_html = false;
    bool saw_json = false;
    bool done = false;

    void ask_next(base::Instant at, net::Actions& actions);
    bool wanted(const Question& question) const;
    std::string request_for(std::string_view path) const;
    void take(const Reply& reply);
    void read(std::string_view path, const std::string& body);
    void conclude();
    void give_up(Trouble trouble);
};

bool Identify::State::wanted(const Question& question) const {
    if (question.only.empty())
        return question.path != "/metrics" ||
               (out.facts.name != "ollama" && out.facts.name != "koboldcpp");
    if (question.only == "?") return out.facts.name == "unknown";
    if (question.path == "/api/show" && out.facts.model.empty()) return false;
    return out.facts.name == question.only;
}

std::string Identify::State::request_for(std::string_view path) const {
    if (path != "/api/show") return wire::get_text(url, path, headers);
    std::string body = "{\"model\":\"";
    for (const char c : out.facts.model) {
        if (c == '"' || c == '\\') body += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) body += c;
    }
    body += "\"}";
    wire::Headers with = headers;
    with.emplace_back("Content-Type", "application/json");
    with.emplace_back("Content-Length", std::to_string(body.size()));
    return "POST" + wire::get_text(url, path, with).substr(3) + body;
}

void Identify::State::ask_next(base::Instant at, net::Actions& actions) {
    while (next < kQuestions.size() && !wanted(kQuestions[next])) ++next;
    if (done) return;
    if (next >= kQuestions.size() || silent >= kMaxSilentEndpoints) return conclude();
    asked = kQuestions[next++].path;
    exchange.emplace(next_id++, net::Endpoint{url.host, url.port, url.tls}, request_for(asked), at,
                     actions);
}

void Identify::State::take(const Reply& reply) {
    if (asked == "/v1/models")
        if (auto trouble = trouble_of(reply, url.tls)) return give_up(std::move(*trouble));
    if (reply.outcome == Reply::Outcome::kSilent) ++silent;
    if (reply.outcome != Reply::Outcome::kAnswered) return;
    if (looks_like_html(reply)) {
        saw_html = true;
        return;
    }
    saw_json = saw_json || is_json(reply.body);
    if (!reply.ok()) return;
    if (asked != "/metrics" && !is_json(reply.body)) return;
    out.facts.raw[std::string(asked)] = reply.body.substr(0, kMaxRawBytes);
    read(asked, reply.body);
    for (std::string* name : {&out.facts.version, &out.facts.model})
        name->resize(base::front_characters(*name, kMaxNameBytes).size());
    for (std::string& name : out.models)
        name.resize(base::front_characters(name, kMaxNameBytes).size());
}

void Identify::State::read(std::string_view path, const std::string& body) {
    answer::ServerFacts& facts = out.facts;
    if (path == "/v1/models") {
        read_models(body, facts, out.models);
        owner = owner_of(body);
    } else if (path == "/fullstop/status") {
        read_fullstop_status(body, facts);
    } else if (path == "/props" && is_props(body)) {
        read_props(body, facts);
    } else if (path == "/slots") {
        read_slots(body, facts);
    } else if (path == "/api/extra/version") {
        read_koboldcpp_version(body, facts);
    } else if (path == "/api/extra/true_max_context_length") {
        read_koboldcpp_context(body, facts);
    } else if (path == "/info") {
        read_tgi_info(body, facts);
    } else if (path == "/get_server_info") {
        read_sglang_info(body, facts);
    } else if (path == "/version" && !version_of(body).empty()) {
        plain_version = version_of(body);
        if (owner == "vllm")
            facts.name = "vllm", facts.version = *plain_version,
            facts.how = "/v1/models owned_by vllm, and /version";
    } else if (path == "/api/version" && !version_of(body).empty()) {
        facts.name = "ollama", facts.version = version_of(body), facts.how = "/api/version";
        facts.max_queue = answer::Fact<std::int64_t>::unavailable(
            "Ollama lets requests wait without a limit once the model is loaded");
    } else if (path == "/api/ps") {
        read_ollama_ps(body, facts);
    } else if (path == "/api/show") {
        read_ollama_show(body, facts);
    } else if (path == "/api/v0/models" && out.models.size() > 0) {
        facts.name = "lm-studio", facts.how = "/api/v0/models";
        std::vector<std::string> models;
        read_models(body, facts, models);
    } else if (path == "/metrics") {
        read_metrics_facts(body, facts);
        if (facts.name == "unknown" && body.find("vllm:") != std::string::npos) {
            facts.name = "vllm", facts.version = plain_version.value_or(""),
            facts.how = "/metrics has vllm: series";
        } else if (facts.name == "unknown" && body.find("sglang:") != std::string::npos) {
            facts.name = "sglang", facts.how = "/metrics has sglang: series";
        }
    }
}

void Identify::State::conclude() {
    done = true;
    answer::ServerFacts& facts = out.facts;
    if (facts.name == "unknown" && owner == "llamacpp")
        facts.name = "llama-server", facts.how = "/v1/models owned_by llamacpp (/props is closed)";
    if (facts.name == "unknown" && !out.models.empty())
        facts.how = "no product recognised; /v1/models lists models as OpenAI does";
    if (facts.name == "ollama")
        out.api =
            answer::Api::kOllama;  // its own dialect reports errors that its OpenAI layer swallows
    name_reasons(facts);
    const bool recognised = facts.name != "unknown" || !out.models.empty();
    out.reachable = recognised || saw_json;
    if (recognised) return;
    if (saw_html && !saw_json) {
        out.trouble = "it answers with an HTML page where JSON was due";
        out.hint =
            "is this the address of a web interface? Give the server's own root or its /v1; the "
            "API often has another port";
    } else if (saw_json) {
        out.trouble =
            "it answers in JSON, but neither /v1/models nor any other known endpoint is there";
        out.hint = "give the server's root or its /v1, and name the model with --model";
    } else {
        out.trouble =
            "no known endpoint is there: /v1/models, /props, /api/version, /info all failed";
        out.hint = "is it the address of an LLM server? Give its root or its /v1";
    }
}

void Identify::State::give_up(Trouble trouble) {
    done = true;
    out.reachable = false;
    out.trouble = std::move(trouble.what);
    out.hint = std::move(trouble.hint);
    name_reasons(out.facts);
}

Identify::Identify(wire::ServerUrl url, wire::Headers headers, Identity& out)
    : state_(std::make_unique<State>(std::move(url), std::move(headers), out)) {}
Identify::~Identify() = default;

void Identify::start(base::Instant now, net::Actions& out) { state_->ask_next(now, out); }

void Identify::on(const net::Event& event, net::Actions& out) {
    if (state_->done) return;
    if (std::holds_alternative<net::Interrupted>(event.what)) {
        if (state_->exchange) state_->exchange->abandon(out);
        return state_->give_up({"interrupted before the server was known", ""});
    }
    if (!state_->exchange) return;
    const auto reply = state_->exchange->on(event, out);
    if (!reply) return;
    state_->exchange.reset();
    state_->take(*reply);
    state_->ask_next(event.at, out);
}

bool Identify::done() const { return state_->done; }

}  // namespace fullstop::observe
