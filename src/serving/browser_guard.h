// Did a browser send this request for a page of somebody else? A page may make any browser post to
// an address that only its user can reach, loopback among them, and a name that is pointed at this
// address afterwards (DNS rebinding) lets it read the answer too. Browsers tell on such pages in
// Origin, Sec-Fetch-Site and Host; who sends nothing of a browser is not looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/service.h"

namespace fullstop::serving {

/// Where a page comes from, in lower case; the port is the scheme's when none is written.
struct Origin {
    std::string scheme, host, port;
    bool operator==(const Origin&) const = default;
};

/// Of --allow-origin: pages that may ask although this server is not where they come from.
class AllowedOrigins {
public:
    /// Errors (usage) name the word that is no SCHEME://HOST[:PORT].
    static base::Result<AllowedOrigins> parse(const std::vector<std::string>& words);

    const std::vector<std::string>& words() const { return words_; }
    bool allow(const Origin& origin) const;
    /// Their hosts are names of this server as well: a page of that name is then its own.
    bool allow_host(std::string_view name) const;

private:
    std::vector<std::string> words_;
    std::vector<Origin> origins_;
};

/// Why this request is refused (403), in words for whoever runs the page; absent: it is not.
std::optional<std::string> foreign_page(const net::ServiceRequest& request,
                                        const AllowedOrigins& allowed);

/// Nobody but this machine reaches it: localhost, or an address of the loopback network (without
/// brackets).
bool is_loopback(std::string_view host);

}  // namespace fullstop::serving
