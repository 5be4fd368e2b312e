// The life of an answer: two lists and a pool. Everything that ends one goes through end(), so that
// each ends once and frees what it held.
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"

namespace fullstop::engine {

using answer::Cause;
using base::Bytes;
using base::Duration;
using base::Instant;
using base::Tokens;

namespace {

/// Weight of the newest answer in the running mean of service times: the last five or so decide.
constexpr double kNewestWeight = 0.2;
/// Retry-After knows whole seconds.
constexpr Duration kShortestRetry = std::chrono::seconds(1);
/// OpenAI's word, which clients know.
constexpr std::string_view kTooLong = "context_length_exceeded";

/// Ended where its model, its request or its window ends it: its length tells something of those to
/// come.
bool is_whole(Cause cause) {
    const answer::Effect effect = answer::entry(cause).effect;
    return effect == answer::Effect::kComplete || effect == answer::Effect::kAskedFor ||
           cause == Cause::kContextLimit;
}

struct Refusal {
    std::string_view code;
    std::string detail;
};

std::string no_room_in(Tokens window, Tokens prompt, std::string_view how_sure = {}) {
    return fmt::format(
        "the prompt has {}{} tokens and the window holds {}: no room for an answer; shorten the "
        "prompt by at least {} tokens",
        how_sure, prompt.count, window.count, prompt.count - window.count + 1);
}

/// Running a chat template takes time for each message, and each takes a token of its own in every
/// template known: what could not fit by that alone is not tried. "": it may fit.
std::string too_many(std::span<const answer::Message> messages, Tokens window) {
    if (std::cmp_less(messages.size(), window.count)) return {};
    return fmt::format(
        "the conversation has {} messages, each of at least one token, and the window holds {} "
        "tokens: no room for an answer",
        messages.size(), window.count);
}

/// Why this prompt and limit can never be served, if so.
std::optional<Refusal> impossible(Tokens prompt, std::optional<Tokens> asked, Tokens window) {
    if (prompt.count == 0) return Refusal{"empty_prompt", "the prompt is empty"};
    if (prompt >= window) return Refusal{kTooLong, no_room_in(window, prompt)};
    if (asked && prompt + *asked > window)
        return Refusal{kTooLong, fmt::format("prompt ({} tokens) and max_tokens ({}) need {} "
                                             "tokens and the window holds {}: ask for at most {}",
                                             prompt.count, asked->count, (prompt + *asked).count,
                                             window.count, (window - prompt).count)};
    return std::nullopt;
}

/// The tokens of its prompt, or why it can never be served.
std::expected<PromptTokens, Refusal> prompt_of(Backend& backend, const Submission& submission) {
    const Tokens window = backend.facts().window;
    PromptTokens read;
    if (const auto* messages = std::get_if<std::vector<answer::Message>>(&submission.prompt)) {
        if (auto trouble = too_many(*messages, window); !trouble.empty())
            return std::unexpected(Refusal{kTooLong, std::move(trouble)});
        auto conversation = backend.chat_tokens(*messages);
        if (!conversation)
            return std::unexpected(Refusal{
                "chat_template", conversation.error().message + ": " + conversation.error().hint});
        read = std::move(*conversation);
    } else {
        read = backend.tokenize(std::get<std::string>(submission.prompt));
    }
    if (read.at_least)
        return std::unexpected(Refusal{kTooLong, no_room_in(window, *read.at_least, "at least ")});
    return read;
}

/// As it stands in the queue.
Sequence sequence_of(Submission submission, std::vector<TokenId> tokens, Tokens window,
                     std::unique_ptr<TokenConstraint> constraint, std::uint64_t rank) {
    const Tokens prompt{static_cast<std::int64_t>(tokens.size())};
    return {.id = submission.id,
            .rank = rank,
            .tokens = std::move(tokens),
            .prompt = prompt,
            .in_kv = {},
            .requested = submission.max_tokens,
            .limit = submission.max_tokens.value_or(window - prompt),
            .sampler = Sampler(submission.sampling),
            .constraint = std::move(constraint),
            .gate = TextGate(std::move(submission.stop)),
            .logprobs = submission.logprobs.transform([](int top) { return TokenLogprobs(top); }),
            .arrived = submission.arrived,
            .priority = submission.priority,
            .deadline = submission.deadline,
            .on_deadline = submission.on_deadline,
            .client = std::move(submission.client)};
}

}  // namespace

Engine::Engine(Backend& backend, const EngineOptions& options)
    : backend_(backend),
      options_(options),
      pool_(backend.facts().pool, kBlockTokens),
      admission_(options.admission),
      host_(options.host_memory),
      prefixes_(host_),
      pacing_(options.itl_target, options.cost) {
    FULLSTOP_ASSERT(backend.facts().window <= pool_.block_size() * pool_.total().count,
                    "one answer that fills its window fits the pool");
}

void Engine::submit(Instant now, Submission submission, EngineEvents& out) {
    AnswerNumbers numbers;
    numbers.requested_max_tokens = submission.max_tokens;
    const SequenceId id = submission.id;
    const auto refuse = [&](Cause cause, std::string_view code, std::string detail,
                            std::optional<Duration> retry = {}) {
        out.emplace_back(
            Refused{id, now, std::string(code), {cause, std::move(detail), numbers}, retry});
    };
    auto read = prompt_of(backend_, submission);
    if (!read)
        return refuse(Cause::kRequestRejected, read.error().code, std::move(read.error().detail));
    const Tokens window = backend_.facts().window;
    const Tokens prompt{static_cast<std::int64_t>(read->tokens.size())};
    numbers.prompt_tokens = prompt;
    if (auto refusal = impossible(prompt, submission.max_tokens, window))
        return refuse(Cause::kRequestRejected, refusal->code, std::move(refusal->detail));
    std::unique_ptr<TokenConstraint> constraint;
    if (submission.grammar) {
        auto made = backend_.constrain(*submission.grammar);
        if (!made)
            return refuse(Cause::kRequestRejected, "response_format",
                          made.error().message + ": " + made.error().hint);
        constraint = std::move(*made);
    }
    ranking_.arrived(submission.client);
    waiting_.push_back(
        std::make_unique<Sequence>(sequence_of(std::move(submission), std::move(read->tokens),
                                               window, std::move(constraint), next_rank_++)));
    if (auto late = hold_to_target(now, *waiting_.back())) {
        numbers.ttft_estimate = waiting_.back()->ttft_estimate;
        turn_away_newest();
        return refuse(Cause::kAdmissionRejected, kMissesTarget, std::move(late->detail),
                      late->retry);
    }
    admit(now, out);
    const auto queued =
        std::ranges::count_if(waiting_, [](const Owned& s) { return !s->admitted; });
    if (std::cmp_less_equal(queued, options_.max_queue)) return;
    // Only the newest can be too much: the others were within the limit before it came.
    turn_away_newest();
    const Duration wait = estimate_wait(now);
    refuse(Cause::kAdmissionRejected, "queue_full",
           fmt::format("{} answers are running and {} requests are waiting, which is the limit; "
                       "about {:.0f} s until one more could wait",
                       running_.size(), queued - 1, base::to_seconds(wait)),
           wait);
}

void Engine::turn_away_newest() {
    ranking_.ended(waiting_.back()->client);
    waiting_.pop_back();
}

void Engine::show_prompt(Instant now, SequenceId id, std::span<const answer::Message> messages,
                         EngineEvents& out) const {
    if (const std::string trouble = too_many(messages, backend_.facts().window); !trouble.empty())
        out.emplace_back(PromptShown{id, now, base::usage_error(trouble, "leave some out")});
    else
        out.emplace_back(PromptShown{id, now, backend_.chat_text(messages)});
}

bool Engine::plan(Instant now, EngineEvents& out) {
    FULLSTOP_ASSERT(runs_.empty(), "a step is committed before the next is planned");
    end_overdue(now, out);
    admit(now, out);
    make_room(now);
    for (const Owned& sequence : running_)
        if (sequence->decoding()) plan_run(*sequence, Tokens{1});
    plan_prompts(now);
    planned_ = now;
    return !runs_.empty();
}

void Engine::plan_prompts(Instant now) {
    const bool alone = runs_.empty();
    shape_.emplace(backend_.facts().layout == KvLayout::kStreams, runs_, kv_cells());
    Tokens budget = alone || pacing_.knows() ? kPrefillRowsAlone : kPrefillRowsBesideDecodes;
    for (Sequence* sequence : in_order(running_, now)) {
        if (sequence->decoding() || budget.count == 0) continue;
        const Tokens foreign = kv_cells() - sequence->in_kv,
                     most = std::min(sequence->missing(), budget);
        const Tokens rows =
            alone || !pacing_.knows()
                ? most
                : pacing_.prompt_rows(*shape_, sequence->in_kv, most, time_left(now), foreign);
        plan_run(*sequence, rows);
        shape_->add(rows_at(runs_.back().position, rows.count, runs_.back().wants_logits, foreign));
        budget -= rows;
        if (rows < most) return;  // what the next tokens allow is used up
    }
}

/// Until the first of those that decode is late for its next token.
Duration Engine::time_left(Instant now) const {
    const Duration target = options_.itl_target.value();
    Duration left = target;
    for (const Owned& sequence : running_)
        if (sequence->decoding() && sequence->last_token)
            left = std::min(left, *sequence->last_token + target - now);
    return left;
}

void Engine::plan_run(Sequence& sequence, Tokens rows) {
    const auto all = std::span<const TokenId>(sequence.tokens);
    runs_.push_back({.sequence = sequence.id,
                     .position = sequence.in_kv,
                     .tokens = all.subspan(static_cast<std::size_t>(sequence.in_kv.count),
                                           static_cast<std::size_t>(rows.count)),
                     .wants_logits = rows == sequence.missing()});
}

void Engine::compute() { status_ = backend_.decode(runs_); }

void Engine::commit(Instant now, EngineEvents& out) {
    ++steps_;
    pacing_.observe(*shape_, now - planned_);
    if (status_ != DecodeStatus::kOk) {
        end_failed_step(now, out);
    } else {
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const auto found = std::ranges::find(running_, runs_[i].sequence,
                                                 [](const Owned& s) { return s->id; });
            FULLSTOP_ASSERT(found != running_.end(),
                            "a planned sequence runs until its step is committed");
            Sequence& sequence = **found;
            const Tokens rows{static_cast<std::int64_t>(runs_[i].tokens.size())};
            holds(sequence, rows);
            const bool made = sequence.length() > sequence.prompt && rows.count == 1;
            ranking_.charge(sequence.client, made ? Tokens{} : rows, made ? rows : Tokens{});
            if (runs_[i].wants_logits) after_row(now, sequence, backend_.logits(i), out);
        }
    }
    runs_.clear();
    check();
}

