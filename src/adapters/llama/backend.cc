// Why batches are built as they are (layout streams, flash attention on, q8_0 KV; checked by
// backend_test.cc):
// - On some CPUs libllama picks other kernels for one row than for several, and for one output than
//   for several. Where a check at the start sees a difference, no pass has fewer than two of
//   either: a lone next token is computed beside a padding row (which can halve the speed of a
//   single user), a prompt asks for its last two outputs.
// - A pass over several streams needs equal row counts and neighbouring ids. So each prompt piece
//   is a pass of its own, all next tokens together are another, and a hole between their ids is
//   filled with a padding row.
// Padding rows are removed from KV after the pass.
#include "adapters/llama/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "adapters/llama/kv_cells.h"
#include "adapters/llama/model/loading.h"
#include "adapters/llama/pass.h"
#include "adapters/llama/text/chat_template.h"
#include "adapters/llama/text/grammar.h"
#include "adapters/llama/text/tokenizer.h"
#include "base/assert.h"

namespace fullstop::adapters::llama {
namespace {

using base::Tokens;
using engine::DecodeStatus;
using engine::Run;
using engine::SequenceId;
using engine::TokenId;

constexpr TokenId kPadToken = 0;  // any token will do: its row is never read

DecodeStatus status_of(int code) {
    switch (code) {
        case 0: return DecodeStatus::kOk;
        case 1: return DecodeStatus::kNoRoom;
        case 2: return DecodeStatus::kAborted;
        default: return DecodeStatus::kFatal;
    }
}

class LlamaBackend final : public engine::Backend {
public:
    LlamaBackend(Model model, Context context, engine::ModelFacts facts, bool invariant,
                 const std::string& form)
        : model_(std::move(model)),
          context_(std::move(context)),
          facts_(std::move(facts)),
          vocabulary_(llama_model_get_vocab(model_.get())),
          tokenizer_(vocabulary_),
          streams_(facts_.layout == KvLayout::kStreams),
          cells_(*context_, Tokens{llama_model_n_swa(model_.get())},
                 invariant && !streams_ ? std::optional(static_cast<int>(facts_.max_sequences) + 1)
                                        : std::nullopt,
                 static_cast<int>(facts_.max_sequences)),
          chat_template_(read_template(form)) {
        if (!chat_template_) facts_.no_chat = chat_template_.error().message;
        if (const Tokens window{llama_model_n_swa(model_.get())}; window.count > 0)
            facts_.sliding_window = window;
        facts_.shares = !streams_ && !facts_.sliding_window;
        facts_.pads = invariant && one_row_differs();
        facts_.load_invariant = !invariant                  ? "off"
                                : company_changes_nothing() ? "verified"
                                                            : "not verified";
    }

    const engine::ModelFacts& facts() const override { return facts_; }
    engine::PromptTokens tokenize(std::string_view text) const override {
        return text_tokens(tokenizer_, text, facts_.window);
    }
    std::string piece(TokenId token) const override { return text_of(token, false); }
    bool is_end(TokenId token) const override { return llama_vocab_is_eog(vocabulary_, token); }
    base::Result<engine::PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const override;
    base::Result<std::string> chat_text(std::span<const answer::Message> messages) const override;
    base::Result<std::unique_ptr<engine::TokenConstraint>> constrain(
        const std::string& grammar) override;
    DecodeStatus decode(std::span<const Run> runs) override;
    std::span<const float> logits(std::size_t index) const override;
    void remove(SequenceId sequence) override { cells_.remove(sequence); }
    std::vector<std::byte> snapshot(SequenceId sequence, Tokens from) override {
        return cells_.snapshot(sequence, from);
    }
    bool append(SequenceId sequence, Tokens length, std::span<const std::byte> snapshot) override {
        return cells_.append(sequence, length, snapshot);
    }
    void share(SequenceId from, SequenceId to, Tokens length) override {
        cells_.share(from, to, length);
    }
    bool restore(SequenceId sequence, Tokens length, Tokens keep,
                 std::span<const std::byte> snapshot) override {
        return cells_.restore(sequence, length, keep, snapshot);
    }

private:
    DecodeStatus decode_streams(std::span<const Run> runs);
    DecodeStatus decode_prompt(const Run& run, std::size_t index);
    DecodeStatus decode_next_tokens(std::span<const Run> runs);
    DecodeStatus decode_unified(std::span<const Run> runs);
    std::string text_of(TokenId token, bool control_too) const;
    /// A control token as it is written in prompts; "" when the model has none.
    std::string control(TokenId token) const {
        return token == LLAMA_TOKEN_NULL ? std::string() : text_of(token, true);
    }
    base::Result<ChatTemplate> read_template(const std::string& given) const;
    bool one_row_differs();
    bool company_changes_nothing();
    std::vector<float> logits_of_last(std::span<const Run> runs);
    std::vector<float> logits_of_pass(int row);
    std::size_t outputs_of_prompt() const { return facts_.pads ? 2 : 1; }
    void pad(int place);
    DecodeStatus run_pass();

