// Uses libcrypto's one-shot digest; the one place outside adapters/asio that touches OpenSSL, and
// it does no I/O.
#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/assert.h"

namespace fullstop::base {

std::string sha256_hex(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    const int ok =
        EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
    FULLSTOP_ASSERT(ok == 1 && size == 32, "libcrypto has SHA-256");
    std::string hex;
    hex.reserve(64);
    for (unsigned int i = 0; i < size; ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        hex += kDigits[digest[i] >> 4];
        hex += kDigits[digest[i] & 15];
    }
    return hex;
}

}  // namespace fullstop::base
