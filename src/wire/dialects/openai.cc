// OpenAI chat and completions as many servers speak it, with what each adds: reasoning in three
// spellings, terminal fields of vLLM, SGLang, TabbyAPI and LM Studio, `timings` of llama-server,
// `fullstop` of contract section 6.
#include <array>

#include "wire/dialects/dialects.h"

namespace fullstop::wire {
namespace {

/// Why it stopped, beside finish_reason. On the choice or at the top, by server.
constexpr std::array<std::string_view, 7> kTerminal = {
    "stop_reason", "matched_stop",  "eos_reason", "stop_str",
    "stop_type",   "stopping_word", "truncated"};

void read_tool_calls(std::size_t choice, JsonValue calls, Transcript& out) {
    for (const JsonValue call : calls) {
        const JsonValue function = call["function"];
        out.tool_call(choice, function["name"].string());
        const JsonValue arguments = function["arguments"];
        out.tool_call(choice, arguments.is_string() ? arguments.string() : arguments.source());
    }
}

/// `delta` of a stream, `message` of a body: the same members.
void read_message(std::size_t choice, JsonValue message, Transcript& out) {
    bool reasoned = false;
    for (const JsonValue member : message) {
        const std::string_view key = member.key();
        if (key == "content") {
            if (member.is_string()) {
                out.content(choice, member.string());
            } else {
                for (const JsonValue part : member) out.content(choice, part["text"].string());
            }
        } else if (key == "reasoning_content" || key == "reasoning" || key == "thinking") {
            // vLLM sends two spellings of the same words while it renames the field: counted once.
            if (!reasoned) out.reasoning(choice, member.string());
            reasoned = reasoned || !member.string().empty();
        } else if (key == "tool_calls") {
            read_tool_calls(choice, member, out);
        } else if (key == "refusal") {
            out.content(choice, member.string());
        }
    }
}

void read_choice(JsonValue choice, Transcript& out) {
    std::size_t index = 0;
    if (const auto number = choice["index"].integer(); number && *number > 0)
        index = static_cast<std::size_t>(*number);
    JsonValue finish;
    for (const JsonValue member : choice) {
        const std::string_view key = member.key();
        if (key == "delta") {
            out.speaks(answer::Api::kOpenAiChat);
            out.partial();
            read_message(index, member, out);
        } else if (key == "message") {
            out.speaks(answer::Api::kOpenAiChat);
            read_message(index, member, out);
        } else if (key == "text") {
            out.speaks(answer::Api::kOpenAiCompletions);
            out.content(index, member.string());
        } else if (key == "finish_reason") {
            finish = member;
        } else if (key == "error") {
            if (auto error = error_of(choice, false)) out.error(std::move(*error));
        }
    }
    if (!finish) return;
    out.finish(index, finish);
    for (const auto key : kTerminal) out.detail(key, choice[key]);
}

/// Members that come once in a while; true when `key` is one.
bool read_extra(std::string_view key, JsonValue member, Transcript& out) {
    if (key == "usage") {
        read_usage(member, out.record());
    } else if (key == "timings") {
        read_timings(member, out.record());
    } else if (key == "metrics") {
        read_metrics(member, out.record());
    } else if (key == "fullstop") {
        read_fullstop(member, out);
    } else if (key == "stats") {
        out.detail("stop_reason", member["stop_reason"]);  // LM Studio's REST routes
    } else if (key == "__verbose") {
        for (const auto terminal : kTerminal) out.detail(terminal, member[terminal]);
        read_generation_settings(member["generation_settings"], out);
    } else {
        return false;
    }
    return true;
}

void assign_if_new(std::string& to, std::string_view value) {
    if (to != value) to.assign(value);
}

/// Ollama's /v1 layer passes its runner's error line on as a chunk whose model is "": that name is
/// kept as a terminal field, because an absent model and an empty one must stay apart once the
/// bytes are gone.
void read_model(std::string_view model, answer::Record& record) {
    if (model == record.response_model && !model.empty()) return;
    record.response_model = model;
    if (model.empty()) {
        record.stop_details["model"] = "";
    } else {
        record.stop_details.erase("model");
    }
}

}  // namespace

bool read_openai(JsonValue event, Transcript& out) {
    const std::string_view kind = event["object"].string();
    const bool named = kind.starts_with("chat.completion") || kind.starts_with("text_completion");
    if (!named && !event["choices"].present()) return false;
    if (kind.ends_with(".chunk")) out.partial();
    for (const JsonValue member : event) {
        const std::string_view key = member.key();
        if (key == "choices") {
            for (const JsonValue choice : member) read_choice(choice, out);
        } else if (key == "id") {
            if (member.is_string()) assign_if_new(out.record().response_id, member.string());
        } else if (key == "model") {
            if (member.is_string()) read_model(member.string(), out.record());
        } else if (key != "object") {
            if (!read_extra(key, member, out)) {
                for (const auto terminal : kTerminal)
                    if (key == terminal) out.detail(key, member);
            }
        }
    }
    return true;
}

bool read_loose_numbers(JsonValue event, Transcript& out) {
    bool understood = false;
    for (const JsonValue member : event)
        understood = (member.is_object() && read_extra(member.key(), member, out)) || understood;
    return understood;
}

}  // namespace fullstop::wire
