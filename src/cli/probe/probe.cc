// Wires the main job: options -> server (given or embedded) -> who is it -> schedule -> probe
// beside observers -> store -> judge -> report. Each stage is a function below; none of them
// decides what the parts decide.
#include "cli/probe/probe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <fstream>
#include <memory>
#include <ostream>
#include <tuple>
#include <utility>

#include "adapters/asio/client/host.h"
#include "adapters/asio/loop.h"
#include "adapters/asio/memory.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "cli/input_file.h"
#include "cli/open_store.h"
#include "cli/probe/live.h"
#include "cli/probe/own_secrets.h"
#include "cli/probe/probe_options.h"
#include "cli/version.h"
#include "judge/verdict.h"
#include "observe/observer.h"
#include "observe/server_log.h"
#include "probe/probe.h"
#include "probe/schedule.h"
#include "report/json/document.h"
#include "report/terminal.h"
#include "running/embedded_server.h"
#include "wire/captures/capture.h"

namespace fullstop::cli {
namespace {

using adapters::asio::Host;

/// About once a second: finer than any pause worth seeing, and far below what a metrics endpoint
/// costs.
constexpr base::Duration kSampleInterval = std::chrono::seconds(1);

/// Far more than a verbose server writes in a run; the notes say when it was not all.
constexpr std::size_t kMaxLogBytes = 64 * 1024 * 1024;

/// 64 MiB are thousands of prompts of any length that a server would take.
constexpr std::size_t kMaxPromptsBytes = 64 * 1024 * 1024;

std::string utc(base::WallTime time, const char* format) {
    const std::time_t seconds = time.unix_ns / 1'000'000'000;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof text, format, &parts);
    return {text, size};
}

/// Sortable by time, and different for runs of the same second.
std::string run_id(base::WallTime now, const std::string& url) {
    return fmt::format("{}-{}", utc(now, "%Y%m%d-%H%M%S"),
                       base::sha256_hex(fmt::format("{} {}", now.unix_ns, url)).substr(0, 4));
}

bool is_on_this_machine(const wire::ServerUrl& url) {
    return url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
}

/// One probe from its checked options to its exit code. Members are in the order in which they come
/// to life.
class Session {
public:
    Session(World& world, const ProbeFlags& flags, ProbeOptions options)
        : world_(world), flags_(flags), options_(std::move(options)), live_(world, flags.quiet) {
        secrets_.learn(options_.headers);
        for (const auto& url : {options_.url, options_.control})
            if (url) secrets_.learn(*url);
    }

    int run() {
        for (auto stage :
             {&Session::check_targets, &Session::find_server, &Session::identify, &Session::plan})
            if (auto result = (this->*stage)(); !result) return fail(world_, result.error());
        if (flags_.dry_run) return print_schedule();
        if (auto result = open_run(); !result) return fail(world_, result.error());
        if (auto result = measure(); !result) return fail(world_, result.error());
        return conclude();
    }

private:
    base::Result<void> check_targets();
    base::Result<void> find_server();
    base::Result<void> identify();
    base::Result<observe::Identity> ask(const wire::ServerUrl& url, const char* what);
    base::Result<std::string> choose_model(const observe::Identity& identity) const;
    base::Result<void> plan();
    int print_schedule();
    base::Result<void> open_run();
    base::Result<void> measure();
    void keep(answer::Record& record);
    void keep(answer::Sample sample);
    void read_server_log();
    void warn_once(const base::Error& error);
    int conclude();

    base::Result<std::unique_ptr<Host>> host() {
        adapters::asio::HostOptions options;
        options.verify_tls = !flags_.insecure;
        return Host::create(loop_, options);
    }
    bool has_control() const { return !flags_.no_control; }

