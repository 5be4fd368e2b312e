// One event of any dialect: the error it may hold first, then the dialect its members belong to.
#include <string>
#include <utility>

#include "wire/dialects/dialects.h"

namespace fullstop::wire {

namespace {

bool read_error(JsonValue event, bool marked_as_error, Transcript& out) {
    auto error = error_of(event, marked_as_error);
    if (!error) return false;
    read_fullstop(event["error"]["fullstop"], out);
    for (const auto* key : {"n_prompt_tokens", "n_ctx"})
        out.detail(std::string("error.") + key, event["error"][key]);
    out.error(std::move(*error));
    return true;
}

}  // namespace

bool read_event(JsonValue event, bool marked_as_error, Transcript& out) {
    bool understood = false;
    if (event.is_array()) {  // TGI's root route and some gateways wrap one object
        for (const JsonValue element : event)
            understood =
                (element.is_object() && read_event(element, marked_as_error, out)) || understood;
        return understood;
    }
    if (marked_as_error || !event["choices"].present() || event["error"])
        understood = read_error(event, marked_as_error, out);
    for (const auto read : {read_openai, read_anthropic, read_responses, read_llama_server,
                            read_ollama, read_koboldcpp, read_tgi, read_sglang, read_loose_numbers})
        if (read(event, out)) return true;
    return understood;
}

}  // namespace fullstop::wire
