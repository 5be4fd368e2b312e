// The JSON endpoints beyond those of observer.h, and what each tells about the server behind it.
#pragma once

#include <string>
#include <string_view>

#include "answer/run.h"

namespace fullstop::observe {

bool is_json(std::string_view text);

/// Each returns whether the text was of that product; `facts` changes only then.
bool is_props(std::string_view json);
bool read_fullstop_status(std::string_view json, answer::ServerFacts& facts);
bool read_tgi_info(std::string_view json, answer::ServerFacts& facts);
bool read_koboldcpp_version(std::string_view json, answer::ServerFacts& facts);
bool read_koboldcpp_context(std::string_view json, answer::ServerFacts& facts);
bool read_sglang_info(std::string_view json, answer::ServerFacts& facts);
/// The `version` member of /api/version and /version; "" when there is none.
std::string version_of(std::string_view json);
/// "vllm", "llamacpp", "library", ... of the first model in /v1/models.
std::string owner_of(std::string_view models_json);
/// The message of an error object or text body, cut to one line.
std::string message_of(std::string_view body);

/// What /slots and /fullstop/status say of this moment.
void sample_slots(std::string_view json, answer::Sample& sample);
void sample_fullstop_status(std::string_view json, answer::Sample& sample);
void sample_ollama_ps(std::string_view json, answer::Sample& sample);

}  // namespace fullstop::observe