/// The sequence has new logits: choose, show, end what is over.
void Engine::after_row(Instant now, Sequence& sequence, std::span<const float> logits,
                       EngineEvents& out) {
    const auto token = sequence.sampler.pick(logits, sequence.constraint.get());
    if (!token)
        return end(now, sequence, Cause::kServerError,
                   sequence.constraint ? "no token that the response format allows here has a "
                                         "finite number to choose it by"
                                       : "the model produced no finite number to choose a token by",
                   out);
    if (backend_.is_end(*token)) {
        if (!sequence.first_token) sequence.first_token = now;
        return end(now, sequence, Cause::kNaturalEnd,
                   fmt::format("end token after {} tokens", sequence.output().count), out);
    }
    sequence.tokens.push_back(*token);
    if (sequence.constraint) sequence.constraint->accept(*token);
    if (sequence.logprobs) sequence.logprobs->add(backend_, logits, *token);
    Produced produced{.id = sequence.id,
                      .at = now,
                      .text = sequence.gate.push(backend_.piece(*token)),
                      .gap = {}};
    if (sequence.logprobs) produced.tokens = sequence.logprobs->take(sequence.gate.shown());
    if (sequence.last_token) {
        produced.gap = now - *sequence.last_token;
        sequence.worst_gap = std::max(sequence.worst_gap.value_or(Duration{}), *produced.gap);
    }
    if (!sequence.first_token) sequence.first_token = now;
    sequence.last_token = now;
    if (const auto since = std::exchange(sequence.paused_since, std::nullopt))
        sequence.paused += now - *since;
    out.emplace_back(std::move(produced));
    if (const auto& stop = sequence.gate.stopped_by())
        return end(now, sequence, Cause::kStopString, fmt::format("stop string \"{}\"", *stop),
                   out);
    if (sequence.output() < sequence.limit) return;
    if (sequence.requested)
        return end(now, sequence, Cause::kTokenLimit,
                   fmt::format("max_tokens {} reached", sequence.limit.count), out);
    end(now, sequence, Cause::kContextLimit,
        fmt::format("prompt {} + output {} tokens fill the window of {}", sequence.prompt.count,
                    sequence.output().count, sequence.worst_case().count),
        out);
}

