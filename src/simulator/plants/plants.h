// Every fault that can be planted in a scripted server, by family; what each needs to be realistic
// stands with its code. `from`: requests in the house from which on the plant acts; below it the
// server is honest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "simulator/plants/plant.h"

namespace fullstop::simulator {

using PlantPtr = std::unique_ptr<Plant>;

// plants_cut.cc: the general cutters
// -------------------------------------------------------------------------------------------------
/// Ends a share of the answers at a random token of their first 70 %, each for itself.
PlantPtr cut_some(int from, double share, Ending ending);
/// Ends everything that runs, at once, again and again while the load lasts. `down` > 0: the
/// process is gone for so long.
PlantPtr cut_all(int from, Ending ending, base::Duration down = {});

// plants_memory.cc
// -------------------------------------------------------------------------------------------------
/// When the tokens of all running sequences do not fit the pool, every running sequence ends so.
PlantPtr kv_pool(std::int64_t tokens, Ending ending);
/// Pauses a share of the answers once and counts a preemption for each; nothing is cut.
PlantPtr preemption(int from, double share, base::Duration pause);

// plants_settings.cc
// -------------------------------------------------------------------------------------------------
/// An effective limit on output tokens. `announced`: the response headers of the contract say so.
PlantPtr token_cap(int from, std::int64_t cap, bool announced);
/// A limit on output tokens where the request left it to the server.
PlantPtr default_limit(std::int64_t tokens);
/// A window that gets smaller when requests share the memory.
PlantPtr smaller_window(int from, std::int64_t window);
/// A part of the prompt is dropped: fewer prompt tokens are counted, and another question is
/// answered.
PlantPtr prompt_cut(int from, double kept);
/// One prompt of the script is refused whatever the load.
PlantPtr refuse_prompt(std::size_t prompt, answer::ServerError error);
/// Thinking grows until it fills the limit.
PlantPtr endless_thinking(int from);

// plants_runtime.cc
// -------------------------------------------------------------------------------------------------
/// The answer's generation time is limited; the answer ends as if a token limit had been reached.
PlantPtr generation_time(base::Duration limit);
/// Requests beyond `most` in the house are refused at once.
PlantPtr full_house(int most, Ending ending);
/// A new request ends the one that is streaming (llama-cpp-python).
PlantPtr displace_on_arrival(int from);
/// A client's leaving ends every other running answer (ik_llama.cpp, OVMS).
PlantPtr cancel_with_others(Ending ending);
/// Tokens go on being generated and counted but are not delivered from a random token on.
PlantPtr lose_output(int from, double share);
/// A share of the answers falls into a loop, and a guard ends it.
PlantPtr loop_guard(int from, double share, Ending ending);

// plants_gateway.cc
// -------------------------------------------------------------------------------------------------
/// A share of the answers is silent for `stall` once; `limit` > 0: a gateway gives up after so much
/// silence.
PlantPtr stall(int from, double share, base::Duration stall, base::Duration limit);
/// A gateway ends each exchange `limit` after the request came in.
PlantPtr total_time(base::Duration limit, Ending ending);
/// A gateway answers for a server that sent no byte in time.
PlantPtr first_byte_time(base::Duration limit, Ending ending);
/// Whatever ends badly is made to look finished on the way out. Stands last among the plants.
PlantPtr rewrite_ends();

}  // namespace fullstop::simulator
