// One transaction an answer, on the relay's thread: without a wait for the disk it takes well below a millisecond.
#include "cli/journal.h"

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
    bool failed = false;

    void note(const base::Result<void>& done) {
        if (done || std::exchange(failed, true)) return;
        world.err << fmt::format("--store: {}; further answers may be missing there\n", done.error().message) << std::flush;
    }
};

base::Result<Journal> Journal::open(const World& world, const std::string& file, const GatewaySettings& settings) {
    if (file.empty()) return Journal(nullptr);
    auto store = open_store(world, file, store::Access::kWrite);
    if (!store) return std::unexpected(store.error());
    answer::Run run;
    run.started = world.clock.wall();
    run.id = fmt::format("gateway-{:x}", run.started.unix_ns);
    run.url = fmt::format("http://{}:{}", shown_host(settings.host), settings.port);
    run.fullstop_version = kVersion;
    run.fullstop_build = kBuild;
    run.experiment.levels.clear();
    run.notes = {"the answers that went through a gateway: nothing was repeated or compared"};
    for (const auto& upstream : settings.policy.upstreams) run.arms.push_back({.name = "gateway", .url = upstream.url.text, .how = "a server behind it"});
    if (auto begun = (*store)->begin_run(run); !begun) return std::unexpected(begun.error());
    return Journal(std::make_unique<State>(State{.world = world, .store = std::move(*store), .run = std::move(run)}));
}

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

std::function<void(const answer::Record&)> Journal::keeper() {
    if (!state_) return {};
    return [state = state_.get()](const answer::Record& record) { state->note(state->store->add_record(state->run.id, record)); };
}

void Journal::close() {
    if (!state_) return;
    state_->run.elapsed = base::Duration(state_->world.clock.wall().unix_ns - state_->run.started.unix_ns);
    state_->note(state_->store->finish_run(state_->run));
}

}  // namespace fullstop::cli
