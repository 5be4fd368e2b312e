// A regular file is written beside its target and renamed over it; the older one stays until the
// new one is whole.
#include "cli/output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>

#include "report/csv.h"
#include "report/json/document.h"
#include "report/json/run_json.h"
#include "report/junit.h"
#include "report/markdown.h"

namespace fullstop::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kStandardOutput = "-";

struct Kind {
    const char* option;
    const char* help;
    std::string Documents::* target;
    std::string (*render)(const report::Document&);
};
constexpr std::array kKinds = {
    Kind{"--json", "write the run document (JSON) to this file; - is standard output",
         &Documents::json, &report::to_json},
    Kind{"--csv", "write one line an answer as CSV", &Documents::csv, &report::to_csv},
    Kind{"--junit", "write JUnit XML, one test case a level, for CI", &Documents::junit,
         &report::to_junit},
    Kind{"--markdown", "write a report to paste into an issue", &Documents::markdown,
         &report::to_markdown},
};

std::string reason() {
    return errno == 0 ? std::string("the write failed") : std::generic_category().message(errno);
}

base::Result<void> cannot_write(const fs::path& target, const std::string& why) {
    return base::usage_error(fmt::format("cannot write {}: {}", target.string(), why),
                             "name another file, or - for standard output");
}

/// Errors of a full disk may come as late as closing.
base::Result<void> write_through(const fs::path& file, std::string_view text,
                                 const fs::path& named) {
    errno = 0;
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    if (!stream) return cannot_write(named, reason());
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    stream.close();
    if (!stream) return cannot_write(named, reason());
    return {};
}

base::Result<void> replace(const fs::path& target, std::string_view text, const World& world) {
    std::error_code error;
    const fs::path real = fs::is_symlink(target, error) ? fs::weakly_canonical(target, error)
                                                        : target;  // a link stays a link
    fs::path partial = real;
    partial += fmt::format(".{}.partial", world.clock.wall().unix_ns);
    auto written = write_through(partial, text, target);
    if (written) {
        fs::rename(partial, real, error);
        if (!error) return {};
        written = cannot_write(target, error.message());
    }
    fs::remove(partial, error);
    return written;
}

}  // namespace

bool Documents::to_standard_output() const {
    for (const Kind& kind : kKinds)
        if (this->*kind.target == kStandardOutput) return true;
    return false;
}

void declare_documents(CLI::App& app, Documents& documents) {
    for (const Kind& kind : kKinds)
        app.add_option(kind.option, documents.*kind.target, kind.help)->type_name("FILE");
}

base::Result<void> check_documents(const Documents& documents) {
    int to_output = 0;
    for (const Kind& kind : kKinds) {
        const std::string& target = documents.*kind.target;
        if (target == kStandardOutput && ++to_output > 1)
            return base::usage_error("only one document can go to standard output (-)",
                                     "give the others a file name");
        if (target.empty() || target == kStandardOutput) continue;
        std::error_code error;
        const fs::path folder =
            fs::path(target).has_parent_path() ? fs::path(target).parent_path() : fs::path(".");
        if (!fs::is_directory(folder, error))
            return base::usage_error(
                fmt::format("{}: the folder {} does not exist", kind.option, folder.string()),
                "make it first, or name another file");
        if (fs::is_directory(target, error))
            return base::usage_error(fmt::format("{}: {} is a folder", kind.option, target),
                                     "name a file in it");
    }
    return {};
}

base::Result<void> write_documents(const World& world, const Documents& documents,
                                   const report::Document& document) {
    base::Result<void> first;
    for (const Kind& kind : kKinds) {
        const std::string& target = documents.*kind.target;
        if (target.empty()) continue;
        auto written = write_document(world, target, kind.render(document));
        if (!written && first) first = std::move(written);
    }
    return first;
}

base::Result<void> write_document(const World& world, const std::string& target,
                                  std::string_view text) {
    if (target == kStandardOutput) {
        errno = 0;
        world.out.write(text.data(), static_cast<std::streamsize>(text.size()));
        if (!world.out.flush())
            return base::usage_error(fmt::format("cannot write to standard output: {}", reason()),
                                     "is its reader gone, or its disk full?");
        return {};
    }
    std::error_code error;
    if (fs::exists(target, error) && !fs::is_regular_file(target, error))
        return write_through(target, text, target);
    return replace(target, text, world);
}

}  // namespace fullstop::cli
