// The flags of `fullstop serve`, declared and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/llama/backend.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/access.h"
#include "cli/world.h"
#include "engine/limits.h"
#include "engine/scheduling/admission.h"
#include "engine/scheduling/slo.h"

namespace fullstop::cli {

/// As the user wrote them.
struct ServeFlags {
    std::string model = "builtin", listen = "127.0.0.1:8080", kv_tokens = "auto", kv_type = "q8_0",
                kv_layout = "auto", admission = "forecast", drain = "30s";
    std::string chat_template;  ///< "": the model's own
    AccessFlags access;
    std::string config;  ///< a file with values for all of these
    int max_sequences = 8;
    std::int64_t max_queue = engine::kDefaultMaxQueue;
    std::string gpu_layers = "auto";
    int threads = 0;  ///< 0: default_threads()
    std::uint64_t host_memory =
        static_cast<std::uint64_t>(engine::kDefaultHostMemory.count);  ///< bytes
    std::string load_invariant = "on", ttft_target = "none", itl_target = "none",
                slo_policy = "ignore";
    bool quiet = false;
};

struct ServeOptions {
    adapters::llama::LoadOptions load;
    std::string host;
    std::uint16_t port = 0;
    std::size_t max_queue = 0;
    engine::AdmissionMode admission = engine::AdmissionMode::kReserve;
    base::Bytes host_memory = engine::kDefaultHostMemory;
    std::optional<base::Duration> ttft_target, itl_target;
    engine::SloPolicy slo_policy = engine::SloPolicy::kIgnore;
    base::Duration drain{};
    serving::Access access;
    bool quiet = false;
};

void declare_serve(CLI::App& app, ServeFlags& flags);
base::Result<ServeOptions> read_serve(const ServeFlags& flags, const World& world);

}  // namespace fullstop::cli
