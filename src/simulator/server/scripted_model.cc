// Sentences from a small grammar, laid out so that the prompt's check holds when the text is whole.
#include "simulator/server/scripted_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace fullstop::simulator {
namespace {

using Words = std::array<std::string_view, 16>;
constexpr Words kAdjectives = {" old",     " quiet", " bright", " narrow", " heavy", " simple",
                               " distant", " early", " steep",  " clear",  " broad", " small",
                               " warm",    " rough", " gentle", " plain"};
constexpr Words kNouns = {" river",   " engine", " garden", " letter", " harbour", " mountain",
                          " market",  " bridge", " lamp",   " valley", " road",    " forest",
                          " village", " clock",  " window", " orchard"};
constexpr Words kVerbs = {" follows",  " carries", " reaches",  " crosses", " holds", " shapes",
                          " joins",    " guards",  " explains", " warms",   " marks", " feeds",
                          " protects", " divides", " covers",   " changes"};
constexpr Words kTails = {
    " in the morning",      " before winter",      " without a sound",     " after the rain",
    " for many years",      " near the coast",     " at the edge of town", " in most cases",
    " under a grey sky",    " with great care",    " once a week",         " over and over",
    " because of the wind", " as people remember", " until the evening",   " for a good reason"};

/// Mixes two numbers into one that looks random.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return base::Random(a ^ (b * 0xD1B54A32D192ED03ULL)).next();
}

std::uint64_t hash(std::string_view text) {
    std::uint64_t h = 0xCBF29CE484222325ULL;  // FNV-1a
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return h;
}

/// Writes tokens; from token `switch_at` on it draws from another stream and aims at another
/// length.
class Composer {
public:
    Composer(base::Random words, double target) : words_(words), target_(target) {}

    void diverge(std::size_t at, base::Random words, double target) {
        switch_at_ = at;
        later_words_ = words;
        later_target_ = target;
    }
    std::size_t size() const { return tokens_.size(); }
    double target() const { return target_; }
    ScriptedText take() { return {std::move(tokens_)}; }

    void emit(std::string_view token) {
        if (tokens_.size() == switch_at_) {
            words_ = later_words_;
            target_ = later_target_;
        }
        tokens_.emplace_back(token);
    }
    /// A text as tokens of one word each, spaces leading.
    void emit_words(std::string_view text) {
        std::size_t start = 0;
        for (std::size_t i = 1; i <= text.size(); ++i) {
            const bool cut = i == text.size() || text[i] == ' ' || text[i] == '\n';
            if (cut && i > start) {
                emit(text.substr(start, i - start));
                start = i;
            }
        }
    }
    /// One sentence, about a fact if there is one. `first`: no space before it. A fact of several
    /// lines is a block before it.
    void sentence(std::string_view fact, bool first) {
        if (fact.find('\n') != std::string_view::npos) {
            if (!first) emit("\n");
            emit_words(fact);
            emit("\n");
            return sentence({}, true);
        }
        if (fact.empty()) {
            emit(first ? "The" : " The");
            emit(pick(kAdjectives));
            emit(pick(kNouns));
        } else {
            if (!first) emit(" ");
            emit_words(fact);
        }
        emit(pick(kVerbs));
        emit(" the");
        emit(pick(kAdjectives));
        emit(pick(kNouns));
        if (words_.chance(0.5)) emit_words(pick(kTails));
        emit(".");
    }
    /// Prose until `share` of the aimed-at length is reached.
    void fill(double share) {
        while (static_cast<double>(tokens_.size()) < target_ * share - kSentence / 2)
            sentence({}, tokens_.empty());
    }

private:
    static constexpr double kSentence = 9;  // mean tokens of one
    std::string_view pick(const Words& words) { return words[words_.below(words.size())]; }

    base::Random words_, later_words_{0};
    double target_, later_target_ = 0;
    std::size_t switch_at_ = std::numeric_limits<std::size_t>::max();
    std::vector<std::string> tokens_;
};

/// What the text must hold: parts in order, each with a fact or none.
std::vector<std::string> parts_of(const answer::Prompt& prompt, const std::string& sample) {
    const auto& check = prompt.check;
    auto facts = check.contains;
    if (!sample.empty()) facts.push_back(sample);
    const auto least = static_cast<std::size_t>(std::max(check.items.value_or(1), 1));
    if (facts.size() < least) facts.resize(least);
    return facts;
}

void compose_list(Composer& out, const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out.emit("\n");
        out.emit(std::to_string(i + 1));
        out.emit(".");
        out.emit(" ");
        out.sentence(parts[i], true);
        out.fill(static_cast<double>(i + 1) / static_cast<double>(parts.size()));
    }
}

/// For inside a JSON string.
std::string quoted_part(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

void compose_json(Composer& out, const std::vector<std::string>& parts) {
    out.emit("{");
    out.emit("\"entries\"");
    out.emit(": [");
    for (std::size_t i = 0; i < parts.size(); ++i) {
        out.emit(i > 0 ? ", \"" : "\"");
        out.sentence(quoted_part(parts[i]), true);
        out.fill(static_cast<double>(i + 1) / static_cast<double>(parts.size()));
        out.emit("\"");
    }
    out.emit("]");
    out.emit("}");
}

void compose_prose(Composer& out, const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        out.sentence(parts[i], out.size() == 0);
        out.fill(static_cast<double>(i + 1) / static_cast<double>(parts.size()));
    }
}

