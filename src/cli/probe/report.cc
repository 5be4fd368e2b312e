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

struct ReportWords {
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

base::Result<Loaded> load(const World& world, const ReportWords& words) {
    if (is_document(words.run)) {
        const auto text = read_input(words.run, report::kMaxRunDocumentBytes, "run document",
                                     "'fullstop report --list' shows the stored runs");
        if (!text) return std::unexpected(text.error());
        auto document = report::read_run_document(*text, words.run);
        if (!document) return std::unexpected(document.error());
        return Loaded{.document = std::move(*document), .stored = fs::absolute(words.run).string()};
    }
    const auto store = open_store(world, words.store, store::Access::kRead);
    if (!store) return std::unexpected(store.error());
    const auto run = (*store)->load(words.run);
    if (!run) return std::unexpected(run.error());
    return Loaded{.document = report::make_document(*run, judge::judge(*run)),
                  .stored = (*store)->name(),
                  .store_is_named = !words.store.empty()};
}

int list_runs(const World& world, const ReportWords& words) {
    const auto store = open_store(world, words.store, store::Access::kRead);
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

int run_report(const World& world, const ReportWords& words) {
    if (auto sound = check_documents(words.documents); !sound) return fail(world, sound.error());
    if (words.list) return list_runs(world, words);
    const auto loaded = load(world, words);
    if (!loaded) return fail(world, loaded.error());
    if (auto written = write_documents(world, words.documents, loaded->document); !written)
        return fail(world, written.error());
    if (!words.documents.to_standard_output())
        world.out << report::to_terminal(loaded->document,
                                         {.colour = wants_colour(world, words.quiet),
                                          .stored = loaded->stored,
                                          .store_is_named = loaded->store_is_named});
    return report::exit_code(loaded->document.judgement.verdict.value);
}

}  // namespace

Command add_report(CLI::App& root, World& world) {
    auto words = std::make_shared<ReportWords>();
    CLI::App* app = root.add_subcommand("report", "render a stored run or a run document again");
    app->add_option(
           "RUN", words->run,
           "id of a stored run, the beginning of one, 'last', or a run document (a JSON file)")
        ->capture_default_str();
    declare_documents(*app, words->documents);
    app->add_flag("--list", words->list, "list the stored runs, newest first");
    app->add_option("--store", words->store,
                    "where the runs are: an SQLite file, or postgresql://USER@HOST:PORT/DB; "
                    "default: the file in your state folder")
        ->type_name("STORE");
    app->add_flag("--quiet", words->quiet, "no colour");
    app->footer(
        "Examples:\n"
        "  fullstop report                                  the last run, judged again\n"
        "  fullstop report last --markdown issue.md         the same, to paste into an issue\n"
        "  fullstop report run.json --junit results.xml     a document that probe --json wrote\n"
        "\n"
        "Exit: 0 nothing was shortened, 1 answers were shortened, 2 usage, 3 inconclusive.");
    return {.app = app, .run = [words, &world] { return run_report(world, *words); }};
}

}  // namespace fullstop::cli
