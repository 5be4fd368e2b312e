// On the relay's thread. A file takes an answer well below a millisecond, without a wait for the
// disk; a database only takes it into a queue.
#include "cli/gateway/journal.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "cli/listen_address.h"
#include "cli/open_store.h"
#include "cli/version.h"

namespace fullstop::cli {

struct Journal::State {
    const World& world;
    std::unique_ptr<store::Store> store;
    answer::Run run;
    std::int64_t seen = 0, refused = 0;
    bool away = false, refusal_said = false;

    gateway::RecordCounts counts() const {
        const store::Backlog backlog = store->backlog();
        return {.seen = seen, .waiting = backlog.waiting, .lost = refused + backlog.lost};
    }
    void say(const std::string& flags) const {
        world.err << "--store: " << flags << '\n' << std::flush;
    }
    void say(const base::Error& error, const char* consequence) const {
        say(message_of({error.kind, error.message + consequence, error.hint}));
    }
    void take(const answer::Record& record) {
        ++seen;
        const auto added = store->add_record(run.id, record);
        if (!added && refused++ == 0) say(added.error(), "; answers are missing there from now on");
    }
    void look() {
        const store::Backlog backlog = store->backlog();
        const auto& trouble = backlog.trouble;
        if (trouble && !away) say(*trouble, "; the relay goes on, and records wait");
        if (!trouble && away) say(fmt::format("{} is back", store->name()));
        away = trouble.has_value();
        if (backlog.refusal && !std::exchange(refusal_said, true))
            say(*backlog.refusal, "; such a record is left out");
    }
    void close() {
        run.elapsed = base::Duration(world.clock.wall().unix_ns - run.started.unix_ns);
        if (const auto finished = store->finish_run(run); !finished) say(finished.error(), "");
        if (const auto lost = counts().lost; lost > 0)
            say(fmt::format("{} of {} answers may have no record in {}", lost, seen,
                            store->name()));
    }
};

base::Result<Journal> Journal::open(const World& world, const std::string& given,
                                    const GatewaySettings& settings) {
    if (given.empty() || given == "none") return Journal(nullptr);
    auto store = open_store(world, given, store::Access::kWrite);
    if (!store)
        return std::unexpected(base::Error{store.error().kind, "--store: " + store.error().message,
                                           store.error().hint});
    answer::Run run;
    run.started = world.clock.wall();
    run.id = fmt::format("gateway-{:x}", run.started.unix_ns);
    run.url = fmt::format("http://{}:{}", shown_host(settings.host), settings.port);
    run.fullstop_version = kVersion;
    run.fullstop_build = kBuild;
    run.experiment.levels.clear();
    run.notes = {"the answers that went through a gateway: nothing was repeated or compared"};
    for (const auto& upstream : settings.policy.upstreams)
        run.arms.push_back(
            {.name = "gateway", .url = upstream.url.text, .how = "a server behind it"});
    if (auto begun = (*store)->begin_run(run); !begun) return std::unexpected(begun.error());
    return Journal(std::make_unique<State>(
        State{.world = world, .store = std::move(*store), .run = std::move(run)}));
}

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

std::function<void(const answer::Record&)> Journal::keeper() {
    if (!state_) return {};
    return [state = state_.get()](const answer::Record& record) { state->take(record); };
}

std::function<gateway::RecordCounts()> Journal::counts() {
    if (!state_) return {};
    return [state = state_.get()] { return state->counts(); };
}

void Journal::look() {
    if (state_) state_->look();
}

void Journal::close() {
    if (state_) state_->close();
}

}  // namespace fullstop::cli
