// What clients send to `fullstop serve`, from bytes to the last token: reader, HTTP surface and
// engine, with a model that counts its cells. Every request ends once, in honest framing; at the
// end nothing is held any more.
//
//   %p window=128 sequences=4 pool=256 queue=8 keys   how it is set up; the first step
//   %q0 POST /v1/completions\n\n{...}                 client 0 sends a request
//   %Q0 ...                                           client 0 sends bytes
//   %s0 n=20  %t0 s=5  %l0  %d0                       20 steps of the engine; 5 s pass; client 0
//                                                     leaves; it drains
//   %f0  %r0  %m0                                     the next computation finds no room; restoring
//                                                     fails; logits are no numbers
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_side.h"
#include "engine/http/http_service.h"
#include "engine/test_backend.h"
#include "script.h"
#include "watch.h"

namespace {

using namespace fullstop;
using engine::TokenId;

/// Allows everything for a while and then, by a rule of its own, little or nothing.
class AnyConstraint final : public engine::TokenConstraint {
public:
    explicit AnyConstraint(std::size_t size) : left_(size % 40) {}
    void keep_allowed(std::vector<TokenId>& tokens) override {
        if (left_ == 0) std::erase_if(tokens, [](TokenId token) { return token != 0; });
        if (left_ == 7) tokens.clear();
    }
    void accept(TokenId) override { left_ -= left_ > 0 ? 1 : 0; }

private:
    std::size_t left_;
};

/// The tests' model, which takes any grammar.
class Model final : public engine::Backend {
public:
    explicit Model(engine::TestBackend inner) : tests(std::move(inner)) {}
    engine::TestBackend tests;

    const engine::ModelFacts& facts() const override { return tests.facts(); }
    engine::PromptTokens tokenize(std::string_view text) const override {
        return tests.tokenize(text);
    }
    std::string piece(TokenId token) const override { return tests.piece(token); }
    bool is_end(TokenId token) const override { return tests.is_end(token); }
    base::Result<engine::PromptTokens> chat_tokens(
        std::span<const answer::Message> messages) const override {
        return tests.chat_tokens(messages);
    }
    base::Result<std::string> chat_text(std::span<const answer::Message> messages) const override {
        return tests.chat_text(messages);
    }
    base::Result<std::unique_ptr<engine::TokenConstraint>> constrain(
        const std::string& grammar) override {
        return std::make_unique<AnyConstraint>(grammar.size());
    }
    engine::DecodeStatus decode(std::span<const engine::Run> runs) override {
        return tests.decode(runs);
    }
    std::span<const float> logits(std::size_t index) const override { return tests.logits(index); }
    void remove(engine::SequenceId sequence) override { tests.remove(sequence); }
    std::vector<std::byte> snapshot(engine::SequenceId sequence, base::Tokens from) override {
        return tests.snapshot(sequence, from);
    }
    bool append(engine::SequenceId sequence, base::Tokens length,
                std::span<const std::byte> snapshot) override {
        return tests.append(sequence, length, snapshot);
    }
    bool restore(engine::SequenceId sequence, base::Tokens length, base::Tokens keep,
                 std::span<const std::byte> snapshot) override {
        return tests.restore(sequence, length, keep, snapshot);
    }
    void share(engine::SequenceId from, engine::SequenceId to, base::Tokens length) override {
        tests.share(from, to, length);
    }
};

engine::TestBackend model_of(std::string_view setup) {
    const base::Tokens window{std::clamp(fuzz::number_in(setup, "window", 128), 32L, 512L) / 16 *
                              16};
    const auto sequences = std::clamp(fuzz::number_in(setup, "sequences", 4), 1L, 8L);
    const long pool = fuzz::number_in(setup, "pool", 0);
    engine::TestBackend out(
        window, sequences,
        pool > 0 ? std::optional(std::max(window, base::Tokens{std::min(pool, 2048L) / 16 * 16}))
                 : std::nullopt);
    if (setup.find("long") != std::string_view::npos)
        out.unread_from = static_cast<std::size_t>(window.count) * 2;
    return out;
}

class World {
public:
    explicit World(std::string_view setup)
        : queue_(static_cast<std::size_t>(std::clamp(fuzz::number_in(setup, "queue", 8), 0L, 16L))),
          model_(model_of(setup)),
          engine_(model_, {.max_queue = queue_,
                           .admission = setup.find("eager") == std::string_view::npos
                                            ? engine::AdmissionMode::kReserve
                                            : engine::AdmissionMode::kEager,
                           .host_memory = base::Bytes{fuzz::number_in(setup, "host", 4000)}}),
          service_(
              model_.facts(),
              {.version = "fuzz",
               .drain = std::chrono::seconds(5),
               .max_queue = queue_,
               .access = {.keys =
                              setup.find("keys") == std::string_view::npos
                                  ? serving::ApiKeys()
                                  : serving::ApiKeys::parse("a:secret-key-1\n", "keys").value()},
               .started = {},
               .started_wall = {1'800'000'000'000'000'000}},
              [this](engine::Command command) { commands_.push_back(std::move(command)); }),
          clients_([this](const net::ServiceRequest& head) { return wanted(head); },
                   [this](net::ServiceRequest request) { serve(std::move(request)); },
                   [](const fuzz::Asked& asked, const fuzz::Response& response,
                      const net::ServiceClose&) { look_at(asked, response); }) {}

