// Plain search: a few keys, a few texts an answer.
#include "cli/probe/own_secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace fullstop::cli {
namespace {

/// Shorter ones are no keys, and would be found in ordinary words.
constexpr std::size_t kLeastBytes = 6;
constexpr std::string_view kMark = "[key]";
constexpr std::array<std::string_view, 6> kNames = {"auth",   "key",    "token",
                                                    "secret", "cookie", "pass"};

bool names_a_secret(std::string name) {
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::ranges::any_of(kNames, [&](std::string_view part) { return name.contains(part); });
}

}  // namespace

void OwnSecrets::learn(std::string_view secret) {
    if (secret.size() < kLeastBytes || std::ranges::find(secrets_, secret) != secrets_.end())
        return;
    secrets_.emplace_back(secret);
    std::ranges::sort(secrets_, std::ranges::greater(), &std::string::size);
}

void OwnSecrets::learn(const wire::Headers& headers) {
    for (const auto& [name, value] : headers) {
        if (!names_a_secret(name)) continue;
        learn(value);
        if (const auto space = value.rfind(' '); space != std::string::npos)
            learn(std::string_view(value).substr(space + 1));  // "Bearer KEY"
    }
}

void OwnSecrets::learn(const wire::ServerUrl& url) {
    std::string_view rest = url.query;
    if (rest.starts_with('?')) rest.remove_prefix(1);
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
        if (const auto equals = pair.find('=');
            equals != std::string_view::npos && names_a_secret(std::string(pair.substr(0, equals))))
            learn(pair.substr(equals + 1));
    }
}

void OwnSecrets::hide(std::string& text, bool same_length) const {
    for (const std::string& secret : secrets_) {
        std::string mark(kMark);
        if (same_length) mark.resize(secret.size(), '*');
        for (std::size_t at = text.find(secret); at != std::string::npos;
             at = text.find(secret, at + mark.size()))
            text.replace(at, secret.size(), mark);
    }
}

void OwnSecrets::hide(std::string& text) const { hide(text, false); }

void OwnSecrets::hide(answer::Record& record) const {
    if (secrets_.empty()) return;
    for (std::string* text : {&record.text, &record.reasoning, &record.tool_calls,
                              &record.response_id, &record.response_model})
        hide(*text);
    for (auto& [name, value] : record.headers) hide(value);
    for (auto& [name, value] : record.stop_details) hide(value);
    if (record.end.reason) hide(*record.end.reason);
    if (record.fullstop_cause) hide(*record.fullstop_cause);
    const auto hide_error = [this](answer::ServerError& error) {
        for (std::string* text : {&error.code, &error.type, &error.text}) hide(*text);
    };
    if (record.end.error) hide_error(*record.end.error);
    std::ranges::for_each(record.server_errors, hide_error);
    hide(record.capture.bytes, true);
}

void OwnSecrets::hide(observe::Identity& identity) const {
    answer::ServerFacts& facts = identity.facts;
    for (std::string* text :
         {&identity.trouble, &identity.hint, &facts.name, &facts.version, &facts.how, &facts.model})
        hide(*text);
    for (std::string& model : identity.models) hide(model);
    for (auto& [endpoint, body] : facts.raw) hide(body);
}

}  // namespace fullstop::cli
