// A sequence is four numbers; each token that comes in is checked against what it must be.
#include "simulator/capacity/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace fullstop::simulator {

using base::Tokens;
using engine::DecodeStatus;
using engine::Run;
using engine::TokenId;

namespace {

constexpr TokenId kNewline = '\n' + 1;
constexpr float kHigh = 50.0F;

/// FNV-1a, one byte at a time.
std::uint64_t hash_with(std::uint64_t hash, TokenId token) {
    return (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
}

}  // namespace

Tokens TokenRange::draw(base::Random& random) const {
    FULLSTOP_ASSERT(low.count >= 0 && low <= high, "a range of lengths is not empty");
    return low + Tokens{static_cast<std::int64_t>(
                     random.below(static_cast<std::uint64_t>((high - low).count) + 1))};
}

SimulatedBackend::SimulatedBackend(Options options, engine::CostModel cost)
    : options_(std::move(options)),
      cost_(std::move(cost)),
      facts_{.name = "simulated",
             .layout = options_.streams ? engine::KvLayout::kStreams : engine::KvLayout::kUnified,
             .window = options_.window,
             .pool = options_.pool,
             .kv_bytes_per_token = kBytesPerToken,
             .max_sequences = options_.max_sequences,
             .vocabulary = kVocabulary,
             .threads = 1,
             .shares = !options_.streams,
             .pads = false},
      noise_(base::Random(options_.seed).fork(1)) {}

std::uint64_t SimulatedBackend::first_hash() const {
    return 1469598103934665603U ^ base::Random(options_.seed).next();
}

Tokens SimulatedBackend::natural_length(std::uint64_t hash) const {
    if (const auto found = lengths_.find(hash); found != lengths_.end()) return found->second;
    base::Random random(hash);
    return options_.natural.draw(random);
}

TokenId SimulatedBackend::answer_token(std::uint64_t hash, std::int64_t at) {
    return 'a' + 1 +
           static_cast<TokenId>(base::Random(hash + static_cast<std::uint64_t>(at)).below(26));
}

void SimulatedBackend::set_length(std::string_view prompt, Tokens length) {
    std::uint64_t hash = first_hash();
    for (const TokenId token : tokenize(prompt).tokens) hash = hash_with(hash, token);
    lengths_[hash] = length;
}

std::string SimulatedBackend::answer_to(std::string_view prompt) const {
    std::uint64_t hash = first_hash();
    for (const TokenId token : tokenize(prompt).tokens) hash = hash_with(hash, token);
    std::string text;
    for (std::int64_t i = 0; i < natural_length(hash).count; ++i)
        text += piece(answer_token(hash, i));
    return text;
}

base::Duration SimulatedBackend::take_elapsed() {
    return std::exchange(elapsed_, base::Duration{});
}

engine::PromptTokens SimulatedBackend::tokenize(std::string_view text) const {
    engine::PromptTokens out;
    out.tokens.reserve(text.size());
    for (const char c : text) out.tokens.push_back(static_cast<unsigned char>(c) + 1);
    return out;
}

std::string SimulatedBackend::piece(TokenId token) const {
    return token == kEnd ? std::string() : std::string(1, static_cast<char>(token - 1));
}

base::Result<engine::PromptTokens> SimulatedBackend::chat_tokens(
    std::span<const answer::Message> messages) const {
    return tokenize(chat_text(messages).value());
}

base::Result<std::string> SimulatedBackend::chat_text(
    std::span<const answer::Message> messages) const {
    std::string text;
    for (const auto& message : messages) text += message.role + ' ' + message.content + ' ';
    std::ranges::replace(text, '\n', ' ');
    return text + '\n';
}

/// Its answers are a function of the prompt, which no grammar may change.
base::Result<std::unique_ptr<engine::TokenConstraint>> SimulatedBackend::constrain(
    const std::string&) {
    return base::usage_error("the simulated model takes no response format", "leave it out");
}

DecodeStatus SimulatedBackend::decode(std::span<const Run> runs) {
    auto status = DecodeStatus::kOk;
    if (const auto fault = faults_.find(steps_); fault != faults_.end()) status = fault->second;
    ++steps_;
    last_rows_ = last_decodes_ = 0;
    for (const Run& run : runs) {
        last_rows_ += std::ssize(run.tokens);
        last_decodes_ += run.tokens.size() == 1 ? 1 : 0;
    }
    rows_.resize(std::max(rows_.size(), runs.size()), std::vector<float>(kVocabulary, 0.0F));
    chosen_.resize(rows_.size(), -1);
    for (std::size_t i = 0; i < chosen_.size(); ++i)
        if (chosen_[i] >= 0)
            rows_[i][static_cast<std::size_t>(std::exchange(chosen_[i], -1))] = 0.0F;
    if (status == DecodeStatus::kNoRoom) return status;
    const auto time = cost_.estimate(engine::StepShape(options_.streams, runs, cells_));
    elapsed_ +=
        base::from_ms(base::to_ms(time) *
                      (options_.noise > 0 ? std::exp(options_.noise * noise_.normal()) : 1.0));
    const std::size_t computed = status == DecodeStatus::kOk ? runs.size() : runs.size() / 2;
    for (std::size_t i = 0; i < computed; ++i) compute(runs[i], i);
    FULLSTOP_ASSERT(std::cmp_less_equal(held_.size(), options_.max_sequences),
                    "no more sequences than there are places");
    FULLSTOP_ASSERT(cells_ <= options_.pool, "no more tokens in KV than there are cells");
    return status;
}

void SimulatedBackend::compute(const Run& run, std::size_t index) {
    Held& held = held_[run.sequence];
    FULLSTOP_ASSERT(run.position == held.length(), "positions go on where they ended");
    FULLSTOP_ASSERT(!run.tokens.empty(), "a run has rows");
    for (const TokenId token : run.tokens) take_in(held, token);
    cells_ += Tokens{std::ssize(run.tokens)};
    FULLSTOP_ASSERT(held.length() <= options_.window, "a sequence stays within its window");
    if (!run.wants_logits) return;
    const std::int64_t at = (held.length() - held.prompt).count;
    if (held.prompt.count == 0)
        chosen_[index] = kNewline;  // half a prompt: its end is the most probable token
    else
        chosen_[index] = at < held.natural.count ? answer_token(held.hash, at) : kEnd;
    rows_[index][static_cast<std::size_t>(chosen_[index])] = kHigh;
}

void SimulatedBackend::take_in(Held& held, TokenId token) {
    if (held.tokens.empty()) held.hash = first_hash();
    if (held.prompt.count > 0)
        FULLSTOP_ASSERT(token == answer_token(held.hash, (held.length() - held.prompt).count),
                        "an answer goes on with the token that was chosen");
    held.tokens.push_back(token);
    if (held.prompt.count > 0) return;
    held.hash = hash_with(held.hash, token);
    if (token != kNewline) return;
    held.prompt = held.length();
    held.natural = natural_length(held.hash);
}

std::span<const float> SimulatedBackend::logits(std::size_t index) const {
    FULLSTOP_ASSERT(index < chosen_.size() && chosen_[index] >= 0,
                    "logits are read of runs that wanted them");
    return rows_[index];
}

void SimulatedBackend::remove(engine::SequenceId sequence) {
    const auto found = held_.find(sequence);
    if (found == held_.end()) return;
    const Held& held = found->second;
    cells_ -= held.length() - Tokens{std::ssize(held.shared)};
    for (const std::uint64_t cell : held.shared)
        if (const auto at = holders_.find(cell); --at->second == 0)
            holders_.erase(at), cells_ -= Tokens{1};
    held_.erase(found);
}

void SimulatedBackend::share(engine::SequenceId from, engine::SequenceId to, Tokens length) {
    FULLSTOP_ASSERT(
        facts_.shares && !held_.contains(to) && std::cmp_less(held_.size(), options_.max_sequences),
        "what shares has no place yet, and finds one");
    Held& source = held_.at(from);
    FULLSTOP_ASSERT(length <= source.length(), "what is shared is there");
    while (std::cmp_less(source.shared.size(), length.count)) {
        holders_.emplace(next_cell_, 1);
        source.shared.push_back(next_cell_++);
    }
    Held& held = held_[to];
    for (std::int64_t i = 0; i < length.count; ++i) {
        take_in(held, source.tokens[static_cast<std::size_t>(i)]);
        held.shared.push_back(source.shared[static_cast<std::size_t>(i)]);
        ++holders_.at(held.shared.back());
    }
}

std::vector<std::byte> SimulatedBackend::snapshot(engine::SequenceId sequence, Tokens from) {
    const auto found = held_.find(sequence);
    FULLSTOP_ASSERT(found != held_.end() && from <= found->second.length(),
                    "only what is in KV is copied");
    elapsed_ += options_.swap.out(found->second.length() - from);
    const auto bytes = std::as_bytes(
        std::span(found->second.tokens).subspan(static_cast<std::size_t>(from.count)));
    return {bytes.begin(), bytes.end()};
}

bool SimulatedBackend::fails() {
    return options_.restores_that_fail > 0 && ++restores_ % options_.restores_that_fail == 0;
}

/// Every token comes in as if it were computed, so one that does not belong there stops the
/// program.
void SimulatedBackend::take_from(Held& held, std::span<const std::byte> snapshot, Tokens keep) {
    std::vector<TokenId> tokens(snapshot.size() / sizeof(TokenId));
    std::memcpy(tokens.data(), snapshot.data(), snapshot.size());
    for (const TokenId token : std::span(tokens).first(static_cast<std::size_t>(keep.count)))
        take_in(held, token);
    cells_ += keep;
}

bool SimulatedBackend::restore(engine::SequenceId sequence, Tokens length, Tokens keep,
                               std::span<const std::byte> snapshot) {
    FULLSTOP_ASSERT(!held_.contains(sequence), "what comes back has no place yet");
    FULLSTOP_ASSERT(std::cmp_less(held_.size(), options_.max_sequences),
                    "what comes back finds a place");
    FULLSTOP_ASSERT(
        std::cmp_equal(snapshot.size(), (kBytesPerToken * length.count).count) && keep <= length,
        "a snapshot holds what it is said to hold");
    if (fails() || cells_ + length > options_.pool) return false;
    take_from(held_[sequence], snapshot, keep);
    elapsed_ += options_.swap.in(length);
    return true;
}

bool SimulatedBackend::append(engine::SequenceId sequence, Tokens length,
                              std::span<const std::byte> snapshot) {
    FULLSTOP_ASSERT(
        facts_.shares && std::cmp_equal(snapshot.size(), (kBytesPerToken * length.count).count),
        "a snapshot holds what it is said to hold");
    if (fails()) return false;
    FULLSTOP_ASSERT(cells_ + length <= options_.pool, "what comes back finds cells");
    take_from(held_.at(sequence), snapshot, length);
    elapsed_ += options_.swap.in(length);
    return true;
}

}  // namespace fullstop::simulator
