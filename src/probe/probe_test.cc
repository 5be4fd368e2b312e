// The closed loop against a scripted server on a virtual clock: how many are in flight, what ends
// an answer, and that whatever happens the run ends with every request accounted for.
#include "probe/probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "net/limits.h"
#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A host with virtual time. The script answers each request by scheduling events.
class TestHost {
public:
    struct Arrived {
        net::ConnectionId id;
        std::string text;
        int in_flight;  ///< connections open when the request came, itself included
    };
    using Script = std::function<void(TestHost&, const Arrived&)>;

    explicit TestHost(Script script) : script_(std::move(script)) {}

    void run(net::Part& part, base::Instant start = base::Instant(1h)) {
        now_ = start;
        net::Actions actions;
        part.start(now_, actions);
        act(actions);
        for (int steps = 0; !part.done(); ++steps) {
            ASSERT_LT(steps, 2'000'000) << "the part never ends";
            ASSERT_FALSE(queue_.empty()) << "the part waits for nothing";
            auto next = queue_.extract(queue_.begin());
            now_ = next.key();
            if (!next.mapped().alive(*this)) continue;
            actions.clear();
            next.mapped().deliver(part, actions);
            act(actions);
        }
    }

    // For scripts; `after` counts from now.
    void bytes(net::ConnectionId id, base::Duration after, std::string data) {
        later(id, after, [id, data](net::Part& part, base::Instant at, net::Actions& out) {
            part.on({at, net::Received{id, data, answer::StampClock::kKernel}}, out);
        });
    }
    void close(net::ConnectionId id, base::Duration after, net::CloseKind kind) {
        later(id, after, [this, id, kind](net::Part& part, base::Instant at, net::Actions& out) {
            open_.erase(id);
            part.on({at,
                     net::PeerClosed{
                         id, kind, kind == net::CloseKind::kRst ? "connection reset by peer" : ""}},
                    out);
        });
    }
    void interrupt(base::Duration after) {
        queue_.emplace(now_ + after,
                       Pending{[](const TestHost&) { return true; },
                               [at = now_ + after](net::Part& part, net::Actions& out) {
                                   part.on({at, net::Interrupted{}}, out);
                               }});
    }
    /// A whole streamed answer of `tokens` tokens, `gap` apart.
    void answer(net::ConnectionId id, int tokens, base::Duration gap,
                const std::string& reason = "stop") {
        bytes(id, 1ms,
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
              "chunked\r\n\r\n");
        for (int i = 1; i <= tokens; ++i)
            bytes(
                id, 1ms + i * gap,
                event(
                    R"({"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]})"));
        bytes(id, 1ms + tokens * gap,
              event(fmt::format(
                  R"({{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{}"}}]}})", reason)));
        bytes(id, 1ms + tokens * gap, chunk("data: [DONE]\n\n") + "0\r\n\r\n");
    }
    static std::string chunk(const std::string& data) {
        return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
    }
    static std::string event(const std::string& json) { return chunk("data: " + json + "\n\n"); }

    std::optional<net::ConnectFailure> refuse;  ///< every connection, while set
    std::set<std::uint16_t> refused_ports;
    std::vector<Arrived> arrived;
    int most_in_flight = 0;
    std::vector<net::ConnectionId> closed_by_part;
    std::size_t open() const { return open_.size(); }
    base::Instant now() const { return now_; }

