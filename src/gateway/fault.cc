// Bytes of others may be anything: what is no visible ASCII is written as its number.
#include "gateway/fault.h"

#include <fmt/format.h>

namespace fullstop::gateway {
namespace {

std::string visible(const std::string& text) {
    std::string out;
    for (const char c : text) out += c >= ' ' && c < '\x7F' && c != '\\' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return out;
}

}  // namespace

std::string fault_line(const Fault& fault) {
    return fmt::format("a fault of this gateway ended one request, please report it: {}; {} {}, request {} of {} bytes, {} bytes relayed, at: {}\n",
                       visible(fault.what), visible(fault.method), visible(fault.path), visible(fault.request_id), fault.request_bytes, fault.relayed_bytes,
                       visible(fault.bytes));
}

}  // namespace fullstop::gateway
