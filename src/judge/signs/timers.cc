#include "judge/signs/timers.h"

#include <algorithm>
#include <array>

namespace fullstop::judge {
namespace {

constexpr std::array kIdle = {
    KnownTimer{15, "load balancers"},
    KnownTimer{30, "HAProxy packages, GCP backends"},
    KnownTimer{50, "HAProxy packages"},
    KnownTimer{60, "nginx proxy_read_timeout, AWS ALB, Kong, Traefik"},
    KnownTimer{100, "Cloudflare"},
    KnownTimer{120, "Cloudflare tunnel, LangChain stream_chunk_timeout"},
    KnownTimer{125, "Cloudflare"},
    KnownTimer{180, "Traefik idleTimeout"},
    KnownTimer{300, "undici, cpp-httplib, GCP"},
    KnownTimer{600, "LiteLLM, OpenAI SDKs"},
};
constexpr std::array kTotal = {
    KnownTimer{15, "Envoy's default route timeout"},
    KnownTimer{30, "GCP backend timeout"},
    KnownTimer{60, "Envoy AI Gateway"},
    KnownTimer{100, "Cloudflare"},
    KnownTimer{120, "common client limits"},
    KnownTimer{300, "aiohttp, Open WebUI, llama-swap"},
    KnownTimer{600, "OpenAI SDKs"},
    KnownTimer{900, "Olla"},
    KnownTimer{1800, "GPUStack"},
};

}  // namespace

std::span<const KnownTimer> idle_timers() { return kIdle; }
std::span<const KnownTimer> total_timers() { return kTotal; }

std::optional<KnownTimer> hit(std::span<const KnownTimer> timers, double ms) {
    for (const KnownTimer& timer : timers) {
        const double due = timer.seconds * 1000;
        if (ms >= due - 50 && ms <= due + std::max(1000.0, due * 0.02)) return timer;
    }
    return std::nullopt;
}

}  // namespace fullstop::judge
