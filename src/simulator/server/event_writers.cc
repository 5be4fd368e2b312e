// The events of each dialect, as its servers write them: OpenAI chat, Ollama's /api/chat,
// llama-server's /completion.
#include <fmt/format.h>

#include <iterator>

#include "simulator/server/answer_writer.h"

namespace fullstop::simulator {
namespace {

std::string error_object(const answer::ServerError& error) {
    std::string code = "null";
    if (!error.code.empty())
        code = json_quoted(error.code);
    else if (error.status)
        code = std::to_string(*error.status);
    return fmt::format(R"({{"code":{},"message":{},"type":{}}})", code, json_quoted(error.text),
                       error.type.empty() ? "null" : json_quoted(error.type));
}

std::string quoted_or_null(const std::optional<std::string>& word) {
    return word ? json_quoted(*word) : "null";
}

std::string timings_object(const Totals& totals) {
    const auto rate = [](std::int64_t n, double ms) {
        return ms > 0 ? static_cast<double>(n) * 1000 / ms : 0.0;
    };
    return fmt::format(
        R"({{"cache_n":0,"prompt_n":{},"prompt_ms":{:.3f},"prompt_per_second":{:.3f},"predicted_n":{},"predicted_ms":{:.3f},"predicted_per_second":{:.3f}}})",
        totals.prompt_tokens, totals.prompt_ms, rate(totals.prompt_tokens, totals.prompt_ms),
        totals.output_tokens, totals.predicted_ms, rate(totals.output_tokens, totals.predicted_ms));
}

class OpenAiEvents final : public EventWriter {
public:
    OpenAiEvents(const ServerScript& script, EventNames names)
        : script_(script), names_(std::move(names)) {
        tail_ = tail_with(names_.model);
        reasoning_field_ = script.plays == Plays::kOllama ? "reasoning" : "reasoning_content";
    }

    std::string_view content_type() const override { return "text/event-stream"; }
    std::string opening() const override {
        return event(
            R"([{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}])");
    }
    std::string token(std::string_view text, bool reasoning) const override {
        if (script_.tool_calls && !reasoning)
            return event(fmt::format(
                R"([{{"finish_reason":null,"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"call_1","type":"function","function":{{"name":"note","arguments":{}}}}}]}}}}])",
                json_quoted(text)));
        return fmt::format(
            R"(data: {{"choices":[{{"finish_reason":null,"index":0,"delta":{{"{}":{}}}}}],{}}})"
            "\n\n",
            reasoning ? reasoning_field_ : std::string_view("content"), json_quoted(text), tail_);
    }
    std::vector<std::string> closing(const Ending& ending, const Totals& totals) const override {
        std::vector<std::string> events;
        const bool timings =
            script_.plays == Plays::kLlamaServer && script_.tells.timings && ending.usage;
        const bool usage = names_.include_usage && script_.tells.usage && ending.usage;
        const std::string timed =
            timings ? R"(,"timings":)" + timings_object(totals) : std::string{};
        if (ending.nameless_model)
            events.push_back(
                fmt::format("data: "
                            "{{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{"
                            "\"content\":\"\"}}}}],{}}}\n\n",
                            tail_with("")));
        if (ending.reason)
            events.push_back(
                event(fmt::format("[{}]", choice(ending)), usage ? std::string{} : timed));
        if (usage)
            events.push_back(
                event("[]", fmt::format(R"(,"usage":{}{})", usage_object(totals), timed)));
        if (ending.verbatim) {
            events.push_back(*ending.verbatim);
        } else if (ending.error) {
            const auto object = error_object(*ending.error);
            events.push_back(ending.error_form == ErrorForm::kData
                                 ? fmt::format("data: {{\"error\":{}}}\n\n", object)
                                 : fmt::format("error: {}\n\n", object));
        }
        if (ending.terminator) events.emplace_back("data: [DONE]\n\n");
        return events;
    }
    std::string whole(const Ending& ending, const Totals& totals, std::string_view text,
                      std::string_view reasoning) const override {
        std::string message =
            fmt::format(R"({{"role":"assistant","content":{})", json_quoted(text));
        if (!reasoning.empty())
            message += fmt::format(R"(,"{}":{})", reasoning_field_, json_quoted(reasoning));
        std::string body = fmt::format(
            R"({{"choices":[{{"finish_reason":{},"index":0,"message":{}}}}}],"id":"{}","model":{},"object":"chat.completion")",
            quoted_or_null(ending.reason), message, names_.id, json_quoted(names_.model));
        if (script_.tells.usage && ending.usage)
            body += fmt::format(R"(,"usage":{})", usage_object(totals));
        if (script_.plays == Plays::kLlamaServer && script_.tells.timings && ending.usage)
            body += fmt::format(R"(,"timings":{})", timings_object(totals));
        return body + "}";
    }
    std::string error_body(const answer::ServerError& error) const override {
        return fmt::format(R"({{"error":{}}})", error_object(error));
    }