private:
    struct Pending {
        std::function<bool(const TestHost&)> alive;
        std::function<void(net::Part&, net::Actions&)> deliver;
    };

    template <class F>
    void later(net::ConnectionId id, base::Duration after, F deliver) {
        const base::Instant at = now_ + after;
        queue_.emplace(at, Pending{[id](const TestHost& host) { return host.open_.contains(id); },
                                   [deliver, at](net::Part& part, net::Actions& out) {
                                       deliver(part, at, out);
                                   }});
    }
    void act(const net::Actions& actions) {
        for (const net::Action& action : actions)
            std::visit([this](const auto& what) { take(what); }, action);
    }
    void take(const net::Connect& connect) {
        EXPECT_TRUE(used_.insert(connect.id).second) << "a connection's name is used once";
        open_.insert(connect.id);
        most_in_flight = std::max(most_in_flight, static_cast<int>(open_.size()));
        const bool no = refuse.has_value() || refused_ports.contains(connect.endpoint.port);
        const net::ConnectFailure why = refuse.value_or(net::ConnectFailure::kRefused);
        later(
            connect.id, 1ms,
            [this, id = connect.id, no, why](net::Part& part, base::Instant at, net::Actions& out) {
                if (no) open_.erase(id);
                if (no)
                    part.on({at, net::ConnectFailed{id, why, "no luck"}}, out);
                else
                    part.on({at, net::Connected{id}}, out);
            });
    }
    void take(const net::Send& send) {
        ASSERT_TRUE(open_.contains(send.id));
        later(send.id, 0ms, [id = send.id](net::Part& part, base::Instant at, net::Actions& out) {
            part.on({at, net::Sent{id}}, out);
        });
        arrived.push_back({send.id, send.bytes, static_cast<int>(open_.size())});
        script_(*this, arrived.back());
    }
    void take(const net::Close& close) {
        open_.erase(close.id);
        closed_by_part.push_back(close.id);
    }
    void take(const net::SetTimer& timer) {
        EXPECT_GE(timer.at, now_);
        const int version = ++timers_[timer.id];
        queue_.emplace(timer.at, Pending{[id = timer.id, version](const TestHost& host) {
                                             return host.timers_.at(id) == version;
                                         },
                                         [timer](net::Part& part, net::Actions& out) {
                                             part.on({timer.at, net::TimerFired{timer.id}}, out);
                                         }});
    }
    void take(const net::Flow&) {}
    void take(const net::CancelTimer& timer) { ++timers_[timer.id]; }

    Script script_;
    base::Instant now_{};
    std::multimap<base::Instant, Pending> queue_;
    std::set<net::ConnectionId> open_, used_;
    std::map<net::TimerId, int> timers_;
};

struct Trial {
    answer::Run run;
    Options options;

    explicit Trial(std::size_t prompts = 4, int repeat = 2, std::vector<int> levels = {1, 2, 4},
                   bool control = false, bool separate = false) {
        answer::Experiment& experiment = run.experiment;
        experiment.repeat = repeat;
        experiment.levels = std::move(levels);
        for (std::size_t i = 0; i < prompts; ++i) {
            answer::Prompt prompt;
            prompt.id = "p" + std::to_string(i);
            prompt.messages = {{"user", "question"}};
            experiment.prompts.push_back(prompt);
        }
        plan(experiment, control, separate);
        options.url = {.host = "127.0.0.1",
                       .port = 8080,
                       .tls = false,
                       .base_path = "",
                       .query = "",
                       .text = "http://127.0.0.1:8080"};
        options.control_url = options.url;
        if (separate) options.control_url.port = 8081;
        options.with_control = control;
        options.separate_control = separate;
        options.model = "m";
    }
    std::size_t planned() const {
        std::size_t count = 0;
        for (std::size_t step = 0; step < run.experiment.order.size(); ++step)
            count += requests_of(run.experiment, step, options.api, options.model).size();
        return count;
    }
    void probe(TestHost& host) {
        Probe part(run, options);
        host.run(part);
        EXPECT_EQ(host.open(), 0u) << "nothing stays open";
    }
    std::vector<const answer::Record*> level(int concurrency) const {
        std::vector<const answer::Record*> out;
        for (const auto& record : run.records)
            if (record.request.concurrency == concurrency) out.push_back(&record);
        return out;
    }
};

std::set<std::string> ids_of(const answer::Run& run) {
    std::set<std::string> ids;
    for (const auto& record : run.records) ids.insert(record.request.id);
    return ids;
}

