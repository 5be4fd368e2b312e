// TGI's native /generate_stream and /generate. The stream's last event carries generated_text, and
// repeats all the text there; it has no other end mark.
#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void read_details(JsonValue details, Transcript& out) {
    out.finish(0, details["finish_reason"]);
    if (const auto n = details["generated_tokens"].integer(); n && *n >= 0)
        out.record().output_tokens =
            answer::Fact<base::Tokens>::reported({*n}, "details.generated_tokens");
    if (const auto n = details["input_length"].integer(); n && *n >= 0)
        out.record().prompt_tokens =
            answer::Fact<base::Tokens>::reported({*n}, "details.input_length");
    out.detail("details.seed", details["seed"]);
}

}  // namespace

bool read_tgi(JsonValue event, Transcript& out) {
    const JsonValue token = event["token"], whole = event["generated_text"];
    if (!token.is_object() && !whole.is_string()) return false;
    out.speaks(answer::Api::kTgi);
    if (token.is_object()) {
        out.partial();
        // Special tokens (</s>) are not part of the answer's text.
        if (!token["special"].is_true()) out.content(0, token["text"].string());
    } else {
        out.content(0, whole.string());
    }
    read_details(event["details"], out);
    if (whole.is_string()) out.terminator();
    return true;
}

}  // namespace fullstop::wire
