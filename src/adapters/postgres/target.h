// A URL of a database, as libpq reads it, and its name for people. A password leaves this file only
// towards libpq.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fullstop::adapters::postgres {

struct Target {
    std::map<std::string, std::string> options;  ///< by libpq's keywords; the password among them
    std::string name;                            ///< postgresql://user@host:port/db
};

bool is_url(std::string_view text);
/// Errors (usage) never repeat the password. What the URL leaves open comes from libpq's own
/// places: PGPASSWORD, ~/.pgpass, ...
base::Result<Target> parse_url(const std::string& url);

}  // namespace fullstop::adapters::postgres
