// One transaction a batch. When a connection dies while a transaction ends, nobody knows whether it
// was done; the number of the run's rows tells, since nobody else writes them.
#include "adapters/postgres/outbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/postgres/connection.h"
#include "adapters/postgres/schema.h"
#include "adapters/postgres/trouble.h"
#include "store/run_tables.h"

namespace fullstop::adapters::postgres {
namespace {

struct Item {
    std::string run;
    std::variant<answer::Record, answer::Sample> what;
    std::size_t bytes = 0;
};
using Batch = std::vector<Item>;

std::size_t size_of(const answer::Sample& sample) {
    return sizeof sample + sample.counters.size() * 64;
}
std::size_t size_of(const answer::Record& record) {
    std::size_t bytes = sizeof record + record.text.size() + record.reasoning.size() +
                        record.tool_calls.size() + record.capture.bytes.size() +
                        record.timeline.gaps.size() * sizeof(base::Duration) +
                        record.capture.arrivals.size() * sizeof(answer::Capture::Arrival);
    for (const auto& message : record.request.messages) bytes += message.content.size();
    for (const auto& [name, value] : record.headers) bytes += name.size() + value.size() + 64;
    return bytes;
}

}  // namespace

struct Outbox::State {
    State(Target to, OutboxLimits bounds)
        : target(std::move(to)), limits(bounds), thread([this] { work(); }) {}
    ~State() {
        {
            const std::lock_guard held(lock);
            ending = true;
        }
        changed.notify_all();
        thread.join();
    }

    void work();
    Batch take();
    void write(std::span<const Item> rest);
    void write_at_once(std::span<const Item> items);
    bool was_written(std::span<const Item> items);
    void settle(std::span<const Item> items, const base::Error* refused);
    void pause(const base::Error& why);

    const Target target;
    const OutboxLimits limits;

    mutable std::mutex lock;  ///< of everything down to `ending`
    std::condition_variable changed;
    std::deque<Item> queue;
    std::size_t bytes = 0;    ///< of what waits, the batch under way included
    std::size_t writing = 0;  ///< items of that batch
    std::int64_t lost = 0;
    std::optional<base::Error> last_loss;
    std::optional<base::Error> trouble;
    bool hurry = false;  ///< somebody waits: no long pauses
    std::map<std::string, store::RowCounts, std::less<>> written;
    std::atomic<bool> ending = false;

    // Of the worker alone
    std::unique_ptr<Connection> connection;
    bool in_doubt = false;  ///< the batch's transaction may have been done
    base::Duration next_pause = kFirstPause;

