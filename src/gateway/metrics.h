// What the gateway did so far, as Prometheus text: answers by cause and upstream, what runs, what was relayed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "answer/cause.h"

namespace fullstop::gateway {

/// What runs is named apart from `serve`'s gauge: whoever reads it through a gateway would take it for the server's.
class Metrics {
public:
    explicit Metrics(std::string upstream) : upstream_(std::move(upstream)) {}

    void answer(answer::Cause cause) { ++ends_[cause]; }
    void other() { ++others_; }  ///< a response that was no answer of a model: models, health, tokens
    void relayed(std::size_t bytes) { bytes_ += static_cast<std::int64_t>(bytes); }

    std::string text(std::size_t running) const;
    const std::map<answer::Cause, std::int64_t>& ends() const { return ends_; }
    std::int64_t others() const { return others_; }

private:
    std::string upstream_;
    std::map<answer::Cause, std::int64_t> ends_;
    std::int64_t others_ = 0, bytes_ = 0;
};

}  // namespace fullstop::gateway
