// A request in any dialect, read back: what the answer is to be compared with.
#include <boost/json.hpp>

#include <array>
#include <cmath>

#include "wire/captures/capture.h"

namespace fullstop::wire {
namespace {

namespace json = boost::json;
using answer::Api;

struct Path {
    std::string_view end;
    Api api;
};
/// Longest first where one ends like another.
constexpr std::array<Path, 9> kPaths = {{{"/chat/completions", Api::kOpenAiChat},
                                         {"/completions", Api::kOpenAiCompletions},
                                         {"/completion", Api::kLlamaServer},
                                         {"/api/chat", Api::kOllama},
                                         {"/api/generate", Api::kOllama},
                                         {"/api/extra/generate/stream", Api::kKoboldCpp},
                                         {"/api/v1/generate", Api::kKoboldCpp},
                                         {"/generate_stream", Api::kTgi},
                                         {"/generate", Api::kTgi}}};

Api api_of(const json::object& body, std::string_view url) {
    const std::string_view path = url.substr(0, url.find_first_of("?#"));
    for (const Path& known : kPaths)
        if (path.ends_with(known.end)) return known.api;
    if (body.contains("inputs")) return Api::kTgi;
    if (body.contains("options")) return Api::kOllama;
    if (body.contains("messages")) return Api::kOpenAiChat;
    if (body.contains("n_predict")) return Api::kLlamaServer;
    if (body.contains("max_length")) return Api::kKoboldCpp;
    return body.contains("prompt") ? Api::kOpenAiCompletions : Api::kOpenAiChat;
}

std::string text_of(const json::value& content) {
    if (const auto* text = content.if_string()) return std::string(*text);
    std::string out;
    if (const auto* parts = content.if_array())
        for (const json::value& part : *parts)
            if (const auto* object = part.if_object())
                if (const auto* text = object->if_contains("text")) out += text_of(*text);
    return out;
}

std::vector<answer::Message> messages_of(const json::object& body) {
    std::vector<answer::Message> out;
    if (const auto* messages = body.if_contains("messages"); messages && messages->is_array()) {
        for (const json::value& item : messages->get_array()) {
            const auto* message = item.if_object();
            if (!message) continue;
            const auto* role = message->if_contains("role");
            const auto* content = message->if_contains("content");
            out.push_back({role && role->is_string() ? std::string(role->get_string()) : "",
                           content ? text_of(*content) : ""});
        }
        return out;
    }
    for (const auto* key : {"prompt", "inputs"})
        if (const auto* prompt = body.if_contains(key); prompt && prompt->is_string())
            out.push_back({"user", std::string(prompt->get_string())});
    return out;
}

/// The members of the body, and those of the object some dialects keep sampling in.
class Sampling {
public:
    explicit Sampling(const json::object& body) {
        levels_[0] = &body;
        for (const auto* key : {"options", "parameters"})
            if (const auto* inner = body.if_contains(key); inner && inner->is_object())
                levels_[1] = &inner->get_object();
    }
    const json::value* find(std::initializer_list<const char*> names) const {
        for (const json::object* level : levels_)
            for (const char* name : names)
                if (const auto* value = level ? level->if_contains(name) : nullptr;
                    value && !value->is_null())
                    return value;
        return nullptr;
    }
    std::optional<double> number(std::initializer_list<const char*> names) const {
        const auto* value = find(names);
        if (!value || !value->is_number()) return std::nullopt;
        return value->to_number<double>();
    }
    std::optional<std::int64_t> integer(std::initializer_list<const char*> names) const {
        const auto n = number(names);
        if (!n || std::abs(*n) > 0x1p53) return std::nullopt;
        return static_cast<std::int64_t>(*n);
    }

private:
    std::array<const json::object*, 2> levels_{};
};

answer::Request request_of(const json::object& body, std::string_view url) {
    answer::Request out;
    out.api = api_of(body, url);
    if (const auto* model = body.if_contains("model"); model && model->is_string())
        out.model = std::string(model->get_string());
    out.messages = messages_of(body);
    const Sampling sampling(body);
    const auto limit =
        sampling.integer({"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict",
                          "num_predict", "max_new_tokens", "max_length"});
    // Zero and negative numbers mean "no limit" (llama-server, Ollama).
    if (limit && *limit > 0) out.max_tokens = base::Tokens{*limit};
    out.seed = sampling.integer({"seed", "sampler_seed"}).value_or(0);
    out.temperature = sampling.number({"temperature"});
    out.top_p = sampling.number({"top_p"});
    if (const auto* stop = sampling.find({"stop", "stop_sequence"})) {
        if (const auto* one = stop->if_string()) out.stop.emplace_back(*one);
        if (const auto* many = stop->if_array())
            for (const json::value& word : *many)
                if (const auto* text = word.if_string()) out.stop.emplace_back(*text);
    }
    const auto* stream = body.if_contains("stream");
    const bool streams_unasked =
        out.api == Api::kOllama || url.find("stream") != std::string_view::npos;
    out.stream = stream && stream->is_bool() ? stream->get_bool() : streams_unasked;
    return out;
}

}  // namespace

base::Result<answer::Request> read_request(std::string_view text, std::string_view url) {
    boost::system::error_code error;
    const json::value parsed = json::parse(json::string_view(text.data(), text.size()), error);
    if (error || !parsed.is_object())
        return base::usage_error(
            "The request is not a JSON object" + (error ? ": " + error.message() : std::string()) +
                ".",
            "Give the JSON body that was sent, or the first line of a fullstop capture.");
    const json::object* object = &parsed.get_object();
    if (const auto* wrapped = object->if_contains("request"); wrapped && wrapped->is_object())
        object = &wrapped->get_object();
    const auto* body = object->if_contains("body");
    if (!body) return request_of(*object, url);
    const auto* address = object->if_contains("url");
    const std::string known_url =
        address && address->is_string() ? std::string(address->get_string()) : std::string(url);
    if (body->is_object()) return request_of(body->get_object(), known_url);
    if (body->is_string()) return read_request(body->get_string(), known_url);
    return base::usage_error("The request's `body` is neither an object nor a text.");
}

void set_request(answer::Record& record, answer::Request request) {
    using TokenFact = answer::Fact<base::Tokens>;
    record.requested_max_tokens =
        request.max_tokens ? TokenFact::measured(*request.max_tokens, "the limit in the request")
                           : TokenFact::unavailable("not sent: left to the server");
    record.request = std::move(request);
}

}  // namespace fullstop::wire
