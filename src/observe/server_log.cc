// One table of sentences, from the sources of llama-server, Ollama, vLLM, SGLang, TGI, TabbyAPI,
// LMDeploy, KoboldCpp, nginx, Caddy and llama-swap; one pass over the lines.
#include "observe/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fullstop::observe {
namespace {

using enum answer::Cause;

struct Sentence {
    std::string_view text;
    answer::Cause cause;
};

constexpr std::array kSentences = {
    Sentence{"Context size has been exceeded", kKvPoolExhausted},
    Sentence{"failed to find free space in the KV cache", kKvPoolExhausted},
    Sentence{"exceeds the available context size", kRequestRejected},
    Sentence{"slot context shift", kPromptTruncated},
    Sentence{"truncating input prompt", kPromptTruncated},
    Sentence{"context limit hit - shifting", kPromptTruncated},
    Sentence{"reducing automatic context and retrying once", kContextLimit},
    Sentence{"prediction aborted, token repeat limit reached", kRepetitionGuard},
    Sentence{"Generation stopped because a token loop was detected", kRepetitionGuard},
    Sentence{"runtime OOM detected", kOutOfMemory},
    Sentence{"CUDA out of memory", kOutOfMemory},
    Sentence{"killed by the OOM killer", kOutOfMemory},
    Sentence{"retract_decode: aborted last request", kOutOfMemory},
    Sentence{"maximum pending requests exceeded", kAdmissionRejected},
    Sentence{"The request queue is full", kAdmissionRejected},
    Sentence{"Model is overloaded", kAdmissionRejected},
    Sentence{"concurrency limit reached", kAdmissionRejected},
    Sentence{"model runner has unexpectedly stopped", kEngineDeath},
    Sentence{"EngineDeadError", kEngineDeath},
    Sentence{"Attempting to recreate the generator", kEngineDeath},
    Sentence{"KV cache pool is full. Retract requests", kPreempted},
    Sentence{"preempted by PreemptionMode", kPreempted},
    Sentence{"Request waiting timeout reached", kAbortedByServer},
    Sentence{"disconnected from the client side", kAbortedByServer},
    Sentence{"failed to decode, ret = -3", kCancelledByOther},
    Sentence{"upstream timed out", kGatewayIdleTimeout},
    Sentence{"upstream prematurely closed connection", kConnectionBroken},
    Sentence{"aborting with incomplete response", kConnectionBroken},
    Sentence{"recovered from upstream disconnection during streaming", kGatewayRewrite},
};
constexpr std::size_t kMaxLine =
    300;  // of a first line; logs may hold prompts, and a report is shown to others

}  // namespace

std::vector<LogSign> read_log(std::string_view text) {
    std::vector<LogSign> signs;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        for (const Sentence& sentence : kSentences) {
            if (!line.contains(sentence.text)) continue;
            auto sign = std::ranges::find(signs, sentence.text, &LogSign::sentence);
            if (sign == signs.end())
                sign = signs.insert(sign, {sentence.text, sentence.cause, 0,
                                           std::string(line.substr(0, kMaxLine))});
            ++sign->count;
        }
    }
    // Equal counts by sentence: std::stable_sort of libstdc++ 12 does not compile without a warning
    // here.
    std::ranges::sort(signs, [](const LogSign& a, const LogSign& b) {
        return a.count != b.count ? a.count > b.count : a.sentence < b.sentence;
    });
    return signs;
}

std::string describe(const LogSign& sign) {
    return fmt::format("the server's log says {} '{}' ({})",
                       sign.count == 1 ? "once" : fmt::format("{} times", sign.count),
                       sign.sentence, answer::to_string(sign.cause));
}

}  // namespace fullstop::observe
