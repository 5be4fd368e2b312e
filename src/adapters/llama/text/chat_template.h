// A model's own chat template: a conversation in, the text that the model was trained on out.
// Templates are Jinja programs inside the model file, run by llama.cpp's engine. The template sees
// messages, add_generation_prompt, bos_token, eos_token and enable_thinking (true); tools are
// absent. Roles and texts are never changed to please a template: one that does not take the
// conversation says so. A conversation that ends with the assistant's words is one whose turn has
// begun: they stand behind the generation prompt as they are, and the model goes on (as
// llama-server does).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answer/request.h"
#include "base/result.h"

namespace fullstop::adapters::llama {

/// A piece of a rendered conversation: the template's own words, or what came from a message.
struct TextPart {
    std::string text;
    bool from_message = false;
    bool operator==(const TextPart&) const = default;
};

class ChatTemplate {
public:
    /// A control token as the template writes it; `adds`: the tokenizer adds it of its own accord,
    /// and written out as well it would stand there twice.
    struct EndToken {
        std::string text;
        bool adds = false;
    };
    /// Errors: the source is not a program this engine can read.
    static base::Result<ChatTemplate> parse(const std::string& source, EndToken bos, EndToken eos);
    ChatTemplate(ChatTemplate&&) noexcept;
    ~ChatTemplate();

    /// Ready for the assistant's turn, or inside it; neighbouring pieces differ in their origin.
    /// `bos` and `eos` at the very ends are left out where parse() was told so. Errors carry the
    /// template's own words and the place in it.
    base::Result<std::vector<TextPart>> render(std::span<const answer::Message> messages) const;

private:
    struct Program;
    explicit ChatTemplate(std::unique_ptr<Program> program);
    base::Result<std::vector<TextPart>> render_turns(
        std::span<const answer::Message> messages) const;
    std::unique_ptr<Program> program_;
};

}  // namespace fullstop::adapters::llama