/// What a failed computation left in KV is unknown, so the sequences of that step end; the others
/// go on.
void Engine::end_failed_step(Instant now, EngineEvents& out) {
    Cause cause = Cause::kServerError;
    std::string detail = "the computation failed";
    if (status_ == DecodeStatus::kAborted) {
        cause = Cause::kAbortedByServer;
        detail = "the computation was aborted";
    } else if (status_ == DecodeStatus::kNoRoom) {
        cause = Cause::kKvPoolExhausted;
        detail = fmt::format(
            "the model had no free KV cells with {} of {} tokens in use by our account: a bug",
            kv_cells().count, pool_.block_size().count * pool_.total().count);
    }
    for (const Run& run : std::exchange(runs_, {})) cancel(now, run.sequence, cause, detail, out);
}

void Engine::cancel(Instant now, SequenceId id, Cause cause, std::string detail,
                    EngineEvents& out) {
    for (const auto* list : {&running_, &waiting_})
        if (const auto found = std::ranges::find(*list, id, [](const Owned& s) { return s->id; });
            found != list->end()) {
            end(now, **found, cause, std::move(detail), out);
            break;
        }
    check();
}

void Engine::cancel_all(Instant now, Cause cause, const std::string& detail, EngineEvents& out) {
    while (!waiting_.empty()) cancel(now, waiting_.back()->id, cause, detail, out);
    while (!running_.empty()) cancel(now, running_.back()->id, cause, detail, out);
}