TEST(Probe, EveryPlannedRequestBecomesOneRecordWithItsMomentsAndFacts) {
    Trial trial;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 5, 10ms); });
    trial.probe(host);
    EXPECT_EQ(trial.run.records.size(), trial.planned());
    EXPECT_EQ(ids_of(trial.run).size(), trial.planned());
    EXPECT_FALSE(trial.run.interrupted);
    EXPECT_THAT(trial.run.notes, testing::IsEmpty());
    for (const auto& record : trial.run.records) {
        ASSERT_TRUE(record.timeline.started && record.timeline.connected && record.timeline.sent &&
                    record.timeline.headers && record.timeline.ended)
            << record.request.id;
        EXPECT_EQ(*record.timeline.connected - *record.timeline.started, 1ms);
        EXPECT_EQ(record.elapsed(), 51ms);
        EXPECT_EQ(record.ttft(), 11ms);
        EXPECT_EQ(record.end.transport, answer::Transport::kClean);
        EXPECT_EQ(record.end.reason, "stop");
        EXPECT_EQ(record.requested_max_tokens.value->count, 512);
        EXPECT_EQ(record.deadline_fired, answer::DeadlineFired::kNone);
        EXPECT_NE(record.disconnect.by, answer::Disconnect::By::kPeer);
    }
    EXPECT_EQ(trial.run.records.front().timeline.started, 0ms) << "moments count from the start";
    EXPECT_GT(trial.run.elapsed, 0ms);
}

TEST(Probe, ExactlyTheLevelsUsersAreInFlightUntilTheTail) {
    Trial trial(8, 2, {1, 4, 8});
    int varied = 0;
    TestHost host(
        [&](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 1 + varied++ % 7, 3ms); });
    trial.probe(host);
    EXPECT_EQ(host.most_in_flight, 8);
    // Overlap of [started, ended) per step: the level itself while unsent requests are left, never
    // more.
    for (const int level : {1, 4, 8}) {
        const auto records = trial.level(level);
        std::vector<base::Duration> starts;
        for (const auto* record : records) starts.push_back(*record->timeline.started);
        for (const auto* record : records) {
            const base::Duration at = *record->timeline.started;
            const auto together = std::ranges::count_if(records, [&](const auto* other) {
                return *other->timeline.started <= at && *other->timeline.ended > at;
            });
            EXPECT_LE(together, level);
            const bool first_wave =
                std::ranges::count_if(starts, [&](auto s) { return s < at; }) < level;
            if (!first_wave && level < 8) EXPECT_EQ(together, level);
        }
    }
}

TEST(Probe, StepsNeverOverlap) {
    Trial trial(4, 2, {1, 2, 4}, true, true);
    int varied = 0;
    TestHost host(
        [&](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 1 + varied++ % 5, 3ms); });
    trial.probe(host);
    const auto& records = trial.run.records;
    for (std::size_t i = 0; i < records.size(); ++i)
        for (std::size_t j = i + 1; j < records.size(); ++j) {
            const auto &a = records[i], &b = records[j];
            if (a.request.arm == b.request.arm && a.request.concurrency == b.request.concurrency)
                continue;
            EXPECT_TRUE(*a.timeline.ended <= *b.timeline.started ||
                        *b.timeline.ended <= *a.timeline.started)
                << a.request.id << " and " << b.request.id;
        }
}

TEST(Probe, AStaggeredStartBringsUsersInOneByOne) {
    Trial trial(4, 1, {1, 4});
    trial.run.experiment.stagger = 2s;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 10, 1s); });
    trial.probe(host);
    std::vector<base::Duration> starts;
    for (const auto* record : trial.level(4)) starts.push_back(*record->timeline.started);
    std::ranges::sort(starts);
    ASSERT_EQ(starts.size(), 4u);
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(starts[i] - starts[i - 1], 2s);
}