    void step(const fuzz::Step& step) {
        switch (step.what) {
            case 'q': clients_.sends(step.who, fuzz::request_bytes(step.text)); break;
            case 'Q': clients_.sends(step.who, step.text); break;
            case 's':
                for (long left = std::clamp(fuzz::number_in(step.text, "n", 1), 1L, 100L);
                     left > 0 && compute(); --left) {
                }
                break;
            case 't':
                pass(std::chrono::seconds(
                    std::clamp(fuzz::number_in(step.text, "s", 1), 0L, 100'000L)));
                break;
            case 'l':
                if (const auto id = clients_.leaves(step.who); id != 0)
                    act("a client leaves", [&](auto& out) { service_.client_left(now_, id, out); });
                break;
            case 'd': act("draining", [&](auto& out) { service_.drain(now_, out); }); break;
            case 'f':
                model_.tests.next_status =
                    step.who == 0 ? engine::DecodeStatus::kNoRoom : engine::DecodeStatus::kFatal;
                break;
            case 'r': model_.tests.fail_restores = 1; break;
            case 'm': model_.tests.no_numbers = step.who == 0; break;
            default: break;
        }
        clients_.read_on();
    }

    void end() {
        model_.tests.no_numbers = false;
        for (int rounds = 0;
             rounds < 50'000 && (compute() || clients_.open() > 0 || !commands_.empty()); ++rounds)
            clients_.read_on();
        fuzz::require(clients_.open() == 0 && service_.open_answers() == 0, "a request never ends");
        fuzz::require(engine_.idle() && engine_.occupancy().kv_reserved.count == 0,
                      "something is held for nobody");
        fuzz::require(model_.tests.sequences() == 0 && model_.tests.cells() == 0,
                      "cells are held for nobody");
    }

private:
    template <class Call>
    void act(const char* what, const Call& call) {
        net::ServiceActions out;
        {
            const fuzz::Watch watch(what);
            call(out);
        }
        for (const auto& action : out)
            if (const auto* wake = std::get_if<net::ServiceWake>(&action)) wake_ = wake->at;
        clients_.take(out);
    }

    bool wanted(const net::ServiceRequest& head) {
        bool out = true;
        act("a request's head", [&](auto& actions) { out = service_.head(now_, head, actions); });
        return out;
    }
    void serve(net::ServiceRequest request) {
        now_ += std::chrono::milliseconds(1);
        act("a request", [&](auto& out) { service_.request(now_, std::move(request), out); });
    }

    /// One step of the engine, as the host's thread takes it. False: there was nothing to do.
    bool compute() {
        engine::EngineEvents events;
        const bool asked = !commands_.empty();
        for (engine::Command& command : std::exchange(commands_, {})) {
            const fuzz::Watch watch("a command of the engine");
            apply(engine_, now_ += std::chrono::milliseconds(1), std::move(command), events);
        }
        bool more = false;
        {
            const fuzz::Watch watch("a step of the engine");
            more = engine_.plan(now_ += std::chrono::milliseconds(1), events);
            if (more) {
                engine_.compute();
                engine_.commit(now_ += std::chrono::milliseconds(1), events);
            }
        }
        act("events of the engine",
            [&](auto& out) { service_.deliver(events, engine_.occupancy(), out); });
        return more || asked;
    }

    void pass(base::Duration time) {
        const base::Instant until = now_ + time;
        for (int wakes = 0; wake_ && *wake_ <= until && wakes < 100; ++wakes) {
            now_ = std::max(now_, *std::exchange(wake_, std::nullopt));
            act("a wake", [&](auto& out) { service_.wake(now_, out); });
        }
        now_ = until;
    }

    static void look_at(const fuzz::Asked& asked, const fuzz::Response& response) {
        if (asked.request.method == "HEAD") return;
        if (response.is("text/event-stream")) {
            const fuzz::Events events = fuzz::events_of(response.body);
            fuzz::require(!events.cut, "a stream ends within an event");
            bool done = false, reason = false, error = false;
            for (const std::string& data : events.data) {
                fuzz::require(data == "[DONE]" || fuzz::is_json(data), "an event is no JSON");
                fuzz::require(!done, "something stands behind [DONE]");
                done = data == "[DONE]";
                reason = reason || data.find("\"finish_reason\":\"") != std::string::npos;
                error = error || data.starts_with("{\"error\":");
            }
            fuzz::require(done == response.whole && (!done || reason) && done != error,
                          "a stream's end is not honest");
        } else {
            fuzz::require(response.whole, "a body that is no stream is not whole");
            if (response.is("application/json"))
                fuzz::require(fuzz::is_json(response.body), "a JSON body is none");
        }
        fuzz::require(response.status < 400 || response.body.size() < 8192,
                      "an error repeats what was sent");
    }

    std::size_t queue_;
    Model model_;
    engine::Engine engine_;
    engine::HttpService service_;
    std::vector<engine::Command> commands_;
    fuzz::ClientSide clients_;
    base::Instant now_{std::chrono::seconds(100)};
    std::optional<base::Instant> wake_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    GTEST_FLAG_SET(break_on_failure, true);  // what the tests' model expects, it expects here
    const auto steps = fuzz::steps_of({reinterpret_cast<const char*>(data), size});
    World world(steps.empty() || steps.front().what != 'p' ? std::string_view()
                                                           : steps.front().text);
    for (const fuzz::Step& step : steps) world.step(step);
    world.end();
    return 0;
}
