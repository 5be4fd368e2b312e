// The text format of Prometheus, line by line: only what a server says of its load and its limits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/run.h"

namespace fullstop::observe {

struct Series {
    std::string name;
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;

    std::string label(std::string_view wanted) const;  ///< "" when absent
};

/// Every readable series with a finite value; lines that are none are passed over.
std::vector<Series> parse_prometheus(std::string_view text);

/// Limits that only /metrics tells: pool of vLLM (cache_config_info), pool and window of SGLang.
void read_metrics_facts(std::string_view text, answer::ServerFacts& facts);

}  // namespace fullstop::observe
