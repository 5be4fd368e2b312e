// One event of any dialect: the error it may hold first, then the dialect its members belong to.
#include "wire/dialects.h"

namespace fullstop::wire {

bool read_event(JsonValue event, Transcript& out) {
    if (event.is_array()) {  // TGI's root route and some gateways wrap one object
        bool understood = false;
        for (const JsonValue element : event) understood = (element.is_object() && read_event(element, out)) || understood;
        return understood;
    }
    bool understood = false;
    if (!event["choices"].present() || event["error"]) {
        if (auto error = error_of(event, false)) {
            read_fullstop(event["error"]["fullstop"], out);
            for (const auto key : {"n_prompt_tokens", "n_ctx"}) out.detail(std::string("error.") + key, event["error"][key]);
            out.error(std::move(*error));
            understood = true;
        }
    }
    for (const auto read : {read_openai, read_llama_server, read_ollama, read_koboldcpp, read_tgi, read_sglang})
        if (read(event, out)) return true;
    return understood;
}

}  // namespace fullstop::wire