TEST(Probe, AResponseCompleteByItsFramingEndsCleanWithoutTheServersFin) {
    Trial trial(1, 1, {1});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.answer(a.id, 3, 1ms);
    });  // keep-alive: never closes
    trial.probe(host);
    for (const auto& record : trial.run.records) {
        EXPECT_EQ(record.end.transport, answer::Transport::kClean);
        EXPECT_TRUE(record.end.terminator);
    }
    EXPECT_EQ(host.closed_by_part.size(), trial.run.records.size());
}

TEST(Probe, OurOwnDeadlineIsNamedAndOnlyInTheDeployedArm) {
    Trial trial(2, 1, {1, 2}, true, true);
    trial.run.experiment.client_deadline = 500ms;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 10, 100ms); });
    trial.probe(host);
    for (const auto& record : trial.run.records) {
        const bool deployed = record.request.arm == "deployed";
        EXPECT_EQ(record.deadline_fired,
                  deployed ? answer::DeadlineFired::kClient : answer::DeadlineFired::kNone);
        EXPECT_EQ(record.end.transport,
                  deployed ? answer::Transport::kClosedByUs : answer::Transport::kClean);
        EXPECT_EQ(record.client_deadline_ms.value, deployed ? std::optional(500.0) : std::nullopt);
        if (deployed) EXPECT_EQ(record.elapsed(), 500ms);
        if (deployed) EXPECT_EQ(record.disconnect.by, answer::Disconnect::By::kUs);
    }
}

TEST(Probe, OurOwnIdleLimitFiresOnSilenceAndNotOnASlowAnswer) {
    Trial trial(2, 1, {1, 2});
    trial.run.experiment.client_idle = 2s;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        if (a.text.find("deployed-2-") == std::string::npos)
            return h.answer(a.id, 10, 1900ms);  // slow, never silent for long
        h.bytes(a.id, 1ms,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                "chunked\r\n\r\n");
        h.bytes(a.id, 1s, TestHost::event(R"({"choices":[{"index":0,"delta":{"content":"a"}}]})"));
        h.bytes(a.id, 4s, TestHost::event(R"({"choices":[{"index":0,"delta":{"content":"b"}}]})"));
    });
    trial.probe(host);
    for (const auto& record : trial.run.records) {
        if (record.request.concurrency == 1) {
            EXPECT_EQ(record.end.transport, answer::Transport::kClean);
        } else {
            EXPECT_EQ(record.end.transport, answer::Transport::kClosedByUs);
            EXPECT_EQ(record.deadline_fired, answer::DeadlineFired::kClient);
            EXPECT_EQ(record.elapsed(), 3s);
            EXPECT_EQ(record.text, "a");
            EXPECT_THAT(record.client_deadline_ms.how, HasSubstr("silence is 2000 ms"));
        }
    }
}

TEST(Probe, AServerThatAcceptsAndNeverAnswersEndsAtTheHeadLimit) {
    Trial trial(1, 1, {1});
    trial.run.experiment.budget = 2h;
    TestHost host([](TestHost&, const TestHost::Arrived&) {});
    trial.probe(host);
    ASSERT_EQ(trial.run.records.size(), 1u) << "a single user without any answer ends the run";
    EXPECT_EQ(trial.run.records[0].end.transport, answer::Transport::kTimedOut);
    EXPECT_EQ(trial.run.records[0].elapsed(), net::kHeadTimeout);
    EXPECT_EQ(trial.run.records[0].deadline_fired, answer::DeadlineFired::kNone);
    EXPECT_THAT(
        trial.run.notes,
        testing::Contains(HasSubstr("none of the 1 requests of a single user got an answer")));
}

