// One reader for each parameter that is honoured: JSON value in, part of the request out. Internal
// to openai_request.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/openai/openai_request.h"

namespace fullstop::engine {

/// Readers return what is wrong, to be read behind the parameter's name; "" when nothing is.
using Reader = std::string (*)(const boost::json::value&, CompletionRequest&);

// Values (request_values.cc)
std::optional<double> number(const boost::json::value& value);
std::string read_number(const boost::json::value& value, double low, double high, double& out,
                        std::string_view range);
std::string read_flag(const boost::json::value& value, bool& out);

// What is asked (request_prompt.cc)
std::string read_messages(const boost::json::value& value, CompletionRequest& out);
std::string read_prompt(const boost::json::value& value, CompletionRequest& out);

// How it is answered (request_sampling.cc)
std::string read_max_tokens(const boost::json::value& value, CompletionRequest& out);
std::string read_stop(const boost::json::value& value, CompletionRequest& out);
std::string read_seed(const boost::json::value& value, CompletionRequest& out);
std::string read_temperature(const boost::json::value& value, CompletionRequest& out);
std::string read_top_p(const boost::json::value& value, CompletionRequest& out);
std::string read_min_p(const boost::json::value& value, CompletionRequest& out);
std::string read_frequency_penalty(const boost::json::value& value, CompletionRequest& out);
std::string read_presence_penalty(const boost::json::value& value, CompletionRequest& out);
std::string read_logit_bias(const boost::json::value& value, CompletionRequest& out);
std::string read_chat_logprobs(const boost::json::value& value, CompletionRequest& out);
std::string read_top_logprobs(const boost::json::value& value, CompletionRequest& out);
std::string read_text_logprobs(const boost::json::value& value, CompletionRequest& out);
std::string read_top_k(const boost::json::value& value, CompletionRequest& out);

// In which form (request_format.cc)
std::string read_response_format(const boost::json::value& value, CompletionRequest& out);

// With what urgency: the `fullstop` object of the contract (request_service_class.cc)
std::string read_fullstop(const boost::json::value& value, CompletionRequest& out);

}  // namespace fullstop::engine
