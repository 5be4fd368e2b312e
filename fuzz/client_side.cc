// The rules of RFC 9112 that an answer's end depends on, and no tolerance.
#include "client_side.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "adapters/asio/limits.h"
#include "cuts.h"
#include "script.h"
#include "watch.h"

namespace fullstop::fuzz {
namespace {

using adapters::asio::RequestReader;

std::string_view take_line(std::string_view& rest) {
    const std::size_t end = rest.find("\r\n");
    require(end != std::string_view::npos, "a response head has no end");
    const std::string_view line = rest.substr(0, end);
    require(line.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos,
            "a response head holds CR, LF or NUL");
    rest.remove_prefix(end + 2);
    return line;
}

Response read_head(std::string_view& rest) {
    Response out;
    const std::string_view status = take_line(rest);
    require(status.starts_with("HTTP/1.") && status.size() >= 12 && status[8] == ' ',
            "a status line is none");
    std::from_chars(status.data() + 9, status.data() + 12, out.status);
    require(out.status >= 100 && out.status <= 999, "a status is none");
    for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) {
        const std::size_t colon = line.find(':');
        require(colon != 0 && colon != std::string_view::npos && line.find_first_of(" \t") > colon,
                "a header line is none");
        std::string name(line.substr(0, colon));
        std::ranges::transform(name, name.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        });
        std::string_view value = line.substr(colon + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        const bool frames = name == "content-length" || name == "transfer-encoding";
        require(out.headers.emplace(name, value).second || !frames, "the framing is told twice");
    }
    return out;
}

/// True: the last chunk came.
bool read_chunks(std::string_view rest, std::string& body) {
    while (!rest.empty()) {
        const std::size_t end = rest.find("\r\n");
        require(end != std::string_view::npos, "a chunk's size has no end");
        std::size_t size = 0;
        const auto number = std::from_chars(rest.data(), rest.data() + end, size, 16);
        require(number.ec == std::errc() && number.ptr == rest.data() + end,
                "a chunk's size is no number");
        rest.remove_prefix(end + 2);
        if (size == 0) {
            require(rest == "\r\n", "something stands behind the last chunk");
            return true;
        }
        require(rest.size() >= size + 2 && rest.substr(size, 2) == "\r\n",
                "a chunk has not its size");
        body += rest.substr(0, size);
        rest.remove_prefix(size + 2);
    }
    return false;
}

}  // namespace

Response strictly_read(std::string_view raw, bool head_only) {
    Response out = read_head(raw);
    while (out.status < 200) out = read_head(raw);
    const auto length = out.headers.find("content-length");
    const bool chunked = out.headers.contains("transfer-encoding");
    require(!chunked || length == out.headers.end(), "two framings at once");
    const bool bodiless = out.status == 204 || out.status == 304;
    require(out.status != 204 || (!chunked && length == out.headers.end()), "204 with a framing");
    if (head_only || bodiless) {
        require(raw.empty(), "a body where there is none");
        out.whole = true;
    } else if (chunked) {
        require(out.headers["transfer-encoding"] == "chunked", "an unknown coding");
        out.whole = read_chunks(raw, out.body);
    } else if (length != out.headers.end()) {
        std::size_t size = 0;
        const std::string& text = length->second;
        const auto number = std::from_chars(text.data(), text.data() + text.size(), size);
        require(number.ec == std::errc() && number.ptr == text.data() + text.size(),
                "a content-length is no number");
        require(raw.size() <= size, "a body is longer than its content-length");
        out.body = raw;
        out.whole = raw.size() == size;
    } else {
        out.until_close = true;
        out.body = raw;
    }
    return out;
}

