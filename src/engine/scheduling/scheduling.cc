// Who runs: admission in order, room for the next tokens, and pauses. Everything here keeps the
// premises of the proof in ARCHITECTURE.md that every answer ends.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "engine/engine.h"

namespace fullstop::engine {

using base::Blocks;
using base::Bytes;
using base::Instant;
using base::Tokens;

Engine::Line Engine::in_order(const std::vector<Owned>& sequences, Instant now) const {
    std::vector<std::pair<Standing, Sequence*>> standings;
    standings.reserve(sequences.size());
    for (const Owned& sequence : sequences)
        standings.emplace_back(ranking_.of(*sequence, now), sequence.get());
    std::ranges::sort(standings, {}, [](const auto& entry) { return entry.first; });
    Line line;
    line.reserve(standings.size());
    for (const auto& [standing, sequence] : standings) line.push_back(sequence);
    return line;
}

Engine::Owned Engine::take(std::vector<Owned>& from, const Sequence& sequence) {
    const auto found = std::ranges::find(from, &sequence, [](const Owned& s) { return s.get(); });
    FULLSTOP_ASSERT(found != from.end(), "a sequence is in the list it is taken from");
    Owned out = std::move(*found);
    from.erase(found);
    return out;
}

/// Nobody passes the first that waits: it starts as soon as enough of those that run have ended.
void Engine::admit(Instant now, EngineEvents& out) {
    while (!waiting_.empty()) {
        Sequence& head = *in_order(waiting_, now).front();
        if (comes_soon(head) || !make_place(now, head)) return;
        start(now, head, out);
    }
}

/// Pauses answers of lower classes for `head`, the lowest first, if that gives it what it needs.
bool Engine::make_place(Instant now, const Sequence& head) {
    Line beside = in_order(running_, now);
    Line paused;
    std::vector<SequenceId> gone;
    while (!fits(head, beside, pool_.free() + pool_.freed_by(gone))) {
        if (beside.empty() || !Ranking::outranks(head.priority, ranking_.of(*beside.back(), now)))
            return false;
        paused.push_back(beside.back());
        gone.push_back(beside.back()->id);
        beside.pop_back();
    }
    for (Sequence* sequence : paused) pause(now, *sequence);
    return true;
}

bool Engine::fits(const Sequence& head, std::span<Sequence* const> beside, Blocks free) const {
    if (!std::cmp_less(beside.size(), backend_.facts().max_sequences)) return false;
    const auto needs = admission_.needs(head, beside, pool_, shareable(head, beside));
    return needs && *needs <= free;
}

void Engine::start(Instant now, Sequence& sequence, EngineEvents& out) {
    const auto shared = shareable(sequence, in_order(running_, now));
    pool_.reserve(sequence.id, admission_.promise(sequence), shared);
    if (!sequence.admitted) {
        sequence.admitted = now;
        out.emplace_back(Admitted{sequence.id, now});
    }
    sequence.resumed_at = sequence.length();
    if (sequence.snapshot.empty())
        begin_with_known(sequence, shared);
    else
        bring_back(sequence, shared);
    Owned owned = take(waiting_, sequence);
    running_.insert(std::ranges::upper_bound(running_, sequence.rank, {},
                                             [](const Owned& s) { return s->rank; }),
                    std::move(owned));
}

/// From its snapshot; if that fails its tokens are computed again, and the answer is the same. What
/// others had too when it was paused comes from one of them, or from one that ended since.
void Engine::bring_back(Sequence& sequence, const std::optional<BlockPool::Beginning>& shared) {
    const Tokens from = sequence.snapshot_from, copied = sequence.in_snapshot - from;
    bool done = false;
    if (from.count == 0) {
        done = backend_.restore(sequence.id, copied, copied, sequence.snapshot);
    } else {
        if (shared)
            share(sequence, *shared);
        else if (const auto kept = prefixes_.find(
                     sequence.client,
                     std::span(sequence.tokens).first(static_cast<std::size_t>(from.count)));
                 kept.length == from)
            take_kept(sequence, kept);
        done = sequence.in_kv == from && backend_.append(sequence.id, copied, sequence.snapshot);
    }
    if (done) {
        swapped_in_ += Bytes{std::ssize(sequence.snapshot)};
        holds(sequence, copied);
    } else {
        --sequence.swaps, --swaps_, ++sequence.recomputes, ++recomputes_;
    }
    forget_snapshot(sequence);
    if (sequence.in_kv.count == 0) begin_with_known(sequence, {});
}

void Engine::holds(Sequence& sequence, Tokens tokens) {
    sequence.in_kv += tokens;
    sequence.most_in_kv = std::max(sequence.most_in_kv, sequence.in_kv);
    kv_used_ += tokens;
    pool_.grow(sequence.id, sequence.in_kv);
}

void Engine::forget_snapshot(Sequence& sequence) {
    host_.free(Bytes{std::ssize(sequence.snapshot)});
    std::exchange(sequence.snapshot, {});
    sequence.snapshot_from = sequence.in_snapshot = {};
}

/// The next token of every decoding sequence gets its room, the first in order first. Those that
/// stand lower may be paused for it; where there are none, it waits itself.
void Engine::make_room(Instant now) {
    for (Sequence* sequence : in_order(running_, now)) {
        if (pool_.held(sequence->id).count == 0 || !sequence->decoding())
            continue;  // paused a moment ago, or at its prompt
        const Tokens next = sequence->in_kv + Tokens{1};
        while (!pool_.can_extend(sequence->id, next)) {
            Sequence* victim = victim_below(ranking_.of(*sequence, now), now);
            admission_.paused();
            pause(now, victim == nullptr ? *sequence : *victim);
            if (victim == nullptr) break;
        }
        if (pool_.held(sequence->id).count > 0) pool_.extend(sequence->id, next);
    }
}

/// Of those that stand lower, the one that holds most: fewer answers are paused than if it were the
/// last (which it is when its tokens would have to be computed again). Just resumed ones are spared
/// while another will do.
Sequence* Engine::victim_below(const Standing& standing, Instant now) const {
    Sequence* best = nullptr;
    const auto key = [&](const Sequence& s) {
        const bool spared = s.pauses() > 0 && s.length() < s.resumed_at + kQuantumTokens;
        const Standing own = ranking_.of(s, now);
        const bool swaps = host_.can_hold(backend_.facts().kv_bytes_per_token * s.in_kv.count);
        return std::tuple(!spared, own.level, swaps ? pool_.freed_by(std::array{s.id}) : Blocks{},
                          own);
    };
    for (const Owned& sequence : running_) {
        if (ranking_.of(*sequence, now) <= standing) continue;
        if (best == nullptr || key(*sequence) > key(*best)) best = sequence.get();
    }
    return best;
}

/// Back to the queue with its tokens, its sampler and its text; only its place in KV is given up.
void Engine::pause(Instant now, Sequence& sequence) {
    if (swap_out(sequence)) {
        ++sequence.swaps, ++swaps_;
    } else {
        ++sequence.recomputes, ++recomputes_;
    }
    backend_.remove(sequence.id);
    pool_.release(sequence.id);
    kv_used_ -= sequence.in_kv;
    sequence.in_kv = {};
    if (!sequence.paused_since) sequence.paused_since = now;
    Owned owned = take(running_, sequence);
    waiting_.insert(std::ranges::upper_bound(waiting_, sequence.rank, {},
                                             [](const Owned& s) { return s->rank; }),
                    std::move(owned));
}

/// Copies its KV into host memory, if there is room and it is worth it: a prompt of which little
/// was computed is computed again. What others have too is left out: it is likely to be there when
/// the answer goes on, and need not be there twice.
bool Engine::swap_out(Sequence& sequence) {
    if (sequence.in_kv < std::min(sequence.prompt, kPrefillRowsBesideDecodes)) return false;
    const Tokens from = pool_.block_size() * pool_.shared(sequence.id).count;
    if (sequence.in_kv <= from) return false;
    const Bytes expected = backend_.facts().kv_bytes_per_token * (sequence.in_kv - from).count;
    if (expected > host_.total()) return false;
    prefixes_.make_room(expected);
    if (!host_.can_hold(expected)) return false;
    std::vector<std::byte> snapshot = backend_.snapshot(sequence.id, from);
    const Bytes size{std::ssize(snapshot)};
    prefixes_.make_room(size);
    if (snapshot.empty() || !host_.can_hold(size)) return false;
    host_.hold(size);
    swapped_out_ += size;
    sequence.snapshot = std::move(snapshot);
    sequence.snapshot_from = from;
    sequence.in_snapshot = sequence.in_kv;
    return true;
}

// The beginning of a prompt that is known already
// -------------------------------------------------------------------------------------------------

/// The whole blocks of one of `beside` that `head` can own too: same client, same tokens, computed
/// already. None when an ended answer would save more than twice the work. For one that was paused:
/// those that its snapshot left out.
std::optional<BlockPool::Beginning> Engine::shareable(const Sequence& head,
                                                      std::span<Sequence* const> beside) const {
    const bool paused = !head.snapshot.empty();
    if (!backend_.facts().shares || (paused && head.snapshot_from.count == 0)) return std::nullopt;
    const auto tokens = std::span<const TokenId>(head.tokens)
                            .first(static_cast<std::size_t>(
                                (paused ? head.snapshot_from : head.length() - Tokens{1}).count));
    BlockPool::Beginning best;
    for (const Sequence* other : beside) {
        if (other->client != head.client) continue;
        const Tokens common =
            common_beginning(std::span<const TokenId>(other->tokens)
                                 .first(static_cast<std::size_t>(other->in_kv.count)),
                             tokens);
        if (const Blocks whole{common.count / pool_.block_size().count}; whole > best.blocks)
            best = {other->id, whole};
    }
    if (paused)
        return pool_.block_size() * best.blocks.count == head.snapshot_from ? std::optional(best)
                                                                            : std::nullopt;
    if (best.blocks.count == 0 ||
        prefixes_.longest(head.client, tokens) > pool_.block_size() * (2 * best.blocks.count))
        return std::nullopt;
    return best;
}

/// One that runs is at the beginning that `head` has too, and will soon have computed it: waiting
/// for it costs a few steps and saves computing and keeping it twice. Nobody waits for one of a
/// lower class, whose prompt may have to wait itself.
bool Engine::comes_soon(const Sequence& head) const {
    const bool paused = !head.snapshot.empty();
    if (!backend_.facts().shares || (paused && head.snapshot_from.count == 0)) return false;
    const auto tokens = std::span<const TokenId>(head.tokens)
                            .first(static_cast<std::size_t>(
                                (paused ? head.snapshot_from : head.length() - Tokens{1}).count));
    return std::ranges::any_of(running_, [&](const Owned& other) {
        if (other->client != head.client || other->missing().count <= 1 ||
            other->priority > head.priority)
            return false;
        const Tokens common = common_beginning(other->tokens, tokens);
        const Tokens whole{common.count / pool_.block_size().count * pool_.block_size().count};
        return whole >= other->in_kv +
                            (paused
                                 ? Tokens{1}
                                 : kLeastAwaited);  // without its beginning a snapshot is of no use
    });
}

/// From an answer that ended, or from one that runs, whichever shares more. The last token is
/// always computed: its logits choose. What is copied beyond the common beginning is in KV for a
/// moment, so there must be room for it.
void Engine::begin_with_known(Sequence& sequence,
                              const std::optional<BlockPool::Beginning>& shared) {
    if (shared) return share(sequence, *shared);
    const auto tokens = std::span<const TokenId>(sequence.tokens).first(sequence.tokens.size() - 1);
    const PrefixCache::Match kept = prefixes_.find(sequence.client, tokens);
    Tokens length = kept.length;
    const Sequence* runs = running_that_begins_like(sequence, length);
    if (runs != nullptr && host_.total().count > 0 &&
        runs->in_kv - length <= pool_.block_size() * pool_.free().count) {
        const std::vector<std::byte> copy = backend_.snapshot(runs->id, {});
        if (!copy.empty() && backend_.restore(sequence.id, runs->in_kv, length, copy))
            return begins_with(sequence, length);
    }
    take_kept(sequence, kept);
}

bool Engine::take_kept(Sequence& sequence, const PrefixCache::Match& kept) {
    if (kept.entry == nullptr) return false;
    const Tokens held{std::ssize(kept.entry->tokens)};
    if (held - kept.length > pool_.block_size() * pool_.free().count) return false;
    if (!backend_.restore(sequence.id, held, kept.length, kept.entry->snapshot)) return false;
    begins_with(sequence, kept.length);
    return true;
}

void Engine::share(Sequence& sequence, const BlockPool::Beginning& shared) {
    const Tokens length = pool_.block_size() * shared.blocks.count;
    backend_.share(shared.of, sequence.id, length);
    begins_with(sequence, length);
}

/// It has `length` tokens that were not computed for it.
void Engine::begins_with(Sequence& sequence, Tokens length) {
    holds(sequence, length);
    if (!sequence.first_token) sequence.cached = length;
    reused_ += length;
}

/// One that shares more than `length`, which becomes what it shares.
const Sequence* Engine::running_that_begins_like(const Sequence& sequence, Tokens& length) const {
    const auto tokens = std::span<const TokenId>(sequence.tokens).first(sequence.tokens.size() - 1);
    const Sequence* best = nullptr;
    if (backend_.facts().shares) return nullptr;
    for (const Owned& other : running_) {
        if (other->client != sequence.client || !divisible(other->in_kv)) continue;
        const Tokens common =
            common_beginning(std::span<const TokenId>(other->tokens)
                                 .first(static_cast<std::size_t>(other->in_kv.count)),
                             tokens);
        if (common > length && worth_copying(common, other->in_kv))
            best = other.get(), length = common;
    }
    return best;
}

void Engine::keep_for_later(const Sequence& sequence) {
    if (sequence.in_kv < kLeastPrefix || !divisible(sequence.in_kv) ||
        !prefixes_.wants(backend_.facts().kv_bytes_per_token * sequence.in_kv.count))
        return;
    std::vector<std::byte> snapshot = backend_.snapshot(sequence.id, {});
    if (snapshot.empty()) return;
    const auto held = std::span<const TokenId>(sequence.tokens)
                          .first(static_cast<std::size_t>(sequence.in_kv.count));
    prefixes_.add({.client = sequence.client,
                   .tokens = {held.begin(), held.end()},
                   .snapshot = std::move(snapshot)});
}

}  // namespace fullstop::engine
