// Every cause as a function; each lives in a file cause_<family>.cc whose first lines say what it
// needs, what refutes it and what it recommends.
#pragma once

#include <optional>

#include "judge/causes/claim.h"

namespace fullstop::judge {

using MaybeClaim = std::optional<Claim>;

MaybeClaim server_stall(const answer::Record&, const Context&);
MaybeClaim answers_mixed(const answer::Record&, const Context&);
MaybeClaim measurement_artefact(const answer::Record&, const Context&);
MaybeClaim client_misread(const answer::Record&, const Context&);
MaybeClaim client_deadline(const answer::Record&, const Context&);
MaybeClaim client_idle_timeout(const answer::Record&, const Context&);
MaybeClaim client_cancelled(const answer::Record&, const Context&);
MaybeClaim reported_by_fullstop(const answer::Record&, const Context&);
MaybeClaim kv_pool_error(const answer::Record&, const Context&);
MaybeClaim kv_pool_mislabelled(const answer::Record&, const Context&);
MaybeClaim out_of_memory(const answer::Record&, const Context&);
MaybeClaim engine_death(const answer::Record&, const Context&);
MaybeClaim server_error(const answer::Record&, const Context&);
MaybeClaim admission_rejected(const answer::Record&, const Context&);
MaybeClaim gateway_rejected(const answer::Record&, const Context&);
MaybeClaim request_rejected(const answer::Record&, const Context&);
MaybeClaim aborted_by_server(const answer::Record&, const Context&);
MaybeClaim displaced_by_arrival(const answer::Record&, const Context&);
MaybeClaim cancelled_by_other(const answer::Record&, const Context&);
MaybeClaim model_unloaded(const answer::Record&, const Context&);
MaybeClaim repetition_guard(const answer::Record&, const Context&);
MaybeClaim mislabelled_limit(const answer::Record&, const Context&);
MaybeClaim output_lost(const answer::Record&, const Context&);
MaybeClaim reasoning_budget(const answer::Record&, const Context&);
MaybeClaim gateway_reported_timeout(const answer::Record&, const Context&);
MaybeClaim gateway_idle_timeout(const answer::Record&, const Context&);
MaybeClaim gateway_deadline(const answer::Record&, const Context&);
MaybeClaim gateway_token_budget(const answer::Record&, const Context&);
MaybeClaim gateway_rewrite(const answer::Record&, const Context&);
MaybeClaim connection_broken(const answer::Record&, const Context&);
MaybeClaim silent_end(const answer::Record&, const Context&);
MaybeClaim generation_time_limit(const answer::Record&, const Context&);
MaybeClaim token_limit(const answer::Record&, const Context&);
MaybeClaim default_token_limit(const answer::Record&, const Context&);
MaybeClaim context_limit(const answer::Record&, const Context&);
MaybeClaim prompt_truncated(const answer::Record&, const Context&);
MaybeClaim masked_error(const answer::Record&, const Context&);
MaybeClaim unclear_limit(const answer::Record&, const Context&);
MaybeClaim stop_string(const answer::Record&, const Context&);
MaybeClaim natural_end(const answer::Record&, const Context&);
MaybeClaim suspicious_stop(const answer::Record&, const Context&);
MaybeClaim numeric_divergence(const answer::Record&, const Context&);
MaybeClaim preempted(const answer::Record&, const Context&);

}  // namespace fullstop::judge
