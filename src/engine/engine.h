// Continuous batching with honest ends: who runs in each step, and why each answer stops.
//
// Sans-IO: time is handed in, the model is a Backend, results are events. One step is plan, compute, commit; only compute
// takes long. A sequence starts, in order of arrival, when what Admission wants for it fits. When memory runs short later,
// the one that arrived last is paused: its blocks are freed, its tokens kept and computed again before anything newer
// starts. Nobody is paused twice (admission.h), and the oldest never, so every answer ends. Left out: swapping to host
// memory, sharing of prefixes, deadlines.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/admission.h"
#include "engine/answer_end.h"
#include "engine/backend.h"
#include "engine/block_pool.h"
#include "engine/limits.h"
#include "engine/sequence.h"

namespace fullstop::engine {

struct EngineOptions {
    std::size_t max_queue = kDefaultMaxQueue;
    AdmissionMode admission = AdmissionMode::kReserve;
};

class Engine {
public:
    /// `backend` outlives the engine and is used by nobody else.
    Engine(Backend& backend, EngineOptions options);

    /// Queues the request, or refuses it: a prompt that cannot fit, a full queue.
    void submit(base::Instant now, Submission submission, EngineEvents& out);
    /// Ends the answer for `cause`, wherever it is; its blocks are free when this returns. Unknown ids are ignored: the
    /// answer may have ended meanwhile. Not between plan() and commit().
    void cancel(base::Instant now, SequenceId id, answer::Cause cause, std::string detail, EngineEvents& out);
    /// Ends everything for `cause`.
    void cancel_all(base::Instant now, answer::Cause cause, const std::string& detail, EngineEvents& out);

    /// Admits what fits and chooses the rows of the next step: running answers first, then prompts in order of arrival.
    /// False: there is nothing to compute.
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

    void admit(base::Instant now, EngineEvents& out);
    void make_room(base::Instant now);
    void pause(base::Instant now, Sequence& sequence);
    Sequence* newest_that_may_pause() const;
    void plan_run(Sequence& sequence, base::Tokens rows);
    void after_row(base::Instant now, Sequence& sequence, std::span<const float> logits, EngineEvents& out);
    void end_failed_step(base::Instant now, EngineEvents& out);
    void end(base::Instant now, Sequence& sequence, answer::Cause cause, std::string detail, EngineEvents& out);
    AnswerNumbers numbers_of(const Sequence& sequence) const;
    base::Duration estimate_wait(base::Instant now) const;
    void check() const;

    Backend& backend_;
    EngineOptions options_;
    BlockPool pool_;
    Admission admission_;
    std::deque<Owned> waiting_;   ///< in order of arrival, paused ones among them
    std::vector<Owned> running_;  ///< in order of arrival
    std::vector<Run> runs_;       ///< of the step between plan() and commit()
    DecodeStatus status_ = DecodeStatus::kOk;
    base::Tokens kv_used_;
    std::int64_t steps_ = 0;
    std::int64_t pauses_ = 0;
    std::uint64_t next_rank_ = 0;
    double mean_service_s_ = 0;  ///< of the answers that ended lately, from admission to end; 0: none yet
};

}  // namespace fullstop::engine