TEST(Probe, SilenceInsideABodyEndsAtTheSilenceLimitWithTheTextSoFar) {
    Trial trial(1, 1, {1});
    trial.run.experiment.budget = 2h;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.bytes(a.id, 1s,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                "chunked\r\n\r\n");
        h.bytes(a.id, 10min,
                TestHost::event(R"({"choices":[{"index":0,"delta":{"content":"slow"}}]})"));
    });
    trial.probe(host);
    ASSERT_EQ(trial.run.records.size(), 2u);
    EXPECT_EQ(trial.run.records[0].end.transport, answer::Transport::kTimedOut);
    EXPECT_EQ(trial.run.records[0].elapsed(), 10min + net::kSilenceTimeout);
    EXPECT_EQ(trial.run.records[0].text, "slow");
}

TEST(Probe, AnEndlessHeadIsClosedAtTheHeadSizeLimit) {
    Trial trial(1, 1, {1});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.bytes(a.id, 1ms, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 200; ++i)
            h.bytes(a.id, 2ms + i * 1ms, "X-Filler: " + std::string(1000, 'x') + "\r\n");
    });
    trial.probe(host);
    ASSERT_FALSE(trial.run.records.empty());
    EXPECT_TRUE(trial.run.records[0].end.error);
    EXPECT_LT(*trial.run.records[0].elapsed(), 100ms);
}

TEST(Probe, FinAndResetInMidStreamAreKeptApart) {
    Trial trial(2, 1, {1, 2});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.bytes(a.id, 1ms,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                "chunked\r\n\r\n");
        h.bytes(a.id, 2ms,
                TestHost::event(R"({"choices":[{"index":0,"delta":{"content":"half"}}]})"));
        h.close(a.id, 3ms,
                a.text.find("deployed-2-") == std::string::npos ? net::CloseKind::kFin
                                                                : net::CloseKind::kRst);
    });
    trial.probe(host);
    for (const auto& record : trial.run.records) {
        const bool reset = record.request.concurrency == 2;
        EXPECT_EQ(record.end.transport,
                  reset ? answer::Transport::kReset : answer::Transport::kTruncated);
        EXPECT_EQ(record.disconnect.by, answer::Disconnect::By::kPeer);
        EXPECT_EQ(record.disconnect.kind,
                  reset ? answer::Disconnect::Kind::kRst : answer::Disconnect::Kind::kFin);
        EXPECT_GT(record.disconnect.at_byte, 0);
        EXPECT_EQ(record.text, "half");
        EXPECT_FALSE(record.end.error) << "the system's words are no error of the server";
    }
}

TEST(Probe, ADeadServerIsNotHammered) {
    Trial trial(4, 2, {1, 2, 4});
    TestHost host([](TestHost&, const TestHost::Arrived&) {});
    host.refuse = net::ConnectFailure::kRefused;
    trial.probe(host);
    ASSERT_EQ(trial.run.records.size(), 8u) << "one step";
    for (const auto& record : trial.run.records) {
        EXPECT_EQ(record.end.transport, answer::Transport::kRefused);
        ASSERT_EQ(record.server_errors.size(), 1u);
        EXPECT_EQ(record.server_errors[0].code, "connection_refused");
        EXPECT_EQ(record.server_errors[0].text, "no luck");
        EXPECT_TRUE(record.timeline.ended);
    }
    EXPECT_THAT(trial.run.notes,
                testing::ElementsAre(HasSubstr(
                    "none of the 8 requests of the deployed arm at 1 at once could connect")));
}

TEST(Probe, AServerThatDiesUnderLoadKeepsItsRecordsAndStopsTheRun) {
    Trial trial(4, 2, {1, 2, 4});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        if (a.text.find("deployed-4-") == std::string::npos) return h.answer(a.id, 2, 1ms);
        h.bytes(a.id, 1ms,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                "chunked\r\n\r\n");
        h.close(a.id, 2ms, net::CloseKind::kRst);
        h.refuse = net::ConnectFailure::kRefused;
    });
    trial.probe(host);
    EXPECT_EQ(trial.level(4).size(), 8u) << "4 reset, 4 refused: none lost";
    EXPECT_THAT(trial.run.notes, testing::Contains(HasSubstr("could connect")));
}