/// A deadline ends an answer only if its request said so.
void Engine::end_overdue(Instant now, EngineEvents& out) {
    std::vector<Sequence*> overdue;
    for (const auto* list : {&running_, &waiting_})
        for (const Owned& sequence : *list)
            if (sequence->on_deadline && sequence->due() && *sequence->due() <= now)
                overdue.push_back(sequence.get());
    for (Sequence* sequence : overdue)
        end(now, *sequence, Cause::kGenerationTimeLimit,
            fmt::format("the deadline of {:.0f} ms that the request set passed after {} tokens",
                        base::to_ms(*sequence->deadline), sequence->output().count),
            out);
}

/// Running, waiting or paused: it ends once and holds nothing afterwards.
void Engine::end(Instant now, Sequence& sequence, Cause cause, std::string detail,
                 EngineEvents& out) {
    const bool running = pool_.held(sequence.id).count > 0;
    std::string rest = sequence.gate.stopped_by() ? std::string() : sequence.gate.flush();
    if (const auto since = std::exchange(sequence.paused_since, std::nullopt))
        sequence.paused += now - *since;
    Ended ended{
        sequence.id, now, std::move(rest), {cause, std::move(detail), numbers_of(sequence)}};
    if (sequence.logprobs) ended.tokens = sequence.logprobs->finish(sequence.gate.shown());
    out.emplace_back(std::move(ended));
    ranking_.ended(sequence.client);
    if (!sequence.snapshot.empty()) forget_snapshot(sequence);
    if (!running) {
        take(waiting_, sequence);
        return;
    }
    const double service = base::to_seconds(now - *sequence.admitted);
    mean_service_s_ = mean_service_s_ == 0
                          ? service
                          : (1 - kNewestWeight) * mean_service_s_ + kNewestWeight * service;
    if (is_whole(cause)) admission_.ended(sequence.output());
    if (status_ == DecodeStatus::kOk) keep_for_later(sequence);  // else what is in KV is not sure
    backend_.remove(sequence.id);
    pool_.release(sequence.id);
    kv_used_ -= sequence.in_kv;
    take(running_, sequence);
}

