// What noise does to a scripted server: how much slower than usual it is now, and when an answer's
// last bytes leave. It draws from its server's random numbers only where the script asks for noise,
// so that a script without it plays as before.
#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "net/service.h"
#include "simulator/server/server_script.h"

namespace fullstop::simulator {

class Pace {
public:
    Pace(const Noise& noise, base::Random& random) : noise_(noise), random_(random) {}

    void request_came(base::Instant now) {
        if (!first_request_) first_request_ = now;
    }
    /// Factor on the length of a step that begins now.
    double slowness(base::Instant now, std::uint64_t answers_begun);
    /// Factor on the prefill of this prompt.
    double prefill_share(std::size_t prompt);

    /// The last bytes of an answer, and its close.
    void end(base::Instant now, net::ServiceSend send, net::ServiceClose close,
             net::ServiceActions& out);
    void send_late_ends(base::Instant now, net::ServiceActions& out);
    std::optional<base::Instant> next_end() const;

private:
    struct LateEnd {
        base::Instant at;
        net::ServiceSend send;
        net::ServiceClose close;
    };

    const Noise& noise_;
    base::Random& random_;
    std::optional<base::Instant> first_request_;
    std::vector<bool> prompts_seen_;
    std::vector<LateEnd> late_;
};

}  // namespace fullstop::simulator