TEST(Probe, AServerThatRefusesEveryRequestAloneIsAskedForOneStepOnly) {
    Trial trial(4, 2, {1, 2, 4});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.bytes(a.id, 1ms,
                "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: "
                "39\r\n\r\n{\"error\":{\"message\":\"Invalid API Key\"}}\n");
    });
    trial.probe(host);
    EXPECT_EQ(trial.run.records.size(), 8u);
    EXPECT_EQ(trial.run.records[0].status, 401);
    EXPECT_THAT(trial.run.notes, testing::ElementsAre(HasSubstr("of a single user got an answer")));
}

TEST(Probe, ADeadControlServerEndsOnlyItsArm) {
    Trial trial(4, 2, {1, 2, 4}, true, true);
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 2, 1ms); });
    host.refused_ports.insert(8081);
    trial.probe(host);
    std::map<std::string, int> by_arm;
    for (const auto& record : trial.run.records) ++by_arm[record.request.arm];
    EXPECT_EQ(by_arm["control"], 8);
    EXPECT_EQ(by_arm["deployed"], 8 * 4);
    EXPECT_THAT(trial.run.notes, testing::ElementsAre(HasSubstr("control arm was left out")));
}

TEST(Probe, AnInterruptionKeepsWhatThereIsAndClosesTheRest) {
    Trial trial(4, 2, {1, 4});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        if (a.text.find("deployed-4-") != std::string::npos && h.arrived.size() == 12)
            h.interrupt(50ms);
        h.answer(a.id, 100, 10ms);
    });
    trial.probe(host);
    EXPECT_TRUE(trial.run.interrupted);
    ASSERT_EQ(trial.run.records.size(), 12u);
    int closed = 0;
    for (const auto& record : trial.run.records) {
        if (record.end.transport != answer::Transport::kClosedByUs) continue;
        ++closed;
        EXPECT_EQ(record.disconnect.by, answer::Disconnect::By::kUs);
        EXPECT_EQ(record.deadline_fired, answer::DeadlineFired::kNone);
        EXPECT_FALSE(record.text.empty());
    }
    EXPECT_EQ(closed, 4);
}

TEST(Probe, AnInterruptionWhileConnectingLosesNoRecord) {
    Trial trial(1, 1, {1});
    Probe part(trial.run, trial.options);
    net::Actions actions;
    part.start(base::Instant(1s), actions);
    part.on({base::Instant(2s), net::Interrupted{}}, actions);
    EXPECT_TRUE(part.done());
    ASSERT_EQ(trial.run.records.size(), 1u);
    EXPECT_EQ(trial.run.records[0].end.transport, answer::Transport::kClosedByUs);
    EXPECT_EQ(trial.run.elapsed, 1s);
}

answer::Batch batch_of(int concurrency, int repeats) {
    return {.concurrency = concurrency, .repeats = repeats, .with_alone = true, .why = "I said so"};
}

TEST(Probe, BatchesBeyondThePlanAreRunAsLongAsSomethingWouldDecideMore) {
    Trial trial(4, 2, {1, 2, 4});
    const std::size_t planned = trial.planned();
    std::vector<std::size_t> asked;
    trial.options.next_batch = [&](const answer::Run& run) -> std::optional<answer::Batch> {
        asked.push_back(run.records.size());
        if (asked.size() > 1) return std::nullopt;
        return batch_of(3, 3);
    };
    bool saw_extension = false;
    trial.options.progress = [&](const Progress& progress) {
        saw_extension = saw_extension || progress.extension;
    };
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 2, 1ms); });
    trial.probe(host);
    EXPECT_THAT(asked, testing::ElementsAre(planned, planned + 2 * 4 * 3));
    EXPECT_EQ(ids_of(trial.run).size(), trial.run.records.size());
    EXPECT_TRUE(saw_extension);
    EXPECT_THAT(
        trial.run.notes,
        testing::ElementsAre(
            "Beyond the plan: 12 answers at 3 users and as many alone, because I said so."));
}

