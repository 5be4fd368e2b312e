// A model's own chat template: a conversation in, the text that the model was trained on out. Templates are Jinja programs
// inside the model file, run by llama.cpp's engine. The template sees messages, add_generation_prompt, bos_token, eos_token
// and enable_thinking (true); tools are absent. Roles and texts are never changed to please a template: one that does not
// take the conversation says so.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "answer/request.h"
#include "base/result.h"

namespace fullstop::adapters::llama {

class ChatTemplate {
public:
    /// Errors: the source is not a program this engine can read.
    static base::Result<ChatTemplate> parse(const std::string& source, std::string bos, std::string eos);
    ChatTemplate(ChatTemplate&&) noexcept;
    ~ChatTemplate();

    /// Ready for the assistant's turn. Errors carry the template's own words and the place in it.
    base::Result<std::string> render(std::span<const answer::Message> messages) const;

private:
    struct Program;
    explicit ChatTemplate(std::unique_ptr<Program> program);
    std::unique_ptr<Program> program_;
};

}  // namespace fullstop::adapters::llama