    std::thread thread;  ///< last: it uses the others
};

Outbox::Outbox(Target target, OutboxLimits limits)
    : state_(std::make_unique<State>(std::move(target), limits)) {}
Outbox::~Outbox() = default;

void Outbox::expect_run(const std::string& run) {
    const std::lock_guard held(state_->lock);
    state_->written[run] = {};
}

base::Result<void> Outbox::put(std::string_view run,
                               std::variant<answer::Record, answer::Sample> what) {
    State& state = *state_;
    const std::size_t size = std::visit([](const auto& item) { return size_of(item); }, what);
    {
        const std::lock_guard held(state.lock);
        if (!state.written.contains(run))
            return base::usage_error(fmt::format("the run '{}' was not begun in this store", run));
        if (state.bytes + size > state.limits.waiting_bytes)
            return base::usage_error(
                fmt::format("the store {} takes nothing at the moment, and no more than {} bytes "
                            "may wait{}",
                            state.target.name, state.limits.waiting_bytes,
                            state.trouble ? ": " + state.trouble->message : ""),
                state.trouble ? state.trouble->hint : "");
        state.bytes += size;
        state.queue.push_back({.run = std::string(run), .what = std::move(what), .bytes = size});
    }
    state.changed.notify_all();
    return {};
}

store::Backlog Outbox::backlog() const {
    const std::lock_guard held(state_->lock);
    return {.waiting = static_cast<std::int64_t>(state_->queue.size() + state_->writing),
            .lost = state_->lost,
            .refusal = state_->last_loss,
            .trouble = state_->trouble};
}

base::Result<void> Outbox::flush() {
    State& state = *state_;
    std::unique_lock held(state.lock);
    state.hurry = true;
    state.changed.notify_all();
    state.changed.wait_for(held, state.limits.flush,
                           [&] { return state.queue.empty() && state.writing == 0; });
    state.hurry = false;
    const std::size_t waiting = state.queue.size() + state.writing;
    const std::int64_t missing = std::exchange(state.lost, 0) + static_cast<std::int64_t>(waiting);
    if (missing == 0) return {};
    base::Error why =
        state.trouble ? *state.trouble
                      : state.last_loss.value_or(base::Error{
                            base::ErrorKind::kUsage, "the database did not take them in time", ""});
    why.message = fmt::format("{} records and readings may be missing in the store {}: {}", missing,
                              state.target.name, why.message);
    state.lost = missing;
    for (const Item& item : state.queue) state.bytes -= item.bytes;
    state.queue.clear();
    return std::unexpected(std::move(why));
}

// The worker
// -------------------------------------------------------------------------------------------------

void Outbox::State::work() {
    while (!ending) write(take());
}

/// Waits for the next ones, all of one run; none when the program ends.
Batch Outbox::State::take() {
    std::unique_lock held(lock);
    changed.wait(held, [&] { return ending || !queue.empty(); });
    Batch batch;
    std::size_t size = 0;
    const auto fits = [&](const Item& next) {
        return batch.empty() ||
               (batch.size() < kMaxBatchItems && size + next.bytes <= kMaxBatchBytes &&
                next.run == batch.front().run);
    };
    while (!ending && !queue.empty() && fits(queue.front())) {
        size += queue.front().bytes;
        batch.push_back(std::move(queue.front()));
        queue.pop_front();
    }
    writing = batch.size();
    return batch;
}

/// Until each is written, or refused for what it is, or the program ends.
void Outbox::State::write(std::span<const Item> rest) {
    std::size_t at_once = rest.size();
    in_doubt = false;
    while (!ending && !rest.empty()) {
        const auto items = rest.first(std::min(at_once, rest.size()));
        const bool kept = connection && connection->usable();  // it may have died since it was used
        try {
            write_at_once(items);
            settle(items, nullptr);
            rest = rest.subspan(items.size());
        } catch (const Failure& failure) {
            const base::Error why = explain(failure, target, "storing answers");
            if (failure.lost && kept) {
                connection.reset();
            } else if (!is_the_records_fault(failure)) {
                pause(why);
            } else if (items.size() > 1) {
                at_once = 1;  // which of them?
            } else {
                settle(items, &why);
                rest = rest.subspan(1);
            }
        }
    }
}

void Outbox::State::write_at_once(std::span<const Item> items) {
    if (!connection || !connection->usable()) {
        connection = std::make_unique<Connection>(target, ending);
        use_schema(*connection);
    }
    if (in_doubt && was_written(items)) return;
    in_doubt = false;
    connection->run("BEGIN");
    try {
        for (const Item& item : items) {
            if (const auto* record = std::get_if<answer::Record>(&item.what))
                store::insert_record(*connection, item.run, *record);
            else
                store::insert_sample(*connection, item.run, std::get<answer::Sample>(item.what));
        }
    } catch (const Failure& failure) {
        if (!failure.lost) connection->run("ROLLBACK");
        throw;
    }
    in_doubt = true;
    connection->run("COMMIT");
}

bool Outbox::State::was_written(std::span<const Item> items) {
    const store::RowCounts now = store::count_rows(*connection, items.front().run);
    const std::lock_guard held(lock);
    const store::RowCounts& before = written[items.front().run];
    return now.records + now.samples > before.records + before.samples;
}

/// They are written, or refused.
void Outbox::State::settle(std::span<const Item> items, const base::Error* refused) {
    {
        const std::lock_guard held(lock);
        for (const Item& item : items) {
            bytes -= item.bytes;
            if (refused != nullptr) continue;
            store::RowCounts& counts = written[item.run];
            ++(std::holds_alternative<answer::Record>(item.what) ? counts.records : counts.samples);
        }
        if (refused != nullptr)
            lost += static_cast<std::int64_t>(items.size()), last_loss = *refused;
        writing -= items.size();
        trouble.reset();
    }
    in_doubt = false;
    next_pause = kFirstPause;
    changed.notify_all();
}

/// The database is away, or takes nothing. A next attempt finds it on a new connection, which may
/// lead to another host.
void Outbox::State::pause(const base::Error& why) {
    connection.reset();
    std::unique_lock held(lock);
    trouble = why;
    if (hurry)
        changed.wait_for(held, kFirstPause, [&] { return ending.load(); });
    else
        changed.wait_for(held, next_pause, [&] { return ending || hurry; });
    next_pause = std::min(2 * next_pause, kLongestPause);
}

}  // namespace fullstop::adapters::postgres
