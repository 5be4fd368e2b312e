// For tests: runs with every field filled at random, awkward bytes and numbers among them.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answer/run.h"
#include "base/random.h"

namespace fullstop::answer {

class RandomRun {
public:
    explicit RandomRun(std::uint64_t seed) : random_(seed) {}

    template <class E>
    E pick(std::uint64_t count) {
        return static_cast<E>(random_.below(count));
    }
    bool flag() { return random_.chance(0.5); }
    std::int64_t integer() {
        return flag() ? static_cast<std::int64_t>(random_.next())
                      : static_cast<std::int64_t>(random_.below(1000)) - 3;
    }
    int small() { return static_cast<int>(integer()); }
    double number() {
        constexpr std::array<double, 6> kEdges = {0.0,
                                                  0.1,
                                                  -1e-300,
                                                  1e300,
                                                  std::numeric_limits<double>::denorm_min(),
                                                  std::numeric_limits<double>::max()};
        return flag() ? kEdges[random_.below(kEdges.size())] : random_.normal() * 1e5;
    }
    base::Duration time() { return base::Duration(integer()); }
    base::Tokens tokens() { return {integer()}; }
    base::Bytes bytes() { return {integer()}; }
    std::string text() {
        static const std::array<std::string, 7> kPieces = {"",
                                                           "ends.",
                                                           "\xff\xfe broken \xc3",
                                                           std::string("nul\0inside", 10),
                                                           "\"quote\\\n\r\t\x01",
                                                           "größer 漢字 🙂",
                                                           "\xed\xa0\x80"};
        std::string made;
        for (auto pieces = random_.below(3); pieces > 0; --pieces)
            made += kPieces[random_.below(kPieces.size())];
        return made;
    }
    template <class Make>
    auto list(Make make) {
        std::vector<decltype(make())> made;
        for (auto size = random_.below(3); size > 0; --size) made.push_back(make());
        return made;
    }
    template <class Make>
    auto map(Make make) {
        std::map<std::string, decltype(make())> made;
        for (auto size = random_.below(3); size > 0; --size) made[text()] = make();
        return made;
    }
    template <class Make>
    auto maybe(Make make) {
        return flag() ? std::optional(make()) : std::nullopt;
    }
    template <class Make>
    auto fact(Make make) -> Fact<decltype(make())> {
        if (flag()) return Fact<decltype(make())>::unavailable(text());
        return {make(), pick<Provenance>(3), text()};
    }
    std::optional<base::Duration> moment() {
        return maybe([&] { return time(); });
    }

    Message message() { return {text(), text()}; }
    Prompt prompt() {
        Check check{maybe([&] { return small(); }), list([&] { return text(); }), flag(),
                    maybe([&] { return text(); }), maybe([&] { return text(); })};
        return {text(), list([&] { return message(); }), maybe([&] { return tokens(); }), check,
                list([&] { return text(); })};
    }
    Experiment experiment() {
        return {list([&] { return small(); }),
                list([&] { return prompt(); }),
                small(),
                maybe([&] { return tokens(); }),
                maybe([&] { return number(); }),
                maybe([&] { return number(); }),
                integer(),
                flag(),
                time(),
                moment(),
                moment(),
                time(),
                list([&] {
                    return Experiment::Step{text(),  text(),  small(), small(),
                                            small(), small(), small()};
                }),
                maybe([&] { return text(); })};
    }
    ServerFacts server() {
        return {text(),
                text(),
                text(),
                text(),
                fact([&] { return tokens(); }),
                fact([&] { return tokens(); }),
                fact([&] { return integer(); }),
                fact([&] { return flag(); }),
                fact([&] { return tokens(); }),
                fact([&] { return bytes(); }),
                fact([&] { return integer(); }),
                fact([&] { return number(); }),
                map([&] { return text(); })};
    }
    Sample sample() {
        const auto real = [&] { return maybe([&] { return number(); }); };
        return {time(), text(), real(),
                real(), real(), real(),
                real(), real(), map([&] { return number(); })};
    }
    ServerError error() {
        return {maybe([&] { return small(); }), text(), text(), text(), pick<ErrorPlace>(3)};
    }
    Record record() {
        Record r;
        r.request = {text(),
                     text(),
                     small(),
                     text(),
                     text(),
                     integer(),
                     small(),
                     pick<Api>(6),
                     text(),
                     list([&] { return message(); }),
                     maybe([&] { return tokens(); }),
                     maybe([&] { return number(); }),
                     maybe([&] { return number(); }),
                     list([&] { return text(); }),
                     flag()};
        r.timeline = {moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      moment(),
                      pick<StampClock>(2),
                      list([&] { return time(); })};
        r.status = maybe([&] { return small(); });
        r.headers = map([&] { return text(); });
        r.http_version = text();
        r.framing = pick<Framing>(4);
        r.text = text(), r.reasoning = text(), r.tool_calls = text();
        r.text_events = integer(), r.comments = integer(), r.unread_events = integer();
        r.response_id = text(), r.response_model = text();
        r.end = {maybe([&] { return text(); }), maybe([&] { return error(); }), flag(),
                 pick<Transport>(7)};
        r.disconnect = {pick<Disconnect::By>(4), pick<Disconnect::Kind>(3), integer()};
        r.server_errors = list([&] { return error(); });
        r.stop_details = map([&] { return text(); });
        r.finish_events = small();
        for (auto* field :
             {&r.requested_max_tokens, &r.effective_max_tokens, &r.prompt_tokens, &r.cached_tokens,
              &r.output_tokens, &r.reasoning_tokens, &r.counted_tokens})
            *field = fact([&] { return tokens(); });
        for (auto* field : {&r.queue_ms, &r.prompt_ms, &r.client_deadline_ms,
                            &r.gateway_deadline_ms, &r.server_deadline_ms, &r.paused_ms})
            *field = fact([&] { return number(); });
        r.deadline_fired = pick<DeadlineFired>(4);
        r.preemptions = fact([&] { return integer(); });
        r.kv_bytes = fact([&] { return bytes(); }),
        r.memory_free_bytes = fact([&] { return bytes(); });
        r.fullstop_cause = maybe([&] { return text(); });
        r.shape = {
            flag(), flag(), flag(), flag(), flag(), maybe([&] { return integer(); }), maybe([&] {
                return integer();
            })};
        r.capture = {text(), list([&] { return Capture::Arrival{time(), random_.next()}; }),
                     flag()};
        return r;
    }

    Run run() {
        Run r{.id = "run-" + std::to_string(random_.next()),
              .started = {integer()},
              .elapsed = time(),
              .fullstop_version = text(),
              .fullstop_build = text(),
              .url = text(),
              .model = text(),
              .api = pick<Api>(6),
              .experiment = experiment(),
              .arms = {},
              .server_before = {},
              .server_after = {},
              .records = {},
              .samples = {},
              .interrupted = flag(),
              .notes = list([&] { return text(); })};
        r.arms = list([&] { return Arm{text(), text(), text()}; });
        r.server_before = map([&] { return server(); });
        r.server_after = map([&] { return server(); });
        r.records = list([&] { return record(); });
        r.samples = list([&] { return sample(); });
        return r;
    }

private:
    base::Random random_;
};

}  // namespace fullstop::answer
