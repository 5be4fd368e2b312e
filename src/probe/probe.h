// The closed loop: `concurrency` users, each sending the next request when its last answer has
// ended, step after step. A sans-IO part: the host (adapters/asio or simulator) brings connections
// and time, cli or a test looks on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "answer/run.h"
#include "net/event.h"
#include "wire/http/request_text.h"

namespace fullstop::probe {

struct ClosedLoop;

struct Progress {
    std::string arm, phase;
    int concurrency = 1;
    std::size_t step = 0, steps = 0;
    int done = 0, planned = 0;              ///< answers of the whole experiment
    int natural = 0, limited = 0, cut = 0;  ///< by their end facts alone; the verdict is judge's
    base::Duration elapsed{}, left{};       ///< `left` is an estimate from what ran so far
    bool extension = false;
};

struct Options {
    wire::ServerUrl url;
    wire::ServerUrl control_url;  ///< equal to `url` when there is no separate one
    bool with_control = true;
    bool separate_control = false;
    wire::Headers headers;  ///< authorization and the user's own; never stored
    answer::Api api = answer::Api::kOpenAiChat;
    std::string model;
    /// Asked when the plan is done, and after each batch: which answers would decide more? Wired to
    /// judge by the host.
    std::function<std::optional<answer::Batch>(const answer::Run&)> next_batch;
    /// Called as each answer ends, before it joins run.records: store it, then empty its capture.
    std::function<void(answer::Record&)> answer_ended;
    std::function<void(const Progress&)> progress;
    base::Duration budget_used{};  ///< time already spent (model load, observing)
};

/// Writes records, order extensions, elapsed and notes into `run`, which must outlive it.
/// run.experiment.order must be planned. Moments are relative to the instant given to start(),
/// `elapsed` too. After Interrupted it closes what is in flight (records end closed_by_us), and is
/// done.
///
/// Limits of its own (probe/limits.h): a plan that turns out not to fit the budget is trimmed
/// evenly and says so in experiment.reduced; at the budget's end no request starts any more, and
/// what still runs after a grace is closed by us (transport closed_by_us, deadline_fired
/// none) with a note. A step in which no connection came about, or a single-user baseline without
/// any answer, ends the run with a note: a dead server is not hammered. Nothing is retried. The
/// control arm has none of our own time-outs.
class Probe final : public net::Part {
public:
    Probe(answer::Run& run, Options options);
    ~Probe() override;
    void start(base::Instant now, net::Actions& out) override;
    void on(const net::Event& event, net::Actions& out) override;
    bool done() const override;

private:
    std::unique_ptr<ClosedLoop> loop_;
};

}  // namespace fullstop::probe
