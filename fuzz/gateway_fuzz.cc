// What clients and servers send through `fullstop gateway`: requests in any form, answers that
// come, break, repeat and never end, while time passes and the configuration changes.
//
//   %p upstreams=3 continuation output  the configuration (gateway_world.cc); a later one comes in
//                                       the middle
//   %q0 POST /v1/completions\n\n{...}   client 0 sends a request
//   %Q0 bytes  %l0  %g0 / %G0           it sends bytes; it leaves; it lags, no longer
//   %c0  %n0  %f0  %r0                  the upstream of its attempt is connected, refuses, closes,
//                                       resets
//   %H0 HTTP/1.1 200 OK\nname: value    and says a head
//   %B0 bytes  %b0  %e0  %z0            bytes; a chunk; an event in a chunk; the last chunk
//   %h0  %w0  %T0  %R0 ,"x":1           a stream's head; a whole stream; its prompt; an event that
//                                       repeats what it was sent
//   %k1 slots=2 continues               upstream 1 tells what it is
//   %o1 waiting=3                       and how it is
//   %s0                                 the store answers: 0 grants, 1 refuses, 2 loses
//   %t0 s=5  %d                         5 s pass; it drains
#include <boost/json.hpp>
#include <string>

#include "gateway_world.h"
#include "script.h"
#include "wire/http/response_text.h"

namespace {

using namespace fullstop;

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string piece(std::string_view text, std::string_view more) {
    return R"({"model":"m","choices":[{"index":0,"delta":{"content":)" +
           boost::json::serialize(boost::json::string(text)) + R"(},"finish_reason":null}])" +
           std::string(more) + "}";
}

std::string ending() {
    return wire::chunk(wire::sse_event(
               R"({"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})")) +
           wire::chunk(wire::sse_event("[DONE]")) + wire::last_chunk();
}

/// The words of the last message that an upstream was sent: what a server goes on from.
std::string last_words(const std::string& request, bool all) {
    boost::json::error_code error;
    const auto body = boost::json::parse(
        request.substr(std::min(request.find("\r\n\r\n"), request.size() - 4) + 4), error);
    if (error || !body.is_object()) return {};
    const auto* messages = body.get_object().if_contains("messages");
    if (messages == nullptr || !messages->is_array()) return {};
    std::string out;
    for (const auto& message : messages->get_array()) {
        if (!message.is_object()) continue;
        const auto* content = message.get_object().if_contains("content");
        const std::string words = content != nullptr && content->is_string()
                                      ? std::string(content->get_string())
                                      : std::string();
        out = all ? out + words + "\n" : words;
    }
    return all && !out.empty() ? out.substr(0, out.size() - 1) : out;
}

std::string whole_json(const std::string& body) {
    return wire::whole_response(200, "application/json", body, {{"Connection", "keep-alive"}});
}

/// What a server says; "" for a step that is none of its.
std::string words_of(const fuzz::Step& step, fuzz::GatewayWorld& world) {
    const std::string& text = step.text;
    if (step.what == 'T' || step.what == 'R') world.connects(step.who);
    const std::string sent = world.sent_to(step.who);
    switch (step.what) {
        case 'H': return fuzz::head_bytes(text);
        case 'B': return text;
        case 'b': return text.empty() ? "" : wire::chunk(text);
        case 'e': return wire::chunk(wire::sse_event(text));
        case 'z': return wire::last_chunk();
        case 'h': return std::string(kHead);
        case 'w':
            return std::string(kHead) + wire::chunk(wire::sse_event(piece("whole", ""))) + ending();
        case 'v': return wire::chunk(wire::sse_event(piece(text, "")));
        case 'W': return ending();
        case 'j': return whole_json(text);
        case 'T':
            return sent.size() < 4 ? ""
                                   : whole_json(boost::json::serialize(
                                         boost::json::object{{"prompt", last_words(sent, true)}}));
        case 'R':
            return sent.size() < 4 ? ""
                                   : wire::chunk(wire::sse_event(
                                         piece(last_words(sent, false) + "rest", text)));
        default: return {};
    }
}

void happen(const fuzz::Step& step, fuzz::GatewayWorld& world) {
    using What = gateway::StoreAnswer::What;
    switch (step.what) {
        case 'p': return world.configure(step.text);
        case 'q': return world.clients().sends(step.who, fuzz::request_bytes(step.text));
        case 'Q': return world.clients().sends(step.who, step.text);
        case 'l': return world.leaves(step.who);
        case 'g': return world.lags(step.who, true);
        case 'G': return world.lags(step.who, false);
        case 'c': return world.connects(step.who);
        case 'n': return world.refuses(step.who);
        case 'f': return world.closes(step.who, net::CloseKind::kFin);
        case 'r': return world.closes(step.who, net::CloseKind::kRst);
        case 'k': return world.learned(step.who, step.text);
        case 'o': return world.loaded(step.who, step.text);
        case 's':
            return world.store_answers(step.who == 0   ? What::kGranted
                                       : step.who == 1 ? What::kRefused
                                                       : What::kLost);
        case 't':
            return world.pass(
                std::chrono::seconds(std::clamp(fuzz::number_in(step.text, "s", 1), 0L, 100'000L)));
        case 'd': return world.drain();
        default: return world.says(step.who, words_of(step, world));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto steps = fuzz::steps_of({reinterpret_cast<const char*>(data), size});
    const bool set = !steps.empty() && steps.front().what == 'p';
    fuzz::GatewayWorld world(set ? std::string_view(steps.front().text) : std::string_view());
    for (std::size_t i = set ? 1 : 0; i < steps.size(); ++i) {
        happen(steps[i], world);
        world.clients().read_on();
    }
    world.end();
    return 0;
}
