// llama-server's native /completion, streamed and whole: stop_type of today's builds, the three
// flags of 2023 to 2024.
#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void read_end(std::size_t index, JsonValue event, Transcript& out) {
    if (const JsonValue type = event["stop_type"]) {
        out.finish(index, type);
    } else {
        for (const auto flag : {"stopped_eos", "stopped_word", "stopped_limit"})
            if (event[flag].is_true()) out.finish(index, std::string_view(flag));
    }
    for (const auto key : {"stop_type", "stopping_word", "truncated", "stopped_eos", "stopped_word",
                           "stopped_limit"})
        out.detail(key, event[key]);
    read_generation_settings(event["generation_settings"], out);
    out.terminator();
}

void report(answer::Fact<base::Tokens>& fact, JsonValue value, const char* how) {
    if (const auto n = value.integer(); n && *n >= 0)
        fact = answer::Fact<base::Tokens>::reported({*n}, how);
}

}  // namespace

bool read_llama_server(JsonValue event, Transcript& out) {
    const JsonValue content = event["content"];
    const JsonValue stop = event["stop"];
    if (!content.is_string() || !(stop.is_bool() || event["tokens_predicted"].present()))
        return false;
    std::size_t index = 0;
    if (const auto number = event["index"].integer(); number && *number > 0)
        index = static_cast<std::size_t>(*number);
    out.speaks(answer::Api::kLlamaServer);
    if (!stop.is_true()) out.partial();
    out.content(index, content.string());
    report(out.record().prompt_tokens, event["tokens_evaluated"], "tokens_evaluated");
    report(out.record().output_tokens, event["tokens_predicted"], "tokens_predicted");
    if (const auto model = event["model"]; model.is_string())
        out.record().response_model = model.string();
    if (stop.is_true()) {
        // Interim timings repeat what the last event says; reading them once is enough.
        read_timings(event["timings"], out.record());
        read_end(index, event, out);
    }
    return true;
}

}  // namespace fullstop::wire
