// Declares every command with CLI11, parses once, runs the chosen one. A mistyped word gets the
// nearest known one.
#include "cli/application.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "cli/explain/explain.h"
#include "cli/gateway/gateway.h"
#include "cli/nearest_word.h"
#include "cli/probe/probe.h"
#include "cli/probe/report.h"
#include "cli/serve/serve.h"
#include "cli/simulate/simulate.h"
#include "cli/version.h"
#include "report/text.h"

namespace fullstop::cli {
namespace {

/// Where --help begins its descriptions, and the narrowest that they become.
constexpr std::size_t kHelpColumn = 30, kNarrowest = 40;

/// Descriptions are wrapped, and options that exclude each other say so there.
class HelpFormatter final : public CLI::Formatter {
public:
    explicit HelpFormatter(const World& world)
        : width_(std::max<std::size_t>(static_cast<std::size_t>(std::max(world.columns, 0)),
                                       kHelpColumn + kNarrowest) -
                 kHelpColumn) {}

    std::string make_option_opts(const CLI::Option* option) const override {
        const std::string text = CLI::Formatter::make_option_opts(option);
        return text.substr(0, text.find(" Excludes: "));
    }
    std::string make_option_desc(const CLI::Option* option) const override {
        std::string text = report::wrap(option->get_description(), width_, "", "");
        while (text.ends_with('\n')) text.pop_back();
        return text;
    }

private:
    std::size_t width_;
};

/// What CLI11 could not place, with the nearest word it would have taken.
int usage(const World& world, const CLI::App& root, const std::vector<std::string>& arguments,
          const CLI::ParseError& error) {
    const CLI::App* chosen = &root;
    std::vector<std::string> known;
    for (const CLI::App* command : root.get_subcommands({})) {
        known.push_back(command->get_name());
        if (!arguments.empty() && command->get_name() == arguments.front()) chosen = command;
    }
    std::string suspect;
    if (chosen == &root && !arguments.empty()) suspect = arguments.front();
    if (chosen != &root) {
        known.clear();
        for (const CLI::Option* option : chosen->get_options())
            for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
        for (const std::string& word : arguments)
            if (word.starts_with("--") &&
                std::ranges::find(known, word.substr(0, word.find('='))) == known.end())
                suspect = word.substr(0, word.find('='));
    }
    const std::string near = suspect.empty() ? "" : nearest_word(suspect, known);
    const std::string help =
        chosen == &root ? "fullstop --help" : fmt::format("fullstop {} --help", chosen->get_name());
    const std::string message = suspect.empty() ? std::string(error.what())
                                                : fmt::format("'{}' is not known here", suspect);
    return fail(world, {base::ErrorKind::kUsage, message,
                        near.empty() ? "see " + help
                                     : fmt::format("did you mean '{}'? See {}", near, help)});
}

}  // namespace

int run(World& world, std::vector<std::string> arguments) {
    CLI::App root(
        "Finds out why answers of a local LLM get shorter when several people use it at once, and "
        "proves it.",
        "fullstop");
    root.set_version_flag("--version", fmt::format("fullstop {} ({})", kVersion, kBuild));
    root.formatter(std::make_shared<HelpFormatter>(world));
    root.require_subcommand(1);
    root.footer(
        "Examples:\n"
        "  fullstop probe                          probe the embedded server: what a verdict looks "
        "like\n"
        "  fullstop probe http://127.0.0.1:8080    probe your own server\n"
        "\nEvery command has --help with examples.");
    const std::vector<Command> commands = {add_probe(root, world),   add_report(root, world),
                                           add_explain(root, world), add_serve(root, world),
                                           add_gateway(root, world), add_simulate(root, world)};
    const std::vector<std::string> original = arguments;
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    try {
        root.parse(arguments);
    } catch (const CLI::CallForHelp&) {
        const auto chosen = root.get_subcommands();
        const std::string help = chosen.empty() ? root.help() : chosen.front()->help("fullstop");
        world.out << help << (help.ends_with('\n') ? "" : "\n");
        return kExitNotShortened;
    } catch (const CLI::CallForVersion& version) {
        world.out << version.what() << '\n';
        return kExitNotShortened;
    } catch (const CLI::ParseError& error) {
        if (original.empty()) {
            world.err << root.help();
            return kExitUsage;
        }
        return usage(world, root, original, error);
    }
    for (const Command& command : commands)
        if (command.app->parsed()) return command.run();
    return kExitInternal;
}

}  // namespace fullstop::cli
