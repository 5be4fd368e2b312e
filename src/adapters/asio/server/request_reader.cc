// One HTTP/1.1 request, by Beast's parser, with bounds and with words for what is wrong.
#include "adapters/asio/server/request_reader.h"

#include <fmt/core.h>

#include <algorithm>
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
    bool continue_answered = false, head_seen = false, folded = false, doubtful = false;
    net::ServiceRequest request{};
    int status = 400;
    std::string text;
};

namespace {

/// As the services allow it: longer ones do not fit a log line.
constexpr std::size_t kMaxEchoedIdBytes = 128;

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

/// What of `bytes`, which begin somewhere in a head, still belongs to it.
std::string_view rest_of_head(std::string_view bytes) {
    return bytes.starts_with("\r\n") ? "" : bytes.substr(0, bytes.find("\r\n\r\n"));
}

/// A field that goes on in a next line (obs-fold). Servers disagree on what it then says.
bool has_folded_line(std::string_view head) {
    return head.find("\r\n ") != std::string_view::npos ||
           head.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

RequestReader::RequestReader(RequestLimits limits) : limits_(limits) { next(); }
RequestReader::~RequestReader() = default;

void RequestReader::next() {
    state_ = std::make_unique<State>();
    state_->parser.eager(
        false);  // it stops behind the head, which is looked at before anything else is believed
    // Beast counts the start line to the head as well; its type for the limit is 32 bits wide.
    state_->parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
    state_->parser.body_limit(limits_.body_bytes);
}

RequestReader::Status RequestReader::read(std::string& bytes) {
    // Beast may take a head in several parts, but each field as a whole.
    if (!state_->parser.is_header_done())
        state_->folded = state_->folded || has_folded_line(rest_of_head(bytes));
    ErrorCode error;
    std::size_t taken = 0;
    while (taken < bytes.size() && !state_->parser.is_done()) {
        const std::size_t some = state_->parser.put(
            ::boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
        taken += some;
        if (error || (state_->parser.is_header_done() && !state_->head_seen)) break;
    }
    bytes.erase(0, taken);
    if (error == http::error::need_more) error = {};
    if (!error && !state_->parser.is_done() && bytes.size() > limits_.head_bytes)
        error = http::error::header_limit;
    if (error == http::error::header_limit)
        return refuse(431,
                      fmt::format("the request head is longer than {} bytes", limits_.head_bytes));
    if (error == http::error::body_limit)
        return refuse(413,
                      fmt::format("the request body is longer than {} bytes", limits_.body_bytes));
    if (error)
        return refuse(400, fmt::format("this is not an HTTP/1.1 request: {}", error.message()));
    if (state_->parser.is_header_done() && !std::exchange(state_->head_seen, true)) {
        look_at_head();
        return state_->doubtful ? Status::kRefused : Status::kHead;
    }
    return state_->parser.is_done() ? Status::kWhole : Status::kMore;
}

RequestReader::Status RequestReader::refuse(int status, std::string text) {
    state_->status = status;
    state_->text = std::move(text);
    return Status::kRefused;
}

/// Keeps the fields of the head, because those of a trailer are added to Beast's message later.
void RequestReader::look_at_head() {
    state_->parser.eager(true);
    const auto& message = state_->parser.get();
    auto& headers = state_->request.headers;
    state_->request.method = std::string(message.method_string());
    state_->request.target = std::string(message.target());
    std::size_t hosts = 0;
    for (const auto& field : message) {
        hosts += field.name() == http::field::host ? 1 : 0;
        std::string& value = headers[lower(std::string_view(field.name_string()))];
        if (!value.empty()) value += ", ";
        value += std::string_view(field.value());
    }
    const auto coding = headers.find("transfer-encoding");
    const auto doubt = [this](int status, const char* text) {
        refuse(status, text);
        state_->doubtful = true;
    };
    if (state_->folded)
        doubt(400, "a header goes on in a next line");
    else if (coding != headers.end() && message.version() < 11)
        doubt(400, "HTTP/1.0 knows no Transfer-Encoding");
    else if (coding != headers.end() && lower(coding->second) != "chunked")
        doubt(501, "of Transfer-Encoding only 'chunked' is understood");
    else if (hosts > 1)  // a request that has none misleads nobody
        doubt(400, "there is more than one Host header");
}

bool RequestReader::wants_continue() {
    if (state_->continue_answered || !state_->parser.is_header_done() || state_->parser.is_done())
        return false;
    state_->continue_answered = true;
    return lower(std::string_view(state_->parser.get()[http::field::expect])) == "100-continue";
}

bool RequestReader::has_begun() const { return state_->parser.got_some(); }

const net::ServiceRequest& RequestReader::head(net::ConnectionId id) {
    state_->request.id = id;
    return state_->request;
}

std::size_t RequestReader::announced_bytes() const {
    return state_->parser.content_length().value_or(0);
}

bool RequestReader::body_follows() const { return !state_->parser.is_done(); }

net::ServiceRequest RequestReader::take() {
    state_->request.body = std::move(state_->parser.get().body());
    return std::move(state_->request);
}

bool RequestReader::keep_alive() const { return state_->parser.keep_alive(); }
bool RequestReader::knows_chunks() const { return state_->parser.get().version() >= 11; }
bool RequestReader::wants_body() const { return state_->parser.get().method() != http::verb::head; }
int RequestReader::refusal_status() const { return state_->status; }
std::string RequestReader::refusal_text() const { return state_->text; }

std::string RequestReader::request_id() const {
    const std::string_view name(state_->parser.get()["X-Request-Id"]);
    const bool fine = name.size() <= kMaxEchoedIdBytes &&
                      std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7F'; });
    return fine ? std::string(name) : std::string();
}

std::string refusal_response(int status, std::string_view message, std::string_view request_id) {
    const ::boost::json::value document = {
        {"error",
         {{"message", message},
          {"type", status < 500 ? "invalid_request_error" : "server_error"},
          {"code", status}}}};
    const std::string body = ::boost::json::serialize(document);
    const auto reason = http::obsolete_reason(static_cast<http::status>(status));
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: "
        "close\r\n{}X-Request-Id: {}\r\n\r\n{}",
        status, std::string_view(reason.data(), reason.size()), body.size(),
        status == 503 ? "Retry-After: 1\r\n" : "", request_id, body);
}

}  // namespace fullstop::adapters::asio