    Model model_;
    Context context_;
    engine::ModelFacts facts_;
    const llama_vocab* vocabulary_;
    Tokenizer tokenizer_;
    std::shared_ptr<const TokenBytes> bytes_;  ///< of all tokens, made for the first grammar
    bool streams_;
    KvCells cells_;
    base::Result<ChatTemplate> chat_template_;
    Pass pass_;
    std::vector<std::pair<int, llama_pos>>
        pads_;                                ///< place and position of the padding rows in pass_
    std::vector<const float*> logits_;        ///< by run; null: not wanted
    std::vector<std::vector<float>> copies_;  ///< by run, of passes before the last one
};

base::Result<engine::PromptTokens> LlamaBackend::chat_tokens(
    std::span<const answer::Message> messages) const {
    if (!chat_template_) return std::unexpected(chat_template_.error());
    return llama::chat_tokens(*chat_template_, tokenizer_, messages, facts_.window);
}

base::Result<std::string> LlamaBackend::chat_text(std::span<const answer::Message> messages) const {
    if (!chat_template_) return std::unexpected(chat_template_.error());
    const auto parts = chat_template_->render(messages);
    if (!parts) return std::unexpected(parts.error());
    return joined(*parts);
}

base::Result<std::unique_ptr<engine::TokenConstraint>> LlamaBackend::constrain(
    const std::string& grammar) {
    if (bytes_ == nullptr) {
        auto bytes = std::make_shared<TokenBytes>();
        for (TokenId token = 0; token < facts_.vocabulary; ++token) bytes->add(piece(token));
        bytes_ = std::move(bytes);
    }
    return make_grammar(vocabulary_, bytes_, grammar);
}

base::Result<ChatTemplate> LlamaBackend::read_template(const std::string& given) const {
    const char* source =
        given.empty() ? llama_model_chat_template(model_.get(), nullptr) : given.c_str();
    if (source == nullptr)
        return base::usage_error(
            "the model has no chat template",
            "start the server with --chat-template FILE, or use /v1/completions");
    return ChatTemplate::parse(
        source, {control(llama_vocab_bos(vocabulary_)), llama_vocab_get_add_bos(vocabulary_)},
        {control(llama_vocab_eos(vocabulary_)), llama_vocab_get_add_eos(vocabulary_)});
}

std::string LlamaBackend::text_of(TokenId token, bool control_too) const {
    std::array<char, 64> small{};
    const int size =
        llama_token_to_piece(vocabulary_, token, small.data(), small.size(), 0, control_too);
    if (size >= 0) return std::string(small.data(), static_cast<std::size_t>(size));
    std::string text(static_cast<std::size_t>(-size), '\0');
    llama_token_to_piece(vocabulary_, token, text.data(), -size, 0, control_too);
    return text;
}

DecodeStatus LlamaBackend::decode(std::span<const Run> runs) {
    logits_.assign(runs.size(), nullptr);
    copies_.resize(std::max(copies_.size(), runs.size()));
    for (const Run& run : runs) cells_.take(run.sequence);
    return streams_ ? decode_streams(runs) : decode_unified(runs);
}

DecodeStatus LlamaBackend::decode_streams(std::span<const Run> runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].tokens.size() == 1) continue;
        if (const auto status = decode_prompt(runs[i], i); status != DecodeStatus::kOk)
            return status;
    }
    return decode_next_tokens(runs);
}

DecodeStatus LlamaBackend::decode_prompt(const Run& run, std::size_t index) {
    pass_.clear();
    pass_.add(run, *cells_.find(run.sequence), run.wants_logits ? outputs_of_prompt() : 0);
    const auto status = run_pass();
    if (status != DecodeStatus::kOk || !run.wants_logits) return status;
    const float* row = llama_get_logits_ith(context_.get(), pass_.rows() - 1);
    copies_[index].assign(row, row + facts_.vocabulary);
    logits_[index] = copies_[index].data();
    return status;
}

