// Names of headers come in lower case from the host; values as they were sent.
#include "serving/request_identity.h"

#include <algorithm>

#include "serving/limits.h"

namespace fullstop::serving {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::string_view header(const net::ServiceRequest& request, const std::string& name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

bool wants_close(const net::ServiceRequest& request) {
    return lower(header(request, "connection")).find("close") != std::string::npos;
}

bool valid_request_id(std::string_view id) {
    return !id.empty() && id.size() <= kMaxRequestIdBytes &&
           std::ranges::all_of(id, [](char c) { return c > ' ' && c < '\x7F'; });
}

}  // namespace fullstop::serving