TEST(Probe, ABatchThatTheBudgetCannotHoldIsNotBegunAndSaid) {
    Trial trial(4, 1, {1, 2});
    trial.run.experiment.budget = 60s;
    trial.options.next_batch = [](const answer::Run&) { return batch_of(2, 100); };
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.answer(a.id, 10, 100ms);
    });  // 1 s an answer, 10 s the plan
    trial.probe(host);
    EXPECT_LT(trial.run.elapsed, 60s);
    EXPECT_THAT(trial.run.notes.back(), HasSubstr("the budget has no room for them"));
}

TEST(Probe, BatchesEndAfterAFewAndSaySo) {
    Trial trial(4, 1, {1, 2});
    trial.options.next_batch = [](const answer::Run&) { return batch_of(2, 1); };
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 2, 1ms); });
    trial.probe(host);
    EXPECT_EQ(trial.run.records.size(), 12u + 8 * 8);
    EXPECT_EQ(trial.run.notes.back(),
              "4 more answers at 2 users would decide more (I said so); give a larger --repeat.");
}

TEST(Probe, APlanTooLargeForTheBudgetIsTrimmedEvenlyAndSaid) {
    Trial trial(8, 2, {1, 2, 4, 8});
    trial.run.experiment.budget = 150s;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.answer(a.id, 20, 100ms);
    });  // 2 s an answer; baseline alone 64 s
    trial.probe(host);
    ASSERT_TRUE(trial.run.experiment.reduced);
    EXPECT_THAT(*trial.run.experiment.reduced,
                HasSubstr("planned 8 prompts x 2 seeds at 1, 2, 4, 8"));
    EXPECT_LE(trial.run.elapsed, 151s);
    for (const int level : {1, 2, 4, 8}) {
        std::set<std::string> prompts;
        for (const auto* record : trial.level(level)) prompts.insert(record->request.prompt_id);
        EXPECT_EQ(prompts.size(), 8u) << "every prompt at level " << level;
    }
    EXPECT_THAT(trial.run.notes, testing::Not(testing::Contains(HasSubstr("not finished"))));
}

TEST(Probe, AVerySlowServerStillGetsABaselineAndTheHighestLevel) {
    Trial trial(8, 2, {1, 2, 4, 8});
    trial.run.experiment.budget = 10min;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.answer(a.id, 30, 1s);
    });  // 30 s an answer whatever the load
    trial.probe(host);
    ASSERT_TRUE(trial.run.experiment.reduced);
    EXPECT_FALSE(trial.level(8).empty());
    EXPECT_FALSE(trial.level(1).empty());
    EXPECT_LE(trial.run.elapsed, 11min);
}

TEST(Probe, PromptsAreNotDroppedUntilALevelHasFewerAnswersThanUsers) {
    Trial trial(8, 2, {1, 2, 4, 8});
    trial.run.experiment.budget = 10min;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.answer(a.id, 60, 1s);
    });  // after a fifth of the budget most prompts are unseen
    trial.probe(host);
    EXPECT_TRUE(trial.level(8).empty() || trial.level(8).size() >= 8u)
        << trial.level(8).size() << " answers are not the load of 8 users";
}

TEST(Probe, AtTheBudgetsEndNothingStartsAndWhatStillRunsIsClosedAfterTheGrace) {
    Trial trial(2, 1, {1, 2});
    trial.run.experiment.budget = 30s;
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        h.bytes(a.id, 1ms,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                "chunked\r\n\r\n");
        for (int i = 0; i < 1000; ++i)
            h.bytes(a.id, 1s + i * 1s,
                    TestHost::event(R"({"choices":[{"index":0,"delta":{"content":"x"}}]})"));
    });
    trial.probe(host);
    EXPECT_EQ(trial.run.elapsed, 37500ms);
    ASSERT_EQ(trial.run.records.size(), 1u);
    EXPECT_EQ(trial.run.records[0].end.transport, answer::Transport::kClosedByUs);
    EXPECT_EQ(trial.run.records[0].deadline_fired, answer::DeadlineFired::kNone);
    EXPECT_THAT(trial.run.notes,
                testing::ElementsAre(HasSubstr("was not finished"),
                                     HasSubstr("1 answers still ran 8 s after the budget's end")));
    EXPECT_THAT(*trial.run.experiment.reduced, HasSubstr("requests were not sent"));
}