    World& world_;
    const ProbeFlags& flags_;
    ProbeOptions options_;
    Live live_;
    OwnSecrets secrets_;
    adapters::asio::Loop loop_;
    std::unique_ptr<store::Store> store_;  ///< none: nothing is kept
    std::unique_ptr<running::EmbeddedServer> embedded_;
    observe::Identity identity_;
    answer::Run run_;
    base::Instant started_{};
    std::streamoff log_begin_ = 0;  ///< end of --log-file before the first request
    bool warned_ = false;
    bool waits_ = false;  ///< it was said that the store is away
};

/// Everything that would fail after ten minutes of measuring is tried before the first request.
base::Result<void> Session::check_targets() {
    if (auto documents = check_documents(flags_.documents); !documents) return documents;
    if (!flags_.captures.empty()) {
        std::error_code error;
        std::filesystem::create_directories(flags_.captures, error);
        if (error)
            return base::usage_error(fmt::format("--captures: {} cannot be created: {}",
                                                 flags_.captures, error.message()));
    }
    if (!flags_.log_file.empty()) {
        std::ifstream log(flags_.log_file, std::ios::binary | std::ios::ate);
        if (!log)
            return base::usage_error(fmt::format("--log-file: {} cannot be read", flags_.log_file));
        log_begin_ = log.tellg();
    }
    if (flags_.store == "none" || flags_.dry_run) return {};
    auto opened = open_store(world_, flags_.store, store::Access::kWrite);
    if (opened) {
        store_ = std::move(*opened);
        return {};
    }
    const base::Error& error = opened.error();
    if (!flags_.store.empty())
        return std::unexpected(
            base::Error{error.kind, "--store: " + error.message,
                        error.hint.empty() ? "--store none keeps nothing" : error.hint});
    live_.say(fmt::format("this run is not stored: {}", error.message));
    return {};
}

base::Result<void> Session::find_server() {
    if (options_.url) return {};
    live_.say("starting the embedded server with its small model");
    auto server = running::EmbeddedServer::start(
        world_.executable, {.max_sequences = options_.experiment.levels.back(),
                            .max_tokens = options_.experiment.max_tokens});
    if (!server) return std::unexpected(server.error());
    embedded_ = std::move(*server);
    auto url = wire::parse_server_url(embedded_->url());
    if (!url) return std::unexpected(url.error());
    options_.url = *url;
    return {};
}

base::Result<observe::Identity> Session::ask(const wire::ServerUrl& url, const char* what) {
    auto asker = host();
    if (!asker) return std::unexpected(asker.error());
    observe::Identity identity;
    observe::Identify part(url, options_.headers, identity);
    (*asker)->add(part);
    (*asker)->run_until_done();
    secrets_.hide(identity);
    if (!identity.reachable)
        return base::unreachable_error(fmt::format("{} {}: {}", what, url.text, identity.trouble),
                                       identity.hint);
    return identity;
}

base::Result<std::string> Session::choose_model(const observe::Identity& identity) const {
    if (flags_.model.empty())
        return identity.models.empty() ? identity.facts.model : identity.models.front();
    if (identity.models.empty() ||
        std::ranges::find(identity.models, flags_.model) != identity.models.end())
        return flags_.model;
    return base::unreachable_error(
        fmt::format("{} has no model '{}'", options_.url->text, flags_.model),
        fmt::format("it lists: {}", fmt::join(identity.models, ", ")));
}

base::Result<void> Session::identify() {
    auto identity = ask(*options_.url, "server");
    if (!identity) return std::unexpected(identity.error());
    identity_ = std::move(*identity);
    auto model = choose_model(identity_);
    if (!model) return std::unexpected(model.error());
    run_.model = *model;
    run_.api = options_.api.value_or(identity_.api);
    run_.url = options_.url->text;
    run_.server_before["deployed"] = identity_.facts;
    run_.arms.push_back(
        {"deployed", run_.url, embedded_ ? "the embedded server" : "the path users take"});
    if (options_.control) {
        auto control = ask(*options_.control, "control server");
        if (!control) return std::unexpected(control.error());
        run_.server_before["control"] = control->facts;
        run_.arms.push_back({"control", options_.control->text,
                             "straight to the server, without time-outs of ours"});
    } else if (has_control()) {
        run_.server_before["control"] = identity_.facts;
        run_.arms.push_back(
            {"control", run_.url,
             "the same URL without time-outs of ours; what a gateway does cannot be separated"});
    }
    live_.say(fmt::format(
        "{} at {}, model {}",
        identity_.facts.name == "unknown" ? "a server" : base::printable(identity_.facts.name),
        run_.url, run_.model.empty() ? "(unnamed)" : base::printable(run_.model)));
    return {};
}

base::Result<void> Session::plan() {
    probe::plan(options_.experiment, has_control(), options_.control.has_value());
    run_.experiment = options_.experiment;
    return {};
}

int Session::print_schedule() {
    world_.out << base::printable_lines(probe::describe(run_.experiment)) << '\n';
    return kExitNotShortened;
}

base::Result<void> Session::open_run() {
    run_.started = world_.clock.wall();
    run_.id = run_id(run_.started, run_.url);
    run_.fullstop_version = kVersion;
    run_.fullstop_build = kBuild;
    if (store_)
        if (auto begun = store_->begin_run(run_); !begun) return std::unexpected(begun.error());
    return {};
}

base::Result<void> Session::measure() {
    auto prober = host();
    if (!prober) return std::unexpected(prober.error());
    judge::Aims aims;
    aims.find_first = !flags_.quick;
    probe::Probe part(
        run_,
        {.url = *options_.url,
         .control_url = options_.control.value_or(*options_.url),
         .with_control = has_control(),
         .separate_control = options_.control.has_value(),
         .headers = options_.headers,
         .api = run_.api,
         .model = run_.model,
         .next_batch = [aims](const answer::Run& run) { return judge::next_batch(run, aims); },
         .answer_ended = [this](answer::Record& record) { keep(record); },
         .progress = [this](const probe::Progress& progress) { live_.show(progress); },
         .budget_used = {}});
    started_ = world_.clock.now();
    std::vector<std::unique_ptr<observe::Sampler>> samplers;
    (*prober)->add(part);
    if (!flags_.no_observe) {
        wire::ServerUrl metrics = *options_.url;
        if (!flags_.metrics_url.empty()) {
            auto parsed = wire::parse_server_url(flags_.metrics_url);
            if (!parsed) return std::unexpected(parsed.error());
            metrics = *parsed;
        }
        const auto add = [&](const wire::ServerUrl& url, const std::string& arm) {
            samplers.push_back(std::make_unique<observe::Sampler>(
                url, options_.headers, run_.server_before[arm], arm, started_, kSampleInterval,
                [this](answer::Sample sample) { keep(std::move(sample)); }));
            (*prober)->add(*samplers.back(), Host::Wait::kCompanion);
        };
        add(metrics, "deployed");
        if (options_.control) add(*options_.control, "control");
    }
    (*prober)->run_until_done();
    live_.finish();
    read_server_log();
    if (!run_.interrupted)
        if (auto after = ask(*options_.url, "server")) run_.server_after["deployed"] = after->facts;
    return {};
}

/// What was written to the log since the probe began joins the notes.
void Session::read_server_log() {
    if (flags_.log_file.empty()) return;
    std::ifstream log(flags_.log_file, std::ios::binary);
    std::string text(kMaxLogBytes, '\0');
    log.seekg(log_begin_);
    log.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(log.gcount(), 0)));
    for (const observe::LogSign& sign : observe::read_log(text))
        run_.notes.push_back(observe::describe(sign));
    if (text.size() == kMaxLogBytes)
        run_.notes.push_back("only the first 64 MiB of the server's log were read");
}