DecodeStatus LlamaBackend::decode_next_tokens(std::span<const Run> runs) {
    std::vector<std::pair<int, std::size_t>> order;  // place, run
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (runs[i].tokens.size() == 1) order.emplace_back(*cells_.find(runs[i].sequence), i);
    if (order.empty()) return DecodeStatus::kOk;
    std::ranges::sort(order);
    pass_.clear();
    std::vector<std::pair<std::size_t, int>> rows;  // run, row
    int next = order.front().first;
    for (const auto& [place, index] : order) {
        while (next < place) pad(next++);
        rows.emplace_back(index, pass_.rows());
        pass_.add(runs[index], place, 1);
        next = place + 1;
    }
    if (facts_.pads &&
        pass_.rows() ==
            1) {  // a neighbour on either side will do, but rows must come in order of place
        if (order.front().first == 0) {
            pad(1);
        } else {
            pass_.clear();
            pad(order.front().first - 1);
            rows.front().second = pass_.rows();
            pass_.add(runs[order.front().second], order.front().first, 1);
        }
    }
    const auto status = run_pass();
    if (status == DecodeStatus::kOk)
        for (const auto& [index, row] : rows)
            logits_[index] = llama_get_logits_ith(context_.get(), row);
    return status;
}

DecodeStatus LlamaBackend::decode_unified(std::span<const Run> runs) {
    pass_.clear();
    std::vector<int> last_rows;
    for (const Run& run : runs) {
        pass_.add(run, *cells_.find(run.sequence), run.wants_logits ? outputs_of_prompt() : 0);
        last_rows.push_back(pass_.rows() - 1);
    }
    if (facts_.pads && (pass_.rows() < 2 || pass_.outputs() == 1))
        pad(static_cast<int>(facts_.max_sequences));
    const auto status = run_pass();
    for (std::size_t i = 0; status == DecodeStatus::kOk && i < runs.size(); ++i)
        if (runs[i].wants_logits) logits_[i] = llama_get_logits_ith(context_.get(), last_rows[i]);
    return status;
}

/// Whether logits depend on being alone in a pass: which kernel runs depends on counts, not on
/// values, so one prompt and one next token tell. In doubt (a pass failed) the answer is yes.
bool LlamaBackend::one_row_differs() {
    constexpr std::array<TokenId, 8> kTokens = {11, 12, 13, 14, 15, 16, 17, 18};  // any will do
    const Run prompt{.sequence = 0, .position = {}, .tokens = kTokens, .wants_logits = true};
    const Tokens length{std::ssize(kTokens)};
    const Run next{.sequence = 0,
                   .position = length,
                   .tokens = std::span(kTokens).first(1),
                   .wants_logits = true};
    std::array<std::vector<float>, 4> seen;
    for (const std::size_t outputs : {1U, 2U}) {
        cells_.clear();
        pass_.clear();
        pass_.add(prompt, 0, outputs);
        seen[outputs - 1] = logits_of_pass(pass_.rows() - 1);
    }
    for (const bool padded : {false, true}) {
        cells_.forget_from(0, static_cast<llama_pos>(length.count));
        pass_.clear();
        pass_.add(next, 0, 1);
        if (padded) pad(streams_ ? 1 : static_cast<int>(facts_.max_sequences));
        seen[padded ? 3 : 2] = logits_of_pass(0);
    }
    cells_.clear();
    return seen[0].empty() || seen[2].empty() || seen[0] != seen[1] || seen[2] != seen[3];
}

/// Logits of the last of `runs`, computed in one step; none if that failed.
std::vector<float> LlamaBackend::logits_of_last(std::span<const Run> runs) {
    if (decode(runs) != DecodeStatus::kOk) return {};
    const auto row = logits(runs.size() - 1);
    return {row.begin(), row.end()};
}

