// The keys that a probe sends, so that a server which repeats them puts them neither into the store
// nor on a screen.
#pragma once

#include <string>
#include <vector>

#include "answer/record.h"
#include "observe/observer.h"
#include "wire/http/request_text.h"

namespace fullstop::cli {

class OwnSecrets {
public:
    OwnSecrets() = default;
    /// The values of headers whose names speak of keys, and those of the query of `url`.
    void learn(const wire::Headers& headers);
    void learn(const wire::ServerUrl& url);

    /// Each occurrence becomes [key]. In the raw bytes of a capture it keeps its length, so that
    /// they are still framed as they came; a key that lies across two chunks of these bytes is not
    /// found there.
    void hide(answer::Record& record) const;
    void hide(observe::Identity& identity) const;
    void hide(std::string& text) const;

private:
    void learn(std::string_view secret);
    void hide(std::string& text, bool same_length) const;
    std::vector<std::string> secrets_;  ///< the longest first
};

}  // namespace fullstop::cli