void Session::warn_once(const base::Error& error) {
    if (!std::exchange(warned_, true)) {
        live_.say("the run goes on in memory: " + message_of(error));
        run_.notes.push_back("not everything is stored: " + error.message);
    }
}

void Session::keep(answer::Record& record) {
    secrets_.hide(record);
    if (!flags_.captures.empty()) {
        const std::string file =
            (std::filesystem::path(flags_.captures) / (record.request.id + ".jsonl")).string();
        if (auto written = write_document(world_, file, wire::write_capture(record)); !written)
            warn_once(written.error());
    }
    if (store_)
        if (auto stored = store_->add_record(run_.id, record); !stored) warn_once(stored.error());
    if (const auto trouble = store_ ? store_->backlog().trouble : std::nullopt;
        trouble && !std::exchange(waits_, true))
        live_.say(fmt::format("the run goes on, and its records wait: {}",
                              base::printable(trouble->message)));
    std::ignore = std::exchange(record.capture, {});  // assigning {} would keep the buffers
}

void Session::keep(answer::Sample sample) {
    if (is_on_this_machine(*options_.url))
        if (const auto free = adapters::asio::available_memory())
            sample.free_bytes = static_cast<double>(free->count);
    if (embedded_)
        if (const auto resident = embedded_->resident_memory())
            sample.server_bytes = static_cast<double>(resident->count);
    if (store_)
        if (auto stored = store_->add_sample(run_.id, sample); !stored) warn_once(stored.error());
    run_.samples.push_back(std::move(sample));
}

