// The embedded server of a probe without URL: this program once more, as `fullstop serve` on a free
// loopback port, in a process of its own, so that it is measured like any other server and ends
// with the probe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace fullstop::running {

class EmbeddedServer {
public:
    struct Wanted {
        int max_sequences = 8;
        std::optional<base::Tokens> max_tokens;
    };
    /// `program`: this one. Waits until it listens. Errors carry the server's own last words.
    static base::Result<std::unique_ptr<EmbeddedServer>> start(const std::filesystem::path& program,
                                                               Wanted wanted);
    ~EmbeddedServer();

    const std::string& url() const { return url_; }
    std::optional<base::Bytes> resident_memory() const;

private:
    EmbeddedServer();
    struct State;
    std::unique_ptr<State> state_;
    std::string url_;
};

}  // namespace fullstop::running