void compose(Composer& out, const answer::Prompt& prompt, const std::string& sample) {
    const auto parts = parts_of(prompt, sample);
    if (prompt.check.json)
        compose_json(out, parts);
    else if (prompt.check.items)
        compose_list(out, parts);
    else
        compose_prose(out, parts);
    if (prompt.check.ends_with) {
        out.emit("\n");
        out.emit_words(*prompt.check.ends_with);
    }
}

}  // namespace

std::string ScriptedText::joined() const {
    std::string all;
    for (const auto& token : tokens) all += token;
    return all;
}

ScriptedModel::ScriptedModel(std::vector<answer::Prompt> prompts, std::uint64_t seed,
                             LengthRange lengths, std::map<std::string, std::string> samples)
    : prompts_(std::move(prompts)), seed_(seed), lengths_(lengths), samples_(std::move(samples)) {}

std::size_t ScriptedModel::recognise(const std::vector<answer::Message>& messages) const {
    const auto found = std::ranges::find(prompts_, messages, &answer::Prompt::messages);
    if (found != prompts_.end() || messages.size() != 1)
        return static_cast<std::size_t>(found - prompts_.begin());
    // Dialects without roles carry the contents as one text.
    const auto inside = [&](const answer::Prompt& prompt) {
        return std::ranges::all_of(prompt.messages, [&](const auto& message) {
            return messages[0].content.find(message.content) != std::string::npos;
        });
    };
    return static_cast<std::size_t>(std::ranges::find_if(prompts_, inside) - prompts_.begin());
}

std::uint64_t ScriptedModel::key(std::size_t prompt, std::int64_t seed) const {
    const auto id =
        prompt < prompts_.size() ? std::string_view(prompts_[prompt].id) : std::string_view("?");
    return mix(mix(seed_, hash(id)), static_cast<std::uint64_t>(seed));
}

int ScriptedModel::natural_length(std::size_t prompt, std::int64_t seed) const {
    base::Random of_prompt(mix(key(prompt, 0), 1));
    base::Random of_seed(mix(key(prompt, seed), 2));
    const double low = std::log(lengths_.shortest), high = std::log(lengths_.longest);
    const double log_length =
        low + (high - low) * of_prompt.uniform() + lengths_.seed_spread * of_seed.normal();
    const double longer = base::Random(mix(key(prompt, seed), 3)).chance(lengths_.long_share);
    return static_cast<int>(
        std::lround(std::exp(std::clamp(log_length, low, high)) * (1 + 2 * longer)));
}

/// Models stop without a full stop, too: only whoever calls every open end a cut is deceived.
void ScriptedModel::leave_open(ScriptedText& text, base::Random draw) const {
    if (!text.tokens.empty() && text.tokens.back() == "." && draw.chance(lengths_.open_share))
        text.tokens.pop_back();
}

ScriptedText ScriptedModel::alone(std::size_t prompt, std::int64_t seed) const {
    const auto& asked = prompt < prompts_.size() ? prompts_[prompt] : unknown_;
    const auto sample = samples_.find(asked.id);
    Composer composer(base::Random(key(prompt, seed)), natural_length(prompt, seed));
    compose(composer, asked, sample == samples_.end() ? std::string{} : sample->second);
    auto text = composer.take();
    leave_open(text, base::Random(mix(key(prompt, seed), 4)));
    return text;
}

ScriptedText ScriptedModel::diverged(std::size_t prompt, std::int64_t seed, std::size_t at,
                                     double spread, base::Random& draw) const {
    const auto& asked = prompt < prompts_.size() ? prompts_[prompt] : unknown_;
    const auto sample = samples_.find(asked.id);
    const double length = natural_length(prompt, seed);
    const double left = std::max(length - static_cast<double>(at), 1.0);
    Composer composer(base::Random(key(prompt, seed)), length);
    composer.diverge(at, draw.fork(at),
                     static_cast<double>(at) + left * std::exp(spread * draw.normal()));
    compose(composer, asked, sample == samples_.end() ? std::string{} : sample->second);
    auto text = composer.take();
    if (lengths_.open_share > 0) leave_open(text, draw.fork(at + 1));
    return text;
}

ScriptedText ScriptedModel::thinking(std::size_t tokens, base::Random& draw) const {
    Composer composer(draw.fork(tokens), static_cast<double>(tokens));
    while (composer.size() < tokens) composer.sentence({}, composer.size() == 0);
    auto text = composer.take();
    text.tokens.resize(tokens);
    return text;
}

std::int64_t scripted_prompt_tokens(const std::vector<answer::Message>& messages) {
    std::int64_t tokens = 3;
    for (const auto& message : messages)
        tokens += 4 + (static_cast<std::int64_t>(message.content.size()) + 3) / 4;
    return tokens;
}

}  // namespace fullstop::simulator