/// Nothing but refusals for reasons without load: there is nothing to judge (contract, exit 4).
bool could_not_measure(const answer::Run& run, const judge::RunJudgement& judgement,
                       std::string& reason) {
    for (const answer::Record& record : run.records) {
        const auto finding = judgement.findings.find(record.request.id);
        const bool refused = record.end.transport == answer::Transport::kRefused ||
                             (finding != judgement.findings.end() &&
                              finding->second.cause == answer::Cause::kRequestRejected);
        if (!refused) return false;
        if (reason.empty() && record.end.error) reason = record.end.error->text;
    }
    return !run.records.empty();
}

int Session::conclude() {
    if (store_)
        if (auto finished = store_->finish_run(run_); !finished) warn_once(finished.error());
    // Judged as it is stored: `report` reads the same and must say the same.
    if (store_ && !warned_) {
        if (auto stored_run = store_->load(run_.id)) {
            run_ = std::move(*stored_run);
        } else {
            warn_once(stored_run.error());
        }
    }
    auto judgement = judge::judge(run_);
    std::string reason;
    const bool measured = !could_not_measure(run_, judgement, reason);
    const int verdict_code = report::exit_code(judgement.verdict.value);
    const report::Document document = report::make_document(run_, std::move(judgement));
    const std::string stored = store_ && !warned_ ? store_->name() : "";
    if (!flags_.documents.to_standard_output()) {
        world_.out << report::to_terminal(document, {.colour = wants_colour(world_, flags_.quiet),
                                                     .stored = stored,
                                                     .store_is_named = !flags_.store.empty()});
    }
    const auto written = write_documents(world_, flags_.documents, document);
    if (!written) fail(world_, written.error());
    if (!measured)
        return fail(world_, {base::ErrorKind::kUnreachable,
                             fmt::format("every request was refused: {}", reason),
                             "this has nothing to do with load; mend it and probe again"});
    if (run_.interrupted) return kExitInterrupted;
    return written ? verdict_code : static_cast<int>(kExitInternal);
}

int run_probe(World& world, const ProbeFlags& flags) {
    std::optional<std::string> prompts;
    if (!flags.prompts.empty()) {
        auto text = read_input(flags.prompts, kMaxPromptsBytes, "file of prompts",
                               "--prompts wants JSON lines; see --help");
        if (!text) return fail(world, text.error());
        prompts = *text;
    }
    const auto secret = flags.api_key_env.empty() ? std::nullopt : world.env(flags.api_key_env);
    auto options = check_probe_options(flags, secret, prompts);
    if (!options) return fail(world, options.error());
    return Session(world, flags, std::move(*options)).run();
}

}  // namespace

Command add_probe(CLI::App& root, World& world) {
    CLI::App* app = root.add_subcommand("probe",
                                        "the controlled experiment: are answers shorter when "
                                        "several ask at once, and who cuts them?");
    auto flags = std::make_shared<ProbeFlags>();
    declare_probe_options(*app, *flags);
    return {app, [&world, flags] { return run_probe(world, *flags); }};
}

}  // namespace fullstop::cli
