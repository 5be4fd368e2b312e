// The dialects of the servers, one file each: a JSON event in, what it says into the Transcript.
// Which dialect an event is in is seen from its members, never from the request or a header.
#pragma once

#include <optional>
#include <string_view>

#include "answer/end.h"
#include "answer/record.h"
#include "wire/dialects/transcript.h"
#include "wire/json/json.h"

namespace fullstop::wire {

/// One event of any dialect, errors included. `marked_as_error`: it is known to be one (SSE event
/// or field `error`, HTTP status), so that a shape never seen before still becomes an error. False
/// when nothing in it was understood.
bool read_event(JsonValue event, bool marked_as_error, Transcript& out);

// Each returns false, and changes nothing, when the event is not of its dialect.
bool read_openai(JsonValue event, Transcript& out);     ///< chat and completions; vLLM, SGLang, LM
                                                        ///< Studio, TabbyAPI, llama-server, LiteLLM
bool read_anthropic(JsonValue event, Transcript& out);  ///< Messages
bool read_responses(JsonValue event, Transcript& out);  ///< OpenAI Responses
bool read_llama_server(JsonValue event, Transcript& out);  ///< native /completion
bool read_ollama(JsonValue event, Transcript& out);        ///< /api/chat, /api/generate
bool read_koboldcpp(JsonValue event,
                    Transcript& out);             ///< /api/extra/generate/stream, /api/v1/generate
bool read_tgi(JsonValue event, Transcript& out);  ///< /generate_stream, /generate
bool read_sglang(JsonValue event, Transcript& out);  ///< native /generate

/// Numbers without an answer beside them: an event of usage, timings or the fullstop object alone.
bool read_loose_numbers(JsonValue event, Transcript& out);

/// The error an event holds, in any of the known shapes; with `marked_as_error` also in an unknown
/// one.
std::optional<answer::ServerError> error_of(JsonValue event, bool marked_as_error);

// Members that several servers share.
void read_usage(JsonValue usage, answer::Record& out);      ///< OpenAI `usage` with details
void read_timings(JsonValue timings, answer::Record& out);  ///< llama-server `timings`
void read_metrics(JsonValue metrics, answer::Record& out);  ///< vLLM `metrics` of one request
void read_fullstop(JsonValue object, Transcript& out);      ///< contract section 6
void read_generation_settings(JsonValue object, Transcript& out);  ///< llama-server
/// Numbers in the response head: TGI's x-*, fullstop's and LiteLLM's limits.
void read_headers(answer::Record& record);

}  // namespace fullstop::wire
