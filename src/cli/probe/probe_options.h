// The options of `fullstop probe` (contract section 1) as one checked value. Parsing and checking
// only; nothing is sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answer/run.h"
#include "base/result.h"
#include "cli/output.h"
#include "wire/http/request_text.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

/// Flags as the user typed them; CLI11 fills them.
struct ProbeFlags {
    std::string url, control, model, api = "auto", levels = "1,2,4,8", prompts, max_tokens = "512",
                                     start = "together", budget;
    std::string client_deadline, client_idle, api_key_env, metrics_url, log_file, store, captures;
    int repeat = 2;
    double temperature = 0.7;
    std::optional<double> top_p;
    std::int64_t seed = 1;
    bool no_control = false, no_observe = false, quick = false, dry_run = false, quiet = false,
         insecure = false;
    std::vector<std::string> headers;
    Documents documents;
};

void declare_probe_options(CLI::App& app, ProbeFlags& flags);

/// The checked options: what to send where. Every error is a usage error: nothing was sent yet.
struct ProbeOptions {
    answer::Experiment experiment;       ///< without order; `prompts` filled
    std::optional<wire::ServerUrl> url;  ///< absent: the embedded server
    std::optional<wire::ServerUrl> control;
    std::optional<answer::Api> api;  ///< absent: auto
    wire::Headers headers;
};

/// `secret` is the value of --api-key-env's variable; `prompts_text` the content of --prompts, if
/// given.
base::Result<ProbeOptions> check_probe_options(const ProbeFlags& flags,
                                               const std::optional<std::string>& secret,
                                               const std::optional<std::string>& prompts_text);

/// "90s", "10m", "1.5h", "500ms"; a bare number is seconds. Usage error naming `option` otherwise.
base::Result<base::Duration> parse_duration(const std::string& text, const std::string& option);

}  // namespace fullstop::cli
