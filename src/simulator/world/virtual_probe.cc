// Wires the parts as a command would, with a virtual world in place of sockets and clocks.
#include "simulator/world/virtual_probe.h"

#include <utility>

#include "base/assert.h"
#include "observe/observer.h"
#include "probe/probe.h"
#include "probe/schedule.h"
#include "simulator/server/scripted_server.h"

namespace fullstop::simulator {
namespace {

constexpr const char* kDeployedUrl = "http://deployed:8080";
constexpr const char* kControlUrl = "http://control:8080";
constexpr base::Duration kSampleInterval = std::chrono::seconds(1);

wire::ServerUrl parsed(const char* url) {
    auto parsed = wire::parse_server_url(url);
    FULLSTOP_ASSERT(parsed.has_value(), "the virtual addresses are well formed");
    return *parsed;
}

answer::ServerFacts identified(VirtualWorld& world, const wire::ServerUrl& url) {
    observe::Identity identity;
    observe::Identify identify(url, {}, identity);
    world.host(identify);
    world.run_until([&] { return identify.done(); }, std::chrono::minutes(5));
    world.dismiss(identify);
    return identity.facts;
}

}  // namespace

VirtualResult run_probe(VirtualRun plan) {
    VirtualResult result;
    auto& run = result.run;
    VirtualWorld world(plan.seed);
    const auto url = parsed(kDeployedUrl),
               control_url = parsed(plan.control ? kControlUrl : kDeployedUrl);
    ScriptedServer deployed(plan.deployed.script, std::move(plan.deployed.plants));
    std::optional<ScriptedServer> control;
    world.serve(url.host, url.port, deployed);
    if (plan.control) {
        control.emplace(plan.control->script, std::move(plan.control->plants));
        world.serve(control_url.host, control_url.port, *control);
    }

    run.id = "virtual";
    run.started = world.wall();
    run.url = kDeployedUrl;
    run.api = plan.api;
    run.model = plan.deployed.script.model;
    run.experiment = std::move(plan.experiment);
    probe::plan(run.experiment, plan.with_control, plan.control.has_value());
    run.arms.push_back({"deployed", kDeployedUrl, "as users reach it"});
    if (plan.with_control)
        run.arms.push_back(
            {"control", plan.control ? kControlUrl : kDeployedUrl,
             plan.control ? "the server itself" : "the same URL, no time-outs of ours"});
    if (plan.observe) run.server_before["deployed"] = identified(world, url);
    if (plan.observe && plan.control) run.server_before["control"] = identified(world, control_url);

    probe::Options options;
    options.url = url;
    options.control_url = control_url;
    options.with_control = plan.with_control;
    options.separate_control = plan.control.has_value();
    options.api = plan.api;
    options.model = run.model;
    options.next_batch = std::move(plan.next_batch);
    probe::Probe probe(run, std::move(options));
    observe::Sampler sampler(
        url, {}, run.server_before["deployed"], "deployed", world.now(), kSampleInterval,
        [&](answer::Sample sample) { run.samples.push_back(std::move(sample)); });
    world.host(probe);
    if (plan.observe) world.host(sampler);
    result.outcome = world.run_until([&] { return probe.done(); }, plan.limit);
    world.dismiss(probe);
    world.dismiss(sampler);
    if (plan.observe) run.server_after["deployed"] = identified(world, url);
    if (plan.observe && plan.control) run.server_after["control"] = identified(world, control_url);
    result.events = world.events();
    return result;
}

}  // namespace fullstop::simulator
