// A table of codes; whatever is not in it is shown in SQLite's own words.
#include "adapters/sqlite/trouble.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <system_error>

namespace fullstop::adapters::sqlite {
namespace {
constexpr const char* kElsewhere =
    "name another file with --store FILE, or keep nothing with --store none";
}

base::Error explain(const SQLite::Exception& exception, const std::filesystem::path& file,
                    const char* doing, int system) {
    const std::string name = file.string();
    const std::string words =
        system != 0 ? std::generic_category().message(system) : std::string(exception.what());
    const auto error = [&](std::string message, std::string hint) {
        return base::Error{base::ErrorKind::kUsage, fmt::format("{} (while {})", message, doing),
                           std::move(hint)};
    };
    switch (exception.getErrorCode() & 0xFF) {
        case SQLITE_NOTADB:
            return error(fmt::format("{} is not a store of runs: it is no SQLite file", name),
                         kElsewhere);
        case SQLITE_CORRUPT: return damaged(file, exception.what());
        case SQLITE_CANTOPEN:
            return error(fmt::format("the store {} cannot be opened: {}", name, words), kElsewhere);
        case SQLITE_PERM:
        case SQLITE_AUTH:
        case SQLITE_READONLY:
            return error(
                fmt::format("the store {} cannot be written: the file or its folder is read-only",
                            name),
                kElsewhere);
        case SQLITE_FULL:
            return error(fmt::format("no room left for the store {}: the disk is full or the file "
                                     "has reached its limit",
                                     name),
                         "make room or delete the file, or name another one with --store FILE");
        case SQLITE_IOERR:
            return error(
                fmt::format("the store {} cannot be read or written: {}", name, words),
                "is there room left on the disk? Another file can be named with --store FILE");
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return error(fmt::format("the store {} is locked by another process", name),
                         "wait until it has ended, or name another file with --store FILE");
        default: return error(fmt::format("the store {}: {}", name, exception.what()), kElsewhere);
    }
}

base::Error damaged(const std::filesystem::path& file, const std::string& detail) {
    return {
        base::ErrorKind::kUsage, fmt::format("the store {} is damaged: {}", file.string(), detail),
        fmt::format(
            "move the file away and run again; 'sqlite3 {} .recover' may bring back what it holds",
            file.string())};
}

}  // namespace fullstop::adapters::sqlite
