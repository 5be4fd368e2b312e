// Who may ask: the keys of --api-key-file, each with the name of the client it belongs to.
//
// Only digests are kept, so no key can reach a log, a document or a core file's strings; comparing
// digests tells an attacker nothing by its duration.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullstop::serving {

class ApiKeys {
public:
    /// `name:key` or `key` a line; empty lines and lines that begin with # are skipped. A key
    /// without a name is called "key N" by its line. Errors name `source` and the line, never a
    /// key.
    static base::Result<ApiKeys> parse(std::string_view text, const std::string& source);

    /// No keys: everybody may ask.
    bool open() const { return keys_.empty(); }
    /// The client whose key stands in an Authorization header; absent: it holds none of ours.
    std::optional<std::string> client(std::string_view authorization) const;
    std::vector<std::string> names() const;

private:
    struct Key {
        std::string name, digest;
        int line = 0;
    };
    std::vector<Key> keys_;
};

}  // namespace fullstop::serving
