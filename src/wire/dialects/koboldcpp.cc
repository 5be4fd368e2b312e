// KoboldCpp's own routes: {"token", "finish_reason"} events without an end mark, and {"results":
// [...]} bodies.
#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

void read_results(JsonValue results, Transcript& out) {
    using TokenFact = answer::Fact<base::Tokens>;
    std::size_t index = 0;
    for (const JsonValue result : results) {
        out.content(index, result["text"].string());
        out.finish(index++, result["finish_reason"]);
        answer::Record& record = out.record();
        if (const auto n = result["prompt_tokens"].integer(); n && *n >= 0)
            record.prompt_tokens = TokenFact::reported({*n}, "results[].prompt_tokens");
        if (const auto n = result["completion_tokens"].integer(); n && *n >= 0)
            record.output_tokens = TokenFact::reported({*n}, "results[].completion_tokens");
    }
}

}  // namespace

bool read_koboldcpp(JsonValue event, Transcript& out) {
    if (const JsonValue results = event["results"];
        results.is_array() && results.first()["text"].is_string()) {
        out.speaks(answer::Api::kKoboldCpp);
        read_results(results, out);
        return true;
    }
    const JsonValue token = event["token"];
    if (!token.is_string()) return false;
    out.speaks(answer::Api::kKoboldCpp);
    out.partial();
    out.content(0, token.string());
    const JsonValue finish = event["finish_reason"];
    out.finish(0, finish);
    // The event with the reason is the last one; nothing else marks the end of this stream.
    if (const auto word = finish.string(); !word.empty() && word != "null") out.terminator();
    return true;
}

}  // namespace fullstop::wire
