// Answers in the names of OpenTelemetry's conventions for generative AI, written as its Prometheus
// exporter writes them (dots become underscores, seconds a suffix), with the bounds the conventions
// give.
//
// Seen from the gateway's clients: durations count from the arrival of a request, its time in the
// queue included. What was not reported or not seen is not counted: an answer without usage adds
// nothing to the tokens, one in one piece has no first token. `error_type` is the cause of an end
// that was a cut or a refusal.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "answer/cause.h"
#include "answer/record.h"
#include "base/time.h"
#include "serving/prometheus_text.h"

namespace fullstop::gateway {

class GenAiMetrics {
public:
    struct Ended {
        std::string_view path;  ///< of the request
        bool stream = false;
        bool whole = false;  ///< it ended by itself, or at a limit that was set for it
        answer::Cause cause = answer::Cause::kUnexplained;
        base::Duration elapsed{};  ///< arrival to end
    };
    /// Times in the record count from the arrival of the request.
    void answer(const answer::Record& record, const Ended& ended);
    std::string text() const;

private:
    using Family = std::map<std::string, serving::Histogram>;  ///< by labels

    void add(Family& family, const std::string& labels, std::span<const double> bounds,
             double value);

    Family durations_, first_tokens_, token_times_, tokens_;
};

}  // namespace fullstop::gateway
