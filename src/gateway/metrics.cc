// The text format of Prometheus 0.0.4, written directly: a dozen lines do not need a library.
#include "gateway/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace fullstop::gateway {
namespace {

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

std::string Metrics::text(std::size_t running) const {
    std::string out;
    const auto put = std::back_inserter(out);
    head(out, "fullstop_gateway_requests_running", "gauge", "Requests passed on and not ended");
    fmt::format_to(put, "fullstop_gateway_requests_running{{upstream=\"{}\"}} {}\n", upstream_, running);
    head(out, "fullstop_answers_total", "counter", "Answers by the cause of their end");
    for (const auto& [cause, count] : ends_)
        fmt::format_to(put, "fullstop_answers_total{{cause=\"{}\",layer=\"{}\",upstream=\"{}\"}} {}\n", answer::to_string(cause),
                       answer::to_string(answer::entry(cause).layer), upstream_, count);
    head(out, "fullstop_other_responses_total", "counter", "Responses relayed that were no answer of a model");
    fmt::format_to(put, "fullstop_other_responses_total{{upstream=\"{}\"}} {}\n", upstream_, others_);
    head(out, "fullstop_relayed_bytes_total", "counter", "Bytes of response bodies relayed");
    fmt::format_to(put, "fullstop_relayed_bytes_total{{upstream=\"{}\"}} {}\n", upstream_, bytes_);
    return out;
}

}  // namespace fullstop::gateway
