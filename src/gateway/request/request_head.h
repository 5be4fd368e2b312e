// A client's request as the gateway reads it, and as the upstream gets it: changed only where a
// proxy must.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "net/service.h"
#include "serving/limits.h"
#include "serving/request_identity.h"
#include "wire/http/request_text.h"

namespace fullstop::gateway {

using serving::header, serving::kMaxRequestIdBytes, serving::lower, serving::valid_request_id,
    serving::wants_close;
/// In which headers clients send their keys.
inline constexpr std::array<const char*, 3> kCredentials = {"authorization", "x-api-key",
                                                            "api-key"};
/// Names that belong to one connection (RFC 9110, 7.6.1), and those that `connection` names.
/// Lower-case.
bool is_hop_by_hop(std::string_view name, std::string_view connection);

/// A path, in its normal form, on which models write answers; what comes from it is held to the
/// rules of an answer even before its dialect shows.
bool is_answer_path(std::string_view path);
/// What may be asked there is known to be none.
bool carries_no_answer(std::string_view method, std::string_view path);

/// The head alone, in front of a body of `body_bytes`.
std::string upstream_head(const net::ServiceRequest& request, const wire::ServerUrl& upstream,
                          std::string_view request_id, std::size_t body_bytes);
/// Head and body for the upstream, which gets the target in its normal form. Hop-by-hop fields are
/// left out, Host is the upstream's, the identity is `request_id`. Content encodings are not asked
/// for: how an answer ends must be readable.
std::string upstream_request(const net::ServiceRequest& request, const wire::ServerUrl& upstream,
                             std::string_view request_id);

}  // namespace fullstop::gateway
