// A file's name may hold nearly anything, but one that looks like a URL is taken for a mistake and
// not for a file.
#include "cli/open_store.h"

#include <fmt/format.h>

#include "adapters/postgres/store.h"
#include "adapters/sqlite/store.h"
#include "cli/store_file.h"

namespace fullstop::cli {

base::Result<std::unique_ptr<store::Store>> open_store(const World& world, const std::string& given,
                                                       store::Access access) {
    if (adapters::postgres::is_url(given)) return adapters::postgres::Store::open(given, access);
    if (const auto scheme = given.find("://"); scheme != std::string::npos)
        return base::usage_error(
            fmt::format("'{}' is not a kind of store that fullstop knows", given.substr(0, scheme)),
            "a file's name, or postgresql://USER@HOST:PORT/DB");
    const auto file = store_file(world, given);
    if (!file) return std::unexpected(file.error());
    auto opened = adapters::sqlite::Store::open(*file, access);
    if (!opened) return std::unexpected(opened.error());
    return std::make_unique<adapters::sqlite::Store>(std::move(*opened));
}

}  // namespace fullstop::cli
