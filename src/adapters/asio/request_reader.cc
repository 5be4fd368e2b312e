// One HTTP/1.1 request, by Beast's parser, with bounds and with words for what is wrong.
#include "adapters/asio/request_reader.h"

#include <fmt/core.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cctype>
#include <utility>

namespace fullstop::adapters::asio {

namespace http = ::boost::beast::http;
using ErrorCode = ::boost::beast::error_code;

struct RequestReader::State {
    http::request_parser<http::string_body> parser;
    bool continue_answered = false;
    int status = 400;
    std::string text;
};

namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

}  // namespace

RequestReader::RequestReader(RequestLimits limits) : limits_(limits) { next(); }
RequestReader::~RequestReader() = default;

void RequestReader::next() {
    state_ = std::make_unique<State>();
    state_->parser.eager(true);
    // Beast counts the start line to the head as well; its type for the limit is 32 bits wide.
    state_->parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
    state_->parser.body_limit(limits_.body_bytes);
}

RequestReader::Status RequestReader::read(std::string& bytes) {
    ErrorCode error;
    std::size_t taken = 0;
    while (taken < bytes.size() && !state_->parser.is_done()) {
        const std::size_t some = state_->parser.put(::boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
        taken += some;
        if (error) break;
    }
    bytes.erase(0, taken);
    if (error == http::error::need_more) error = {};
    if (!error && !state_->parser.is_header_done() && bytes.size() > limits_.head_bytes) error = http::error::header_limit;
    if (!error) return state_->parser.is_done() ? Status::kWhole : Status::kMore;
    if (error == http::error::header_limit) {
        state_->status = 431;
        state_->text = fmt::format("the request head is longer than {} bytes", limits_.head_bytes);
    } else if (error == http::error::body_limit) {
        state_->status = 413;
        state_->text = fmt::format("the request body is longer than {} bytes", limits_.body_bytes);
    } else {
        state_->status = 400;
        state_->text = fmt::format("this is not an HTTP/1.1 request: {}", error.message());
    }
    return Status::kRefused;
}

bool RequestReader::wants_continue() {
    if (state_->continue_answered || !state_->parser.is_header_done() || state_->parser.is_done()) return false;
    state_->continue_answered = true;
    return lower(std::string_view(state_->parser.get()[http::field::expect])) == "100-continue";
}

bool RequestReader::has_begun() const { return state_->parser.got_some(); }

net::ServiceRequest RequestReader::take(net::ConnectionId id) {
    auto& message = state_->parser.get();
    net::ServiceRequest request{.id = id, .method = std::string(message.method_string()), .target = std::string(message.target()), .headers = {}, .body = {}};
    for (const auto& field : message) {
        std::string& value = request.headers[lower(std::string_view(field.name_string()))];
        if (!value.empty()) value += ", ";
        value += std::string_view(field.value());
    }
    request.body = std::move(message.body());
    return request;
}

bool RequestReader::keep_alive() const { return state_->parser.keep_alive(); }
int RequestReader::refusal_status() const { return state_->status; }
std::string RequestReader::refusal_text() const { return state_->text; }

std::string refusal_response(int status, std::string_view message) {
    const ::boost::json::value document = {{"error", {{"message", message}, {"type", "invalid_request_error"}, {"code", status}}}};
    const std::string body = ::boost::json::serialize(document);
    const auto reason = http::obsolete_reason(static_cast<http::status>(status));
    return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       std::string_view(reason.data(), reason.size()), body.size(), body);
}

}  // namespace fullstop::adapters::asio