TEST(Probe, ABudgetAlreadyUsedUpSendsNothing) {
    Trial trial(2, 1, {1, 2});
    trial.options.budget_used = trial.run.experiment.budget;
    TestHost host(
        [](TestHost&, const TestHost::Arrived&) { ADD_FAILURE() << "a request was sent"; });
    trial.probe(host);
    EXPECT_THAT(trial.run.notes,
                testing::ElementsAre(HasSubstr("used up before the first request")));
}

TEST(Probe, ProgressCountsUpToThePlanAndTellsEndsApart) {
    Trial trial(4, 1, {1, 2});
    std::vector<Progress> seen;
    trial.options.progress = [&](const Progress& progress) { seen.push_back(progress); };
    TestHost host([](TestHost& h, const TestHost::Arrived& a) {
        if (a.text.find("deployed-2-") == std::string::npos)
            return h.answer(a.id, 5, 10ms, h.arrived.size() % 2 ? "stop" : "length");
        h.close(a.id, 3ms, net::CloseKind::kFin);
    });
    trial.probe(host);
    ASSERT_FALSE(seen.empty());
    for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i].done, seen[i - 1].done);
    for (const auto& progress : seen) EXPECT_LE(progress.done, progress.planned);
    for (const auto& progress : seen) EXPECT_LT(progress.step, progress.steps);
    EXPECT_EQ(seen.front().planned, 12);
    EXPECT_EQ(seen.back().done, 12);
    EXPECT_EQ(seen.back().natural, 4);
    EXPECT_EQ(seen.back().limited, 4);
    EXPECT_EQ(seen.back().cut, 4);
    EXPECT_EQ(seen.back().left, base::Duration{});
}

TEST(Probe, AnswerEndedSeesEveryRecordAndMayEmptyItsCapture) {
    Trial trial(2, 1, {1, 2});
    std::size_t captured = 0;
    trial.options.answer_ended = [&](answer::Record& record) {
        captured += record.capture.bytes.size() > 0 ? 1 : 0;
        record.capture = {};
    };
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 2, 1ms); });
    trial.probe(host);
    EXPECT_EQ(captured, trial.run.records.size());
    for (const auto& record : trial.run.records) EXPECT_TRUE(record.capture.bytes.empty());
}

TEST(Probe, RequestsCarryTheirIdAndTheUsersHeadersAndNothingOfThemIsStored) {
    Trial trial(1, 1, {1});
    trial.options.headers = {{"Authorization", "Bearer s3cret"}};
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 2, 1ms); });
    trial.probe(host);
    EXPECT_THAT(host.arrived[0].text, HasSubstr("deployed-1-before-p0-s1-r0"));
    EXPECT_THAT(host.arrived[0].text, HasSubstr("Bearer s3cret"));
    for (const auto& record : trial.run.records)
        EXPECT_EQ(record.capture.bytes.find("s3cret"), std::string::npos);
}

TEST(Probe, MoreUsersThanPairsAreKeptBusyWithTheSameSeeds) {
    Trial trial(4, 2, {1, 20});
    TestHost host([](TestHost& h, const TestHost::Arrived& a) { h.answer(a.id, 3, 10ms); });
    trial.probe(host);
    EXPECT_EQ(host.most_in_flight, 20);
    for (const auto* record : trial.level(20)) EXPECT_LE(record->request.seed, 2);
}

}  // namespace
}  // namespace fullstop::probe
