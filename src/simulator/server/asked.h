// What one HTTP request asks of a scripted server: dialect, prompt, limits. Pure reading of path
// and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answer/request.h"
#include "net/service.h"
#include "simulator/server/answer_writer.h"

namespace fullstop::simulator {

struct Asked {
    Dialect dialect = Dialect::kOpenAi;
    std::vector<answer::Message> messages = {};
    std::string model = {};
    std::optional<std::int64_t> max_tokens = {};
    std::int64_t seed = 0;
    bool stream = false;
    bool include_usage = false;
};

/// The dialect that lives at this path, if any.
std::optional<Dialect> dialect_of(std::string_view target);
/// Nothing when the body is not a JSON object.
std::optional<Asked> read_asked(Dialect dialect, std::string_view body);

}  // namespace fullstop::simulator
