// A relative XDG_STATE_HOME is ignored, as the rules say.
#include "cli/store_file.h"

namespace fullstop::cli {

base::Result<std::filesystem::path> store_file(const World& world, const std::string& given) {
    namespace fs = std::filesystem;
    if (!given.empty()) return fs::path(given);
    if (const auto state = world.env("XDG_STATE_HOME"); state && fs::path(*state).is_absolute())
        return fs::path(*state) / "fullstop" / "runs.sqlite";
    if (const auto home = world.env("HOME"); home && !home->empty())
        return fs::path(*home) / ".local" / "state" / "fullstop" / "runs.sqlite";
    return base::usage_error(
        "neither HOME nor XDG_STATE_HOME is set, so there is no place for runs",
        "name a file with --store FILE, or use --store none");
}

}  // namespace fullstop::cli