private:
    std::string tail_with(std::string_view model) const {
        return fmt::format(
            R"("created":1767225600,"id":"{}","model":{},"system_fingerprint":{},"object":"chat.completion.chunk")",
            names_.id, json_quoted(model), json_quoted(names_.fingerprint));
    }
    std::string event(std::string_view choices, std::string_view more = {}) const {
        return fmt::format("data: {{\"choices\":{},{}{}}}\n\n", choices, tail_, more);
    }
    static std::string choice(const Ending& ending) {
        std::string more;
        if (ending.eos_reason)
            more += fmt::format(R"(,"eos_reason":{})", json_quoted(*ending.eos_reason));
        if (ending.stop_reason)
            more += fmt::format(R"(,"stop_reason":{})", json_quoted(*ending.stop_reason));
        return fmt::format(R"({{"finish_reason":{},"index":0,"delta":{{}}{}}})",
                           quoted_or_null(ending.reason), more);
    }
    static std::string usage_object(const Totals& totals) {
        std::string details;
        if (totals.reasoning_tokens > 0)
            details = fmt::format(R"(,"completion_tokens_details":{{"reasoning_tokens":{}}})",
                                  totals.reasoning_tokens);
        return fmt::format(R"({{"completion_tokens":{},"prompt_tokens":{},"total_tokens":{}{}}})",
                           totals.output_tokens, totals.prompt_tokens,
                           totals.output_tokens + totals.prompt_tokens, details);
    }

    const ServerScript& script_;
    EventNames names_;
    std::string tail_;
    std::string_view reasoning_field_;
};

class OllamaEvents final : public EventWriter {
public:
    OllamaEvents(const ServerScript& script, EventNames names)
        : script_(script), names_(std::move(names)) {}

    std::string_view content_type() const override { return "application/x-ndjson"; }
    std::string token(std::string_view text, bool reasoning) const override {
        const auto message =
            reasoning ? fmt::format(R"({{"role":"assistant","content":"","thinking":{}}})",
                                    json_quoted(text))
                      : fmt::format(R"({{"role":"assistant","content":{}}})", json_quoted(text));
        return line(message, R"("done":false)");
    }
    std::vector<std::string> closing(const Ending& ending, const Totals& totals) const override {
        std::vector<std::string> events;
        if (ending.verbatim)
            events.push_back(*ending.verbatim);
        else if (ending.error)
            events.push_back(error_body(*ending.error) + "\n");
        if (ending.terminator)
            events.push_back(
                line(R"({"role":"assistant","content":""})", done_fields(ending, totals)));
        return events;
    }
    std::string whole(const Ending& ending, const Totals& totals, std::string_view text,
                      std::string_view) const override {
        return line(fmt::format(R"({{"role":"assistant","content":{}}})", json_quoted(text)),
                    done_fields(ending, totals));
    }
    std::string error_body(const answer::ServerError& error) const override {
        return fmt::format(R"({{"error":{}}})", json_quoted(error.text));
    }

private:
    std::string line(std::string_view message, std::string_view fields) const {
        return fmt::format(R"({{"model":{},"created_at":"2026-01-01T00:00:00Z","message":{},{}}})"
                           "\n",
                           json_quoted(names_.model), message, fields);
    }
    std::string done_fields(const Ending& ending, const Totals& totals) const {
        std::string fields = R"("done":true)";
        if (ending.reason)
            fields += fmt::format(R"(,"done_reason":{})", json_quoted(*ending.reason));
        if (!script_.tells.usage || !ending.usage) return fields;
        const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6); };
        return fields +
               fmt::format(
                   R"(,"total_duration":{},"load_duration":0,"prompt_eval_count":{},"prompt_eval_duration":{},"eval_count":{},"eval_duration":{})",
                   ns(totals.prompt_ms + totals.predicted_ms), totals.prompt_tokens,
                   ns(totals.prompt_ms), totals.output_tokens, ns(totals.predicted_ms));
    }

    const ServerScript& script_;
    EventNames names_;
};

