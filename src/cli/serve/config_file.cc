// toml++ reads the file and knows its lines; CLI11 converts each value as if it stood behind its
// flag.
#include "cli/serve/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <vector>

#include "cli/nearest_word.h"

namespace fullstop::cli {
namespace {

constexpr const char* kConfig = "config";

std::unexpected<base::Error> wrong(const std::string& file, const toml::source_region& where,
                                   const std::string& message, std::string hint) {
    return base::usage_error(fmt::format("{}:{}: {}", file, where.begin.line, message),
                             std::move(hint));
}

/// A value as it would be written behind its flag.
std::optional<std::string> word_of(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
    if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    return std::nullopt;
}

std::optional<std::vector<std::string>> message_of(const toml::node& node,
                                                   const CLI::Option& option) {
    const toml::array* list = node.as_array();
    if (list == nullptr) {
        const auto word = word_of(node);
        return word ? std::optional(std::vector{*word}) : std::nullopt;
    }
    if (option.get_items_expected_max() <= 1 || list->empty()) return std::nullopt;
    std::vector<std::string> flags;
    for (const toml::node& item : *list) {
        const auto word = word_of(item);
        if (!word) return std::nullopt;
        flags.push_back(*word);
    }
    return flags;
}

bool takes(const CLI::Option& option, const toml::node& node) {
    const bool is_flag = option.get_items_expected_max() == 0;
    return is_flag == node.is_boolean();
}

base::Result<void> apply(CLI::App& app, const std::string& file, const toml::key& key,
                         const toml::node& node) {
    const std::string name(key.str());
    CLI::Option* option = name == kConfig || name == "help" || name.empty()
                              ? nullptr
                              : app.get_option_no_throw("--" + name);
    if (option == nullptr) {
        std::vector<std::string> known;
        for (const CLI::Option* other : app.get_options())
            for (const std::string& word : other->get_lnames())
                if (word != kConfig && word != "help") known.push_back(word);
        const std::string near = nearest_word(name, known);
        return wrong(file, key.source(), fmt::format("'{}' is not known here", name),
                     near.empty() ? fmt::format("the keys are the flags of fullstop {} --help",
                                                app.get_name())
                                  : fmt::format("did you mean '{}'?", near));
    }
    const auto flags = takes(*option, node) ? message_of(node, *option) : std::nullopt;
    if (!flags)
        return wrong(
            file, node.source(), fmt::format("{} does not take this value", name),
            option->get_items_expected_max() == 0 ? "true or false" : option->get_description());
    if (option->count() > 0) return {};
    try {
        option->add_result(*flags);
        option->run_callback();
    } catch (const CLI::ParseError& error) {
        return wrong(file, node.source(), fmt::format("{}: {}", name, error.what()),
                     option->get_description());
    }
    return {};
}

}  // namespace

void declare_config(CLI::App& app, std::string& file) {
    app.add_option("--config", file,
                   "a TOML file with values for these flags, named as they are without the dashes; "
                   "the command line wins");
}

base::Result<void> apply_config(CLI::App& app, const std::string& file) {
    if (file.empty()) return {};
    std::error_code trouble;
    if (!std::filesystem::is_regular_file(file, trouble))
        return base::usage_error(fmt::format("--config {}: {}", file,
                                             trouble ? trouble.message() : "this is not a file"),
                                 "give a TOML file");
    try {
        const toml::table table = toml::parse_file(file);
        for (const auto& [key, node] : table)
            if (auto applied = apply(app, file, key, node); !applied) return applied;
    } catch (const toml::parse_error& error) {
        return wrong(file, error.source(), std::string(error.description()),
                     "this is not TOML; a line looks like: max-sequences = 4");
    }
    return {};
}

}  // namespace fullstop::cli
