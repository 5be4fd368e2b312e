// Values are built directly: the engine's way from JSON would cost a second JSON library here.
#include "adapters/llama/text/chat_template.h"

#include <fmt/format.h>
#include <jinja/caps.h>
#include <jinja/lexer.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>

#include <exception>
#include <string_view>
#include <utility>

namespace fullstop::adapters::llama {

struct ChatTemplate::Program {
    std::string source;
    EndToken bos, eos;
    jinja::program code;
    bool only_parts = false;  ///< the template reads contents as lists of parts, never as texts
};

namespace {

constexpr std::string_view kAssistant = "assistant";

jinja::value text(std::string_view value) {
    return jinja::mk_val<jinja::value_string>(std::string(value));
}

/// What the engine then keeps apart from the template's own words.
jinja::value text_of_message(std::string_view value) {
    auto marked = jinja::mk_val<jinja::value_string>(std::string(value));
    marked->mark_input();
    return marked;
}

jinja::value content_of(const std::string& content, bool as_parts) {
    if (!as_parts) return text_of_message(content);
    auto part = jinja::mk_val<jinja::value_object>();
    part->insert("type", text("text"));
    part->insert("text", text_of_message(content));
    auto parts = jinja::mk_val<jinja::value_array>();
    parts->push_back(jinja::value(part));
    return parts;
}

/// The engine reports in many lines: where, an excerpt, and the reason last.
std::string reason_in(std::string_view report) {
    constexpr std::string_view kReason = "Error: ", kWhere = " at line ";
    std::string reason(report.substr(0, report.find('\n')));
    if (const auto at = report.rfind(kReason); at != std::string_view::npos) {
        reason = report.substr(at + kReason.size());
        if (const auto where = report.find(kWhere); where != std::string_view::npos)
            reason +=
                fmt::format(" (its {})",
                            report.substr(where + 4, report.find(" in source", where) - where - 4));
    }
    return reason;
}

void drop_ends(std::vector<TextPart>& parts, const ChatTemplate::EndToken& bos,
               const ChatTemplate::EndToken& eos) {
    if (parts.empty()) return;
    std::string &first = parts.front().text, &last = parts.back().text;
    if (bos.adds && !parts.front().from_message && first.starts_with(bos.text))
        first.erase(0, bos.text.size());
    if (eos.adds && !parts.back().from_message && last.ends_with(eos.text))
        last.resize(last.size() - eos.text.size());
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

base::Result<ChatTemplate> ChatTemplate::parse(const std::string& source, EndToken bos,
                                               EndToken eos) {
    try {
        auto program = std::make_unique<Program>();
        jinja::lexer lexer;
        auto tokens = lexer.tokenize(source);
        program->code = jinja::parse_from_tokens(tokens);
        program->source = std::move(tokens.source);
        program->bos = std::move(bos);
        program->eos = std::move(eos);
        program->only_parts = !jinja::caps_get(program->code).supports_string_content;
        return ChatTemplate(std::move(program));
    } catch (const std::exception& error) {
        return base::usage_error(
            fmt::format("the model's chat template cannot be read: {}", reason_in(error.what())),
            "use /v1/completions");
    }
}

base::Result<std::vector<TextPart>> ChatTemplate::render(
    std::span<const answer::Message> messages) const {
    const bool continues = !messages.empty() && messages.back().role == kAssistant;
    if (!continues) return render_turns(messages);
    const auto before = messages.first(messages.size() - 1);
    if (!before.empty() && before.back().role == kAssistant)
        return base::usage_error(
            "the conversation ends with two messages of the assistant: only one can be continued",
            "join them, or put the user's between them");
    auto parts = render_turns(before);
    if (parts && !messages.back().content.empty())
        parts->push_back({.text = messages.back().content, .from_message = true});
    return parts;
}

base::Result<std::vector<TextPart>> ChatTemplate::render_turns(
    std::span<const answer::Message> messages) const {
    try {
        auto conversation = jinja::mk_val<jinja::value_array>();
        for (const auto& message : messages) {
            auto item = jinja::mk_val<jinja::value_object>();
            item->insert("role", text(message.role));
            item->insert("content", content_of(message.content, program_->only_parts));
            conversation->push_back(jinja::value(item));
        }
        jinja::context context(program_->source);
        context.set_val("messages", conversation);
        context.set_val("add_generation_prompt", jinja::mk_val<jinja::value_bool>(true));
        context.set_val("enable_thinking", jinja::mk_val<jinja::value_bool>(true));
        context.set_val("bos_token", text(program_->bos.text));
        context.set_val("eos_token", text(program_->eos.text));
        jinja::runtime runtime(context);
        std::vector<TextPart> parts;
        for (auto& part :
             jinja::runtime::gather_string_parts(runtime.execute(program_->code))->val_str.parts)
            if (!part.val.empty())
                parts.push_back({.text = std::move(part.val), .from_message = part.is_input});
        drop_ends(parts, program_->bos, program_->eos);
        return parts;
    } catch (const std::exception& error) {
        return base::usage_error(
            fmt::format("the model's chat template does not take this conversation: {}",
                        reason_in(error.what())),
            "change the messages, or use /v1/completions");
    }
}

}  // namespace fullstop::adapters::llama
