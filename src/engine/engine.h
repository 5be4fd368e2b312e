// Continuous batching with honest ends: who runs in each step, and why each answer stops.
//
// Sans-IO: time is handed in, the model is a Backend, results are events. One step is plan,
// compute, commit; only compute takes long. Answers stand in a strict order (ranking.h). The first
// of those that wait starts when Admission has room for it; when memory runs short later, answers
// that stand lower are paused: their KV goes to host memory, or is computed again. The first of all
// is never paused, so every answer ends. engine.cc is the life of an answer, scheduling.cc who
// runs, slo.cc what a target for first tokens means. What ended may serve as the beginning of what
// comes (prefix_cache.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/answer_end.h"
#include "engine/backend.h"
#include "engine/cost/ttft_forecast.h"
#include "engine/limits.h"
#include "engine/scheduling/admission.h"
#include "engine/scheduling/block_pool.h"
#include "engine/scheduling/host_memory.h"
#include "engine/scheduling/pacing.h"
#include "engine/scheduling/prefix_cache.h"
#include "engine/scheduling/ranking.h"
#include "engine/scheduling/sequence.h"
#include "engine/scheduling/slo.h"

namespace fullstop::engine {

struct EngineOptions {
    std::size_t max_queue = kDefaultMaxQueue;
    AdmissionMode admission = AdmissionMode::kReserve;
    base::Bytes host_memory = kDefaultHostMemory;  ///< for the KV of paused and ended answers; 0:
                                                   ///< it is always computed again
    std::optional<base::Duration> ttft_target{}, itl_target{};
    SloPolicy slo_policy =
        SloPolicy::kIgnore;  ///< for requests whose first token is expected later than ttft_target
    std::optional<CostModel>
        cost{};  ///< of this machine, model and layout; targets do nothing without it
};

class Engine {
public:
    /// `backend` outlives the engine and is used by nobody else.
    Engine(Backend& backend, const EngineOptions& options);

    /// Queues the request, or refuses it: a prompt that cannot fit, a full queue.
    void submit(base::Instant now, Submission submission, EngineEvents& out);
    /// Says what the conversation becomes as a prompt (PromptShown).
    void show_prompt(base::Instant now, SequenceId id, std::span<const answer::Message> messages,
                     EngineEvents& out) const;
    /// Ends the answer for `cause`, wherever it is; its blocks are free when this returns. Unknown
    /// ids are ignored: the answer may have ended meanwhile. Not between plan() and commit().
    void cancel(base::Instant now, SequenceId id, answer::Cause cause, std::string detail,
                EngineEvents& out);
    /// Ends everything for `cause`.
    void cancel_all(base::Instant now, answer::Cause cause, const std::string& detail,
                    EngineEvents& out);

    /// Ends what is past its deadline, admits what fits and chooses the rows of the next step:
    /// running answers first, then prompts, in their order. False: there is nothing to compute.
    bool plan(base::Instant now, EngineEvents& out);
    /// Runs the planned rows on the backend.
    void compute();
    /// Chooses the next tokens and ends what is over.
    void commit(base::Instant now, EngineEvents& out);

    bool idle() const { return waiting_.empty() && running_.empty(); }
    Occupancy occupancy() const;
    const BlockPool& pool() const { return pool_; }

private:
    using Owned = std::unique_ptr<Sequence>;
    using Line = std::vector<Sequence*>;

    // engine.cc
    void end_overdue(base::Instant now, EngineEvents& out);
    void plan_prompts(base::Instant now);
    base::Duration time_left(base::Instant now) const;
    void plan_run(Sequence& sequence, base::Tokens rows);
    void after_row(base::Instant now, Sequence& sequence, std::span<const float> logits,
                   EngineEvents& out);
    void end_failed_step(base::Instant now, EngineEvents& out);
    void end(base::Instant now, Sequence& sequence, answer::Cause cause, std::string detail,
             EngineEvents& out);
    AnswerNumbers numbers_of(const Sequence& sequence) const;
    base::Duration estimate_wait(base::Instant now) const;
    void check() const;

    /// Cells in use.
    base::Tokens kv_cells() const {
        return kv_used_ - pool_.block_size() * pool_.counted_twice().count;
    }

    // slo.cc
    struct EarlyRefusal {
        std::string detail;
        base::Duration retry;
    };
    Course course_of(const Sequence& sequence, base::Instant now) const;
    std::optional<base::Duration> estimate_ttft(base::Instant now, const Sequence& sequence,
                                                bool idle) const;
    base::Tokens known_by_then(const Sequence& sequence) const;
    std::optional<EarlyRefusal> hold_to_target(base::Instant now, Sequence& sequence);
    void turn_away_newest();

    // scheduling.cc
    void admit(base::Instant now, EngineEvents& out);
    bool make_place(base::Instant now, const Sequence& head);
    bool fits(const Sequence& head, std::span<Sequence* const> beside, base::Blocks free) const;
    void start(base::Instant now, Sequence& sequence, EngineEvents& out);
    void bring_back(Sequence& sequence, const std::optional<BlockPool::Beginning>& shared);
    void begin_with_known(Sequence& sequence, const std::optional<BlockPool::Beginning>& shared);
    bool take_kept(Sequence& sequence, const PrefixCache::Match& kept);
    void share(Sequence& sequence, const BlockPool::Beginning& shared);
    void begins_with(Sequence& sequence, base::Tokens length);
    const Sequence* running_that_begins_like(const Sequence& sequence, base::Tokens& length) const;
    std::optional<BlockPool::Beginning> shareable(const Sequence& head,
                                                  std::span<Sequence* const> beside) const;
    bool comes_soon(const Sequence& head) const;
    /// Can a beginning of a sequence with so many tokens in KV be used again?
    bool divisible(base::Tokens length) const {
        return !backend_.facts().sliding_window || length <= *backend_.facts().sliding_window;
    }
    void keep_for_later(const Sequence& sequence);
    void holds(Sequence& sequence, base::Tokens tokens);
    void make_room(base::Instant now);
    Sequence* victim_below(const Standing& standing, base::Instant now) const;
    void pause(base::Instant now, Sequence& sequence);
    bool swap_out(Sequence& sequence);
    void forget_snapshot(Sequence& sequence);
    Line in_order(const std::vector<Owned>& sequences, base::Instant now) const;
    static Owned take(std::vector<Owned>& from, const Sequence& sequence);

    Backend& backend_;
    EngineOptions options_;
    BlockPool pool_;
    Admission admission_;
    Ranking ranking_;
    HostMemory host_;
    PrefixCache prefixes_;
    base::Bytes swapped_out_, swapped_in_;
    base::Tokens reused_;
    Pacing pacing_;
    std::vector<Owned> waiting_;      ///< in order of arrival, paused ones among them
    std::vector<Owned> running_;      ///< in order of arrival
    std::vector<Run> runs_;           ///< of the step between plan() and commit(),
    std::optional<StepShape> shape_;  ///< what it asks of the machine,
    base::Instant planned_{};         ///< and when it was planned
    DecodeStatus status_ = DecodeStatus::kOk;
    base::Tokens kv_used_;  ///< of each sequence, what is shared counted for each
    std::int64_t steps_ = 0;
    std::int64_t swaps_ = 0, recomputes_ = 0;
    std::int64_t demoted_ = 0, rejected_early_ = 0;
    std::uint64_t next_rank_ = 0;
    double mean_service_s_ =
        0;  ///< of the answers that ended lately, from admission to end; 0: none yet
};

}  // namespace fullstop::engine