Events events_of(std::string_view body) {
    Events out;
    std::string data;
    bool any = false;
    while (!body.empty()) {
        const std::size_t end = body.find('\n');
        out.cut = end == std::string_view::npos;
        std::string_view line = body.substr(0, end);
        body.remove_prefix(std::min(body.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() && !out.cut) {
            if (any) out.data.push_back(std::exchange(data, {}));
            any = false;
            // What a server writes behind its own terminator is nobody's event.
            if (!out.data.empty() && out.data.back() == "[DONE]") return out;
        } else if (line.starts_with("data:")) {
            line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
            data += (any ? "\n" : "") + std::string(line);
            any = true;
        }
    }
    out.cut = out.cut || any;
    return out;
}

bool is_json(std::string_view text) {
    boost::json::error_code error;
    (void)boost::json::parse(text, error, {}, {.max_depth = 256});
    return !error;
}

ClientSide::ClientSide(Head head, Serve serve, Ended ended)
    : head_(std::move(head)),
      serve_(std::move(serve)),
      ended_(std::move(ended)),
      clients_(kClients) {
    for (Client& client : clients_) client.reader = new_reader();
}

std::unique_ptr<RequestReader> ClientSide::new_reader() {
    return std::make_unique<RequestReader>(
        adapters::asio::RequestLimits{.head_bytes = adapters::asio::kMaxRequestHeadBytes,
                                      .body_bytes = adapters::asio::kMaxRequestBodyBytes});
}

void ClientSide::sends(std::size_t client, std::string_view bytes) {
    client %= kClients;
    clients_[client].bytes += bytes;
    read(client);
}

void ClientSide::read(std::size_t at) {
    Client& client = clients_[at];
    if (client.asked || client.bytes.empty()) return;
    const auto read_some = [&client] {
        const Watch watch("reading a request");
        return client.reader->read(client.bytes);
    };
    auto status = read_some();
    if (status == RequestReader::Status::kHead) {
        if (!head_is_wanted(at)) return;
        status = read_some();
    }
    if (status == RequestReader::Status::kMore) return;
    if (status == RequestReader::Status::kRefused) {
        const Response refusal =
            strictly_read(adapters::asio::refusal_response(client.reader->refusal_status(),
                                                           client.reader->refusal_text(),
                                                           client.reader->request_id()),
                          false);
        require(refusal.whole && is_json(refusal.body), "a refusal is no JSON");
        asked_.erase(client.request);
        client = {.reader = new_reader(), .bytes = {}};
        return;
    }
    client.asked = true;
    net::ServiceRequest request = client.reader->take();
    asked_.at(client.request).request = request;
    serve_(std::move(request));
}

/// False when the service has answered.
bool ClientSide::head_is_wanted(std::size_t at) {
    Client& client = clients_[at];
    client.request = ++last_;
    client.asked = true;
    const net::ServiceRequest& head = client.reader->head(last_);
    asked_.emplace(last_, Asked{.client = at, .request = head, .raw = {}});
    if (!head_(head)) return false;
    client.asked = false;
    return true;
}

net::ConnectionId ClientSide::leaves(std::size_t client) {
    Client& who = clients_[client % kClients];
    const net::ConnectionId id = who.asked ? who.request : 0;
    if (id != 0) asked_.at(id).closed = true;
    who = {.reader = new_reader(), .bytes = {}};
    return id;
}

void ClientSide::take(const net::ServiceActions& actions) {
    for (const auto& action : actions) {
        if (const auto* send = std::get_if<net::ServiceSend>(&action)) {
            Asked& asked = asked_.at(send->id);
            require(!asked.closed, "bytes behind the end of a response");
            asked.raw += send->bytes;
        } else if (const auto* close_it = std::get_if<net::ServiceClose>(&action)) {
            close(*close_it);
        }
    }
}

void ClientSide::close(const net::ServiceClose& close) {
    Asked& asked = asked_.at(close.id);
    require(!std::exchange(asked.closed, true), "a response ends twice");
    if (std::getenv("SHOW") != nullptr)
        std::fprintf(stderr, "--- %s\n%s\n", asked.request.target.c_str(), asked.raw.c_str());
    const Response response = strictly_read(asked.raw, asked.request.method == "HEAD");
    require(response.whole || !close.keep_alive, "a connection is kept behind an open body");
    require(!response.until_close || !close.keep_alive,
            "a connection is kept whose close is the end");
    ended_(asked, response, close);
    Client& client = clients_[asked.client];
    const bool behind_body = client.reader->body_follows() && asked.request.body.empty();
    client.request = 0;
    client.asked = false;
    if (close.keep_alive && close.kind == net::CloseKind::kFin && client.reader->keep_alive() &&
        !behind_body)
        client.reader->next();
    else
        client = {.reader = new_reader(), .bytes = {}};
    asked = {.client = asked.client, .request = {}, .raw = {}, .closed = true};
}

void ClientSide::read_on() {
    for (std::size_t i = 0; i < clients_.size(); ++i)
        for (std::size_t before = 0; !clients_[i].asked && !clients_[i].bytes.empty() &&
                                     clients_[i].bytes.size() != before;) {
            before = clients_[i].bytes.size();
            read(i);
        }
}

std::size_t ClientSide::open() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(clients_, [](const Client& client) { return client.asked; }));
}

}  // namespace fullstop::fuzz
