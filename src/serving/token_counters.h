// Who of several clients is next: the one who has had the fewest tokens. A virtual token counter
// for each API key (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024): charged
// with the estimate when a request starts, corrected by what it used. A client that comes back is
// lifted to the least of the active ones, so that idling earns no credit. Estimates do not lift
// anybody: they may be far too high.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace fullstop::serving {

class TokenCounters {
public:
    /// A request of this client waits or runs from now on; `gone` ends it.
    void comes(const std::string& client);
    void gone(const std::string& client);

    /// A request starts that may come to so many tokens; its end tells how many they were.
    void charge(const std::string& client, std::int64_t estimate);
    void settle(const std::string& client, std::int64_t estimate, std::int64_t tokens);
    std::int64_t used(const std::string& client) const;
    std::size_t known() const { return clients_.size(); }

private:
    struct Client {
        std::int64_t tokens = 0, estimated = 0;  ///< of ended requests; of running ones
        int active = 0;
    };
    void forget();
    std::unordered_map<std::string, Client> clients_;
    std::int64_t floor_ = 0;  ///< least count of the active ones when there last were any
};

}  // namespace fullstop::serving
