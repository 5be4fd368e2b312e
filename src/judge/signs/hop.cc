#include "judge/signs/hop.h"

#include <array>
#include <string_view>

#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

struct Mark {
    std::string_view header;  ///< a prefix of the header's name
    std::string_view value;   ///< a part of its value; empty: any
    std::string_view name;
};

constexpr std::array kMarks = {
    Mark{"x-litellm-", "", "litellm"},   Mark{"fullstop-upstream", "", "fullstop"},
    Mark{"cf-ray", "", "cloudflare"},    Mark{"server", "cloudflare", "cloudflare"},
    Mark{"x-envoy-", "", "envoy"},       Mark{"server", "envoy", "envoy"},
    Mark{"server", "nginx", "nginx"},    Mark{"server", "openresty", "nginx"},
    Mark{"server", "caddy", "caddy"},    Mark{"via", "caddy", "caddy"},
    Mark{"x-kong-", "", "kong"},         Mark{"via", "kong", "kong"},
    Mark{"server", "awselb", "aws-alb"}, Mark{"via", "google", "gcp-lb"},
    Mark{"x-portkey-", "", "portkey"},   Mark{"via", "", "a proxy"},
};

}  // namespace

std::optional<Hop> gateway_of(const answer::Record& record) {
    for (const Mark& mark : kMarks)
        for (const auto& [name, value] : record.headers)
            if (name.starts_with(mark.header) &&
                (mark.value.empty() || contains(lower(value), mark.value)))
                return Hop{std::string(mark.name), "header " + name + ": " + value.substr(0, 60)};
    return std::nullopt;
}

bool invents_ends(const Hop& hop) { return hop.name == "litellm"; }

bool html_body(const answer::Record& record) {
    const auto type = record.headers.find("content-type");
    if (type != record.headers.end() && contains(lower(type->second), "text/html")) return true;
    if (!record.end.error) return false;
    const std::string text = lower(record.end.error->text.substr(0, 200));
    return contains(text, "<html") || contains(text, "<!doctype");
}

std::optional<ServerStamps> server_stamps(const answer::Record& record) {
    const auto first = record.shape.created_first, last = record.shape.created_last;
    if (!first || !last || *last <= *first) return std::nullopt;
    return ServerStamps{*first, *last};
}

}  // namespace fullstop::judge
