// What every server of answers reads first of a request: its headers by name, its identity, and
// whether the connection stays.
#pragma once

#include <string>
#include <string_view>

#include "net/service.h"

namespace fullstop::serving {

std::string lower(std::string_view text);  ///< ASCII
/// The value of a header (lower-case name); "" when there is none.
std::string_view header(const net::ServiceRequest& request, const std::string& name);
bool wants_close(const net::ServiceRequest& request);
/// Visible ASCII within kMaxRequestIdBytes: it goes back in a header and stands in logs.
bool valid_request_id(std::string_view id);

}  // namespace fullstop::serving