AnswerNumbers Engine::numbers_of(const Sequence& sequence) const {
    AnswerNumbers numbers;
    numbers.requested_max_tokens = sequence.requested;
    numbers.effective_max_tokens = sequence.limit;
    numbers.prompt_tokens = sequence.prompt;
    numbers.cached_tokens = sequence.cached;
    numbers.output_tokens = sequence.output();
    if (sequence.admitted) numbers.queue = *sequence.admitted - sequence.arrived;
    if (sequence.first_token) numbers.ttft = *sequence.first_token - sequence.arrived;
    numbers.swaps = sequence.swaps;
    numbers.recomputes = sequence.recomputes;
    numbers.paused = sequence.paused;
    numbers.kv_bytes_peak = backend_.facts().kv_bytes_per_token * sequence.most_in_kv.count;
    numbers.deadline = sequence.deadline;
    numbers.ttft_estimate = sequence.ttft_estimate;
    numbers.demoted = sequence.demoted;
    if (options_.ttft_target && numbers.ttft)
        numbers.ttft_met = *numbers.ttft <= *options_.ttft_target;
    if (options_.itl_target && sequence.worst_gap)
        numbers.itl_met = *sequence.worst_gap <= *options_.itl_target;
    return numbers;
}

/// Everybody ahead, served by as many as run now, at the pace of the answers that ended lately
/// (before any did: of the oldest that runs).
Duration Engine::estimate_wait(Instant now) const {
    double service = mean_service_s_;
    if (service == 0 && !running_.empty())
        service = base::to_seconds(now - *running_.front()->admitted);
    const double ahead = static_cast<double>(waiting_.size()) + 1;
    const double seconds =
        service * ahead / static_cast<double>(std::max<std::size_t>(1, running_.size()));
    return std::max(kShortestRetry, base::from_ms(seconds * 1e3));
}

Occupancy Engine::occupancy() const {
    return {.running = static_cast<std::int64_t>(running_.size()),
            .waiting = static_cast<std::int64_t>(waiting_.size()),
            .kv_used = kv_cells(),
            .kv_reserved = pool_.block_size() * (pool_.owned() + pool_.promised()).count,
            .kv_total = pool_.block_size() * pool_.total().count,
            .kv_owned = pool_.block_size() * pool_.owned().count,
            .steps = steps_,
            .swaps = swaps_,
            .recomputes = recomputes_,
            .host_used = host_.used(),
            .host_total = host_.total(),
            .host_prefixes = prefixes_.bytes(),
            .swapped_out = swapped_out_,
            .swapped_in = swapped_in_,
            .reused = reused_,
            .demoted = demoted_,
            .rejected_early = rejected_early_};
}

void Engine::check() const {
    pool_.check();
    Tokens used;
    base::Blocks owned;
    for (const Owned& sequence : running_) {
        used += sequence->in_kv;
        owned += base::blocks_for(sequence->in_kv, pool_.block_size());
    }
    FULLSTOP_ASSERT(used == kv_used_ && owned == pool_.owned() + pool_.counted_twice(),
                    "the pool holds exactly what the running sequences hold");
    Bytes snapshots = prefixes_.bytes();
    for (const Owned& sequence : waiting_) snapshots += Bytes{std::ssize(sequence->snapshot)};
    FULLSTOP_ASSERT(snapshots == host_.used(),
                    "host memory holds exactly the snapshots of paused and ended sequences");
}

}  // namespace fullstop::engine
