// RUN is a run document when a file of that name exists or it looks like one; else it is an id in
// the store.
#include "cli/probe/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <system_error>

#include "base/printable.h"
#include "cli/input_file.h"
#include "cli/open_store.h"
#include "cli/output.h"
#include "judge/verdict.h"
#include "report/json/document.h"
#include "report/json/run_json.h"
#include "report/terminal.h"
#include "report/text.h"

namespace fullstop::cli {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
    std::string run = "last", store;
    bool list = false, quiet = false;
    Documents documents;
};

bool is_document(const std::string& run) {
    std::error_code error;
    return run.ends_with(".json") || run.find('/') != std::string::npos ||
           fs::is_regular_file(run, error);
}

struct Loaded {
    report::Document document;
    std::string stored;
    bool store_is_named = false;
};

base::Result<Loaded> load(const World& world, const ReportFlags& flags) {
    if (is_document(flags.run)) {
        const auto text = read_input(flags.run, report::kMaxRunDocumentBytes, "run document",
                                     "'fullstop report --list' shows the stored runs");
        if (!text) return std::unexpected(text.error());
        auto document = report::read_run_document(*text, flags.run);
        if (!document) return std::unexpected(document.error());
        return Loaded{.document = std::move(*document), .stored = fs::absolute(flags.run).string()};
    }
    const auto store = open_store(world, flags.store, store::Access::kRead);
    if (!store) return std::unexpected(store.error());
    const auto run = (*store)->load(flags.run);
    if (!run) return std::unexpected(run.error());
    return Loaded{.document = report::make_document(*run, judge::judge(*run)),
                  .stored = (*store)->name(),
                  .store_is_named = !flags.store.empty()};
}

int list_runs(const World& world, const ReportFlags& flags) {
    const auto store = open_store(world, flags.store, store::Access::kRead);
    if (!store) return fail(world, store.error());
    const auto runs = (*store)->list();
    if (!runs) return fail(world, runs.error());
    if (runs->empty())
        world.err << "fullstop: the store " << (*store)->name() << " holds no run yet\n";
    for (const auto& run : *runs) {
        const std::string state = !run.finished     ? ", unfinished"
                                  : run.interrupted ? ", interrupted"
                                                    : "";
        world.out << base::printable(fmt::format(
                         "{}  {}  {}  {}, {}{}", run.id, report::rfc3339(run.started).substr(0, 19),
                         run.url, run.model, report::counted(run.answers, "answer"), state))
                  << '\n';
    }
    return kExitNotShortened;
}

int run_report(const World& world, const ReportFlags& flags) {
    if (auto sound = check_documents(flags.documents); !sound) return fail(world, sound.error());
    if (flags.list) return list_runs(world, flags);
    const auto loaded = load(world, flags);
    if (!loaded) return fail(world, loaded.error());
    if (auto written = write_documents(world, flags.documents, loaded->document); !written)
        return fail(world, written.error());
    if (!flags.documents.to_standard_output())
        world.out << report::to_terminal(loaded->document,
                                         {.colour = wants_colour(world, flags.quiet),
                                          .stored = loaded->stored,
                                          .store_is_named = loaded->store_is_named});
    return report::exit_code(loaded->document.judgement.verdict.value);
}

}  // namespace

Command add_report(CLI::App& root, World& world) {
    auto flags = std::make_shared<ReportFlags>();
    CLI::App* app = root.add_subcommand("report", "render a stored run or a run document again");
    app->add_option(
           "RUN", flags->run,
           "id of a stored run, the beginning of one, 'last', or a run document (a JSON file)")
        ->capture_default_str();
    declare_documents(*app, flags->documents);
    app->add_flag("--list", flags->list, "list the stored runs, newest first");
    app->add_option("--store", flags->store,
                    "where the runs are: an SQLite file, or postgresql://USER@HOST:PORT/DB; "
                    "default: the file in your state folder")
        ->type_name("STORE");
    app->add_flag("--quiet", flags->quiet, "no colour");
    app->footer(
        "Examples:\n"
        "  fullstop report                                  the last run, judged again\n"
        "  fullstop report last --markdown issue.md         the same, to paste into an issue\n"
        "  fullstop report run.json --junit results.xml     a document that probe --json wrote\n"
        "\n"
        "Exit: 0 nothing was shortened, 1 answers were shortened, 2 usage, 3 inconclusive.");
    return {.app = app, .run = [flags, &world] { return run_report(world, *flags); }};
}

}  // namespace fullstop::cli
