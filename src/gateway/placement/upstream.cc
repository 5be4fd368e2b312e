// Room is counted twice, in answers and in tokens: a server may have eight slots and memory for
// three.
#include "gateway/placement/upstream.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace fullstop::gateway {

std::string name_of(const wire::ServerUrl& url) {
    const bool six = url.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", six ? "[" : "", url.host, six ? "]" : "", url.port);
}

Upstream::Upstream(UpstreamOptions options)
    : options_(std::move(options)), name_(name_of(options_.url)) {}

/// The largest share seen counts at once; it fades slowly when prompts turn out shorter.
void Upstream::measured(const Work& work, std::int64_t prompt_tokens) {
    constexpr std::int64_t kTellingBytes = 64;
    const std::int64_t text = prompt_tokens - kTemplateTokens - work.messages * kMessageTokens;
    if (work.images > 0 || work.prompt_bytes < kTellingBytes || text <= 0) return;
    const double seen = 1.05 * static_cast<double>(text) / static_cast<double>(work.prompt_bytes);
    tokens_per_byte_ = std::clamp(std::max(seen, 0.9 * tokens_per_byte_ + 0.1 * seen),
                                  kLeastTokensPerByte, kMostTokensPerByte);
}

/// What a server says of itself is clamped to what it can mean; a number below 1 says nothing.
void Upstream::learned(Capacity capacity) {
    for (auto* number :
         {&capacity.slots, &capacity.pool, &capacity.window, &capacity.default_output})
        if (*number && **number < 1)
            number->reset();
        else if (*number)
            *number = std::min(**number, kMostTokens);
    capacity_ = std::move(capacity);
}

bool Upstream::serves(const std::string& model) const {
    return models().empty() || std::ranges::find(models(), model) != models().end();
}

std::optional<std::int64_t> Upstream::slots() const {
    if (options_.max_concurrency) return options_.max_concurrency;
    return options_.learn ? capacity_.slots : std::nullopt;
}

std::optional<std::int64_t> Upstream::pool() const {
    if (options_.kv_tokens) return options_.kv_tokens;
    if (!options_.learn) return std::nullopt;
    return overfull_ && !capacity_.pool ? capacity_.window : capacity_.pool;
}

std::int64_t Upstream::need(const Work& work, std::optional<std::int64_t> max_tokens) const {
    const std::int64_t prompt = prompt_tokens(work, tokens_per_byte_);
    const auto all = pool();
    const std::optional<std::int64_t> most = window();
    const std::int64_t rest = most ? std::max<std::int64_t>(0, *most - prompt) : 0;
    std::int64_t output = max_tokens.value_or(
        options_.expected_output.value_or(capacity_.default_output.value_or(rest)));
    if (most) output = std::min(output, rest);
    const std::int64_t sum = prompt + output * work.answers;
    return all ? std::min(sum, *all) : sum;
}

bool Upstream::has_room(std::int64_t need) const {
    if (const auto most = slots(); most && running_ >= *most) return false;
    const auto all = pool();
    return !all || running_ == 0 || held_ + need <= *all;
}

void Upstream::take(std::int64_t need, bool counted) {
    ++served_;
    if (!counted) return;
    ++running_;
    held_ += need;
}

void Upstream::give_back(std::int64_t need, bool counted) {
    if (!counted) return;
    FULLSTOP_ASSERT(running_ > 0 && held_ >= need, "what is given back was taken");
    --running_;
    held_ -= need;
}

double Upstream::busy(base::Instant now) const {
    const double most = slots() ? static_cast<double>(*slots()) : kNominalSlots;
    double running = static_cast<double>(running_), waiting = 0, memory = 0;
    if (const auto all = pool()) memory = static_cast<double>(held_) / static_cast<double>(*all);
    if (load_at_ && now - *load_at_ <= kFreshLoad) {  // others may use the server beside us
        running = std::max(running, load_.running.value_or(0));
        waiting = load_.waiting.value_or(0);
        memory = std::max(memory, load_.kv_used.value_or(0));
    }
    return std::max(running / most, memory) + waiting / most;
}

}  // namespace fullstop::gateway
