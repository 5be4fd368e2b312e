// SGLang's native /generate: each event repeats the whole text so far, meta_info says how it
// stands.
#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void report(answer::Fact<base::Tokens>& fact, JsonValue value, const char* how) {
    if (const auto n = value.integer(); n && *n >= 0)
        fact = answer::Fact<base::Tokens>::reported({*n}, how);
}

void read_finish(JsonValue finish, Transcript& out) {
    out.finish(0, finish.is_string() ? finish.string() : finish["type"].string());
    out.detail("matched_stop", finish["matched"]);
    if (finish["type"].string() != "abort" || !finish["message"].is_string()) return;
    if (auto error = error_of(finish, true)) out.error(std::move(*error));
}

}  // namespace

bool read_sglang(JsonValue event, Transcript& out) {
    const JsonValue text = event["text"], meta = event["meta_info"];
    if (!text.is_string() || !meta.is_object()) return false;
    out.whole_content(0, text.string());
    report(out.record().prompt_tokens, meta["prompt_tokens"], "meta_info.prompt_tokens");
    report(out.record().output_tokens, meta["completion_tokens"], "meta_info.completion_tokens");
    report(out.record().cached_tokens, meta["cached_tokens"], "meta_info.cached_tokens");
    const JsonValue finish = meta["finish_reason"];
    finish ? read_finish(finish, out) : out.partial();
    return true;
}

}  // namespace fullstop::wire