class LlamaNativeEvents final : public EventWriter {
public:
    LlamaNativeEvents(const ServerScript& script, EventNames names)
        : script_(script), names_(std::move(names)) {}

    std::string_view content_type() const override { return "text/event-stream"; }
    std::string token(std::string_view text, bool) const override {
        return fmt::format(
            R"(data: {{"index":0,"content":{},"tokens":[],"stop":false,"id_slot":-1}})"
            "\n\n",
            json_quoted(text));
    }
    std::vector<std::string> closing(const Ending& ending, const Totals& totals) const override {
        std::vector<std::string> events;
        if (ending.error) {
            const auto object = error_object(*ending.error);
            events.push_back(ending.error_form == ErrorForm::kData
                                 ? fmt::format("data: {{\"error\":{}}}\n\n", object)
                                 : fmt::format("error: {}\n\n", object));
            if (ending.error_form == ErrorForm::kField && ending.terminator)
                events.emplace_back("data: [DONE]\n\n");
        } else if (ending.terminator) {
            events.push_back("data: " + final_object(ending, totals, "") + "\n\n");
        }
        return events;
    }
    std::string whole(const Ending& ending, const Totals& totals, std::string_view text,
                      std::string_view) const override {
        return final_object(ending, totals, text);
    }
    std::string error_body(const answer::ServerError& error) const override {
        return fmt::format(R"({{"error":{}}})", error_object(error));
    }

private:
    std::string final_object(const Ending& ending, const Totals& totals,
                             std::string_view text) const {
        const std::string implied = ending.reason == "length" ? "limit"
                                    : ending.reason == "stop" ? "eos"
                                                              : "none";
        std::string object = fmt::format(
            R"({{"index":0,"content":{},"tokens":[],"id_slot":0,"stop":true,"model":{},"truncated":{},"stop_type":"{}","stopping_word":"")",
            json_quoted(text), json_quoted(names_.model), ending.truncated,
            ending.stop_type.value_or(implied));
        if (script_.tells.usage)
            object +=
                fmt::format(R"(,"tokens_predicted":{},"tokens_evaluated":{},"tokens_cached":0)",
                            totals.output_tokens, totals.prompt_tokens);
        if (script_.tells.timings)
            object += fmt::format(R"(,"timings":{})", timings_object(totals));
        return object + "}";
    }

    const ServerScript& script_;
    EventNames names_;
};

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c == '\n')
            out += "\\n";
        else if (byte < 0x20)
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        else
            out += c;
    }
    return out + "\"";
}

std::unique_ptr<EventWriter> make_event_writer(Dialect dialect, const ServerScript& script,
                                               EventNames names) {
    if (dialect == Dialect::kOllama)
        return std::make_unique<OllamaEvents>(script, std::move(names));
    if (dialect == Dialect::kLlamaNative)
        return std::make_unique<LlamaNativeEvents>(script, std::move(names));
    return std::make_unique<OpenAiEvents>(script, std::move(names));
}

}  // namespace fullstop::simulator
