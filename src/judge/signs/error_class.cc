#include "judge/signs/error_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using enum answer::Cause;

// Order decides: special wordings before the general ones that they contain.
constexpr std::array kClasses = {
    ErrorClass{kRequestRejected, "exceed_context_size",
               "the prompt alone is larger than the window"},
    ErrorClass{kRequestRejected, "exceeds the available context size",
               "the prompt alone is larger than the window"},
    ErrorClass{kRequestRejected, "maximum context length is",
               "prompt and requested output do not fit the window"},
    ErrorClass{kRequestRejected, "context_length_exceeded",
               "the prompt alone is larger than the window"},
    ErrorClass{kKvPoolExhausted, "context size has been exceeded",
               "llama-server could not place one more token in the shared KV cache"},
    ErrorClass{kKvPoolExhausted, "even after retracting all",
               "the last running request did not fit the KV pool alone"},
    ErrorClass{kKvPoolExhausted, "kv cache is full", "the KV cache had no room"},
    ErrorClass{kKvPoolExhausted, "no available blocks", "the KV cache had no free block"},
    ErrorClass{kKvPoolExhausted, "no enough blocks", "the KV cache had no free block"},
    ErrorClass{kKvPoolExhausted, "no free blocks", "the KV cache had no free block"},
    ErrorClass{kKvPoolExhausted, "pages (only", "the job needs more cache pages than there are"},
    ErrorClass{kOutOfMemory, "out of memory", "an allocation failed"},
    ErrorClass{kOutOfMemory, "outofmemory", "an allocation failed"},
    ErrorClass{kOutOfMemory, "cudamalloc", "an allocation on the GPU failed"},
    ErrorClass{kOutOfMemory, "failed to allocate", "an allocation failed"},
    ErrorClass{kOutOfMemory, "oom-kill", "the system's memory killer ended the process"},
    ErrorClass{kAbortedByServer, "higher priority", "a request of higher priority took the place"},
    ErrorClass{kAbortedByServer, "waiting timeout", "the server's limit on waiting"},
    ErrorClass{kGenerationTimeLimit, "running timeout", "the server's limit on running time"},
    ErrorClass{kAbortedByServer, "disconnected from the client",
               "the server believed that the client had left"},
    ErrorClass{kAdmissionRejected, "queue is full", "the server's queue was full"},
    ErrorClass{kAdmissionRejected, "maximum pending requests", "the server's queue was full"},
    ErrorClass{kAdmissionRejected, "server busy", "the server's queue was full"},
    ErrorClass{kAdmissionRejected, "server is busy", "the server's queue was full"},
    ErrorClass{kAdmissionRejected, "no slots available", "no slot was free"},
    ErrorClass{kAdmissionRejected, "overloaded", "the server called itself overloaded"},
    ErrorClass{kAdmissionRejected, "admission", "the server did not admit it"},
    ErrorClass{kGatewayRejected, "concurrency limit", "a gateway's limit on concurrent requests"},
    ErrorClass{kGatewayRejected, "rate limit", "a gateway's limit on the rate of requests"},
    ErrorClass{kGatewayRejected, "ratelimit", "a gateway's limit on the rate of requests"},
    ErrorClass{kGatewayRejected, "too many requests", "a limit on the rate of requests"},
    ErrorClass{kGatewayIdleTimeout, "litellm.timeout",
               "LiteLLM's timeout, which on streams is a gap between reads"},
    ErrorClass{kGatewayIdleTimeout, "apitimeouterror",
               "a gateway's client library timed out on a read"},
    ErrorClass{kGatewayDeadline, "exceeded the timeout sent in the request",
               "Portkey's limit on the whole exchange"},
    ErrorClass{kGatewayDeadline, "upstream request timeout", "Envoy's limit on the whole exchange"},
    ErrorClass{kGatewayDeadline, "gateway timeout", "a gateway gave up on the server"},
    ErrorClass{kGatewayDeadline, "gateway time-out", "a gateway gave up on the server"},
    ErrorClass{kModelUnloaded, "unloaded", "the model was unloaded"},
    ErrorClass{kModelUnloaded, "model is unloading", "the model was being unloaded"},
    ErrorClass{kEngineDeath, "enginecore", "vLLM's engine process failed"},
    ErrorClass{kEngineDeath, "enginedead", "vLLM's engine process is dead"},
    ErrorClass{kEngineDeath, "engine dead", "the engine process is dead"},
    ErrorClass{kEngineDeath, "unexpectedly stopped", "the process that generates stopped"},
    ErrorClass{kEngineDeath, "while running the model", "the process that generates failed"},
    ErrorClass{kEngineDeath, "recreate the generator",
               "the generator had to be made anew; other running answers are lost with it"},
    ErrorClass{kEngineDeath, "please check the server console", "the generator failed"},
    ErrorClass{kEngineDeath, "compute error", "the computation failed for every running request"},
    ErrorClass{kEngineDeath, "decode() failed", "the computation failed for every running request"},
    ErrorClass{kEngineDeath, "invalid input batch",
               "the computation failed for every running request"},
    ErrorClass{kEngineDeath, "illegal memory access", "the GPU context is lost"},
    ErrorClass{kEngineDeath, "cuda error", "the GPU reported an error"},
};

}  // namespace

std::optional<ErrorClass> classify(const answer::ServerError& error) {
    const std::string text = lower(error.code + "\n" + error.type + "\n" + error.text);
    for (const ErrorClass& candidate : kClasses)
        if (contains(text, candidate.sign)) return candidate;
    return std::nullopt;
}

const answer::ServerError* decisive_error(const answer::Record& record) {
    return record.end.error ? &*record.end.error : nullptr;
}

int failing_status(const answer::Record& record) {
    if (record.status && *record.status >= 400) return *record.status;
    if (const auto* error = decisive_error(record); error != nullptr) {
        if (error->status && *error->status >= 400) return *error->status;
        const bool number =
            error->code.size() == 3 &&
            std::ranges::all_of(error->code, [](unsigned char c) { return std::isdigit(c) != 0; });
        if (number && error->code >= "400") return std::stoi(error->code);
    }
    return 0;
}

}  // namespace fullstop::judge