/// One answer alone, then with its prompt in pieces, with others before it and beside it, as many
/// as there may be (up to eight), some of which end in the middle, and with a pause: the same bits?
/// How many rows meet decides which kernels run.
bool LlamaBackend::company_changes_nothing() {
    constexpr std::array<TokenId, 12> kTokens = {31, 32, 33, 34, 35, 36,
                                                 37, 38, 39, 40, 41, 42};  // any will do
    constexpr SequenceId kMeasured = 1, kLate = 2, kFirstOther = 3;
    const std::span<const TokenId> tokens = kTokens;
    const auto rows = [&](SequenceId id, std::size_t from, std::size_t count) {
        return Run{.sequence = id,
                   .position = {static_cast<std::int64_t>(from)},
                   .tokens = tokens.subspan(from, count),
                   .wants_logits = true};
    };
    std::vector<std::vector<float>> alone, company;
    for (const auto& [from, count] : {std::pair{0, 8}, {8, 1}, {9, 1}, {10, 1}, {11, 1}})
        alone.push_back(logits_of_last(std::array{rows(kMeasured, from, count)}));
    remove(kMeasured);

    const SequenceId others =
        kFirstOther + static_cast<SequenceId>(std::min<std::int64_t>(facts_.max_sequences, 8)) - 1;
    std::vector<Run> beside;
    for (SequenceId id = kFirstOther; id < others; ++id)
        logits_of_last(std::array{rows(id, 0, 2 + id % 3)});
    for (SequenceId id = kFirstOther; id < others; ++id) beside.push_back(rows(id, 2 + id % 3, 1));
    Run first = rows(kMeasured, 0, 5);
    first.wants_logits = false;
    decode(std::array{first});
    beside.push_back(rows(kMeasured, 5, 3));
    company.push_back(logits_of_last(beside));
    for (Run& run : beside)
        run =
            rows(run.sequence, static_cast<std::size_t>(run.position.count) + run.tokens.size(), 1);
    company.push_back(logits_of_last(beside));
    for (SequenceId id = kFirstOther; id < others; ++id) remove(id);
    const std::vector<std::byte> saved = snapshot(kMeasured, {});
    remove(kMeasured);
    logits_of_last(std::array{rows(kLate, 0, 5)});
    const bool restored = !saved.empty() && restore(kMeasured, Tokens{9}, Tokens{9}, saved);
    if (restored)
        for (const std::size_t at : {9U, 10U, 11U})
            company.push_back(
                logits_of_last(std::array{rows(kLate, at - 4, 1), rows(kMeasured, at, 1)}));
    remove(kMeasured);
    remove(kLate);
    cells_.clear();
    return restored && !alone.front().empty() && alone == company;
}

/// Runs the pass; no logits when it fails.
std::vector<float> LlamaBackend::logits_of_pass(int row) {
    if (run_pass() != DecodeStatus::kOk) return {};
    const float* logits = llama_get_logits_ith(context_.get(), row);
    return {logits, logits + facts_.vocabulary};
}

/// A row that nobody reads, at the end of whatever is at `place`. There is room: a sequence never
/// stores its last token.
void LlamaBackend::pad(int place) {
    const llama_pos position = cells_.next_position(place);
    pass_.add(kPadToken, position, place, true);
    pads_.emplace_back(place, position);
}

DecodeStatus LlamaBackend::run_pass() {
    if (!cells_.prepare(pass_.rows())) return DecodeStatus::kFatal;
    const int code = llama_decode(context_.get(), pass_.batch());
    const auto pads = std::exchange(pads_, {});
    for (const auto& [place, position] : pads) cells_.forget_from(place, position);
    cells_.computed(pass_.rows() - static_cast<int>(pads.size()));
    return status_of(code);
}

std::span<const float> LlamaBackend::logits(std::size_t index) const {
    FULLSTOP_ASSERT(index < logits_.size() && logits_[index] != nullptr,
                    "logits are read of runs that wanted them");
    return {logits_[index], static_cast<std::size_t>(facts_.vocabulary)};
}

}  // namespace

base::Result<std::unique_ptr<engine::Backend>> load(const LoadOptions& asked) {
    const auto outline = open_model(asked, Reading::kOutline);
    if (!outline) return std::unexpected(outline.error());
    LoadOptions options = asked;
    options.layout = layout_of(**outline, asked);
    const auto shape = shape_of(**outline, options);
    if (!shape) return std::unexpected(shape.error());
    const auto placement = place(**outline, *shape, options);
    if (!placement) return std::unexpected(placement.error());
    auto model = open_model(asked, Reading::kWhole, placement->on_gpu);
    if (!model) return std::unexpected(model.error());
    auto context = make_context(**model, *shape, options, *placement);
    if (!context) return std::unexpected(context.error());
    engine::ModelFacts facts{
        .name = options.model.stem().string(),
        .layout = *options.layout,
        .kv_type = options.kv_type,
        .window = shape->window,
        .pool = shape->pool,
        .kv_bytes_per_token = kv_bytes_per_token(**model, options.kv_type),
        .max_sequences = options.max_sequences,
        .vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model->get())),
        .threads = options.threads,
        .device = placement->device,
        .gpu_layers = placement->on_gpu,
        .pads = true,
        .load_invariant = ""};
    return std::make_unique<LlamaBackend>(std::move(*model), std::move(*context), std::move(facts),
                                          options.load_invariant, options.chat_template);
}

}  // namespace fullstop::adapters::llama
