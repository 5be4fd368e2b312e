// A file's name may hold nearly anything, but one that looks like a URL is taken for a mistake and not for a file.
#include "cli/open_store.h"

#include <fmt/format.h>

#include "adapters/sqlite/store.h"
#include "cli/store_file.h"

namespace fullstop::cli {

base::Result<std::unique_ptr<store::Store>> open_store(const World& world, const std::string& given, store::Access access) {
    if (const auto scheme = given.find("://"); scheme != std::string::npos)
        return base::usage_error(fmt::format("'{}' is no kind of store", given.substr(0, scheme)), "a file's name");
    const auto file = store_file(world, given);
    if (!file) return std::unexpected(file.error());
    auto opened = adapters::sqlite::Store::open(*file, access);
    if (!opened) return std::unexpected(opened.error());
    return std::make_unique<adapters::sqlite::Store>(std::move(*opened));
}

}  // namespace fullstop::cli
