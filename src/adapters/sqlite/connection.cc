// Write access tries a write lock at once, so that a read-only or locked file is found before the
// first answer is paid for.
#include "adapters/sqlite/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "adapters/sqlite/schema.h"
#include "adapters/sqlite/trouble.h"

namespace fullstop::adapters::sqlite {
namespace {

namespace fs = std::filesystem;
using Database = std::unique_ptr<SQLite::Database>;

base::Result<void> make_folder(const fs::path& folder) {
    std::error_code error;
    if (folder.empty() || fs::is_directory(folder, error)) return {};
    fs::create_directories(folder, error);
    if (error)
        return base::usage_error(
            fmt::format("the folder {} of the store cannot be made: {}", folder.string(),
                        error.message()),
            "name another file with --store FILE, or keep nothing with --store none");
    fs::permissions(folder, fs::perms::owner_all,
                    error);  // prompts and answers are private; where rights cannot be set, go on
    return {};
}

/// A file in a write-ahead log can be read from read-only media only when SQLite is told that
/// nobody will change it, which is true when no log is left beside it.
std::string immutable_uri(const fs::path& file) {
    std::string uri = "file:";
    for (const char c : fs::absolute(file).string()) {
        if (c == '?' || c == '#' || c == '%')
            uri += fmt::format("%{:02X}", static_cast<unsigned>(c));
        else
            uri += c;
    }
    return uri + "?immutable=1";
}

Database open_for_reading(const fs::path& file) {
    auto database =
        std::make_unique<SQLite::Database>(file.string(), SQLite::OPEN_READONLY, kBusyMs);
    try {
        database->execAndGet("SELECT count(*) FROM sqlite_master");
        return database;
    } catch (const SQLite::Exception& exception) {
        const int code = exception.getErrorCode() & 0xFF;
        if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) ||
            fs::exists(file.string() + "-wal"))
            throw;
    }
    return std::make_unique<SQLite::Database>(immutable_uri(file),
                                              SQLite::OPEN_READONLY | SQLite::OPEN_URI, kBusyMs);
}

base::Result<void> check_owner(SQLite::Database& database, const fs::path& file,
                               bool may_be_empty) {
    SQLite::Transaction moment(database);  // another process may be making the tables
    const int version = database.execAndGet("PRAGMA user_version").getInt();
    const int owner = database.execAndGet("PRAGMA application_id").getInt();
    const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
    if (empty && may_be_empty && (owner == 0 || owner == kApplicationId)) return {};
    if (owner != kApplicationId)
        return base::usage_error(
            fmt::format("{} is an SQLite file, but not a store of runs; it was left alone",
                        file.string()),
            "name another file with --store FILE");
    if (version > store::kSchemaVersion)
        return base::usage_error(
            fmt::format(
                "the store {} was made by a newer fullstop (schema {}; this one reads up to {})",
                file.string(), version, store::kSchemaVersion),
            "use the newer fullstop, or name another file with --store FILE");
    return {};
}

/// Changing to the write-ahead log needs the file alone, and for that SQLite does not wait by
/// itself: two processes that make one file at once would refuse each other. Where the log is not
/// to be had (some network file systems), SQLite keeps its rollback journal, which is as safe.
void use_write_ahead_log(SQLite::Database& database) {
    constexpr int kAgainMs = 20;
    for (int waited = 0;; waited += kAgainMs) {
        try {
            database.execAndGet("PRAGMA journal_mode = WAL");
            return;
        } catch (const SQLite::Exception& exception) {
            if ((exception.getErrorCode() & 0xFF) != SQLITE_BUSY || waited >= kBusyMs) throw;
        }
        sqlite3_sleep(kAgainMs);
    }
}

void prepare_for_writing(SQLite::Database& database, base::Bytes largest) {
    use_write_ahead_log(database);
    // NORMAL: nothing is lost when the process dies; a power cut may take the last answers, but
    // never breaks the file.
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(fmt::format("PRAGMA wal_autocheckpoint = {}", kCheckpointPages));
    const auto page = database.execAndGet("PRAGMA page_size").getInt64();
    database.exec(
        fmt::format("PRAGMA max_page_count = {}", std::max<std::int64_t>(1, largest.count / page)));
}

void create_tables(SQLite::Database& database) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    if (database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() ==
        0) {  // or another process was faster
        database.exec(store::create_statements(kDialect));
        database.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                  kApplicationId, store::kSchemaVersion));
    }
    transaction.commit();
}

base::Result<Database> open_for_writing(const fs::path& file, base::Bytes largest) {
    if (auto made = make_folder(file.parent_path()); !made) return std::unexpected(made.error());
    const bool fresh = !fs::exists(file);
    auto database = std::make_unique<SQLite::Database>(
        file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs);
    if (auto ours = check_owner(*database, file, true); !ours) return std::unexpected(ours.error());
    std::error_code ignored;  // a file system without rights is no reason to keep nothing
    if (fresh) fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, ignored);
    prepare_for_writing(*database, largest);
    create_tables(*database);
    return database;
}

/// SQLite says "unable to open" without the reason; asking the system again brings it. 0: no
/// obstacle was found.
int obstacle(const fs::path& file) {
    const fs::path folder = fs::absolute(file).parent_path();
    const bool blocked = access(file.c_str(), F_OK) == 0 ? access(file.c_str(), R_OK | W_OK) != 0
                                                         : access(folder.c_str(), W_OK | X_OK) != 0;
    return blocked ? errno : 0;
}

}  // namespace

base::Result<Database> connect(const fs::path& file, store::Access access, base::Bytes largest) {
    std::error_code error;
    if (fs::is_directory(file, error))
        return base::usage_error(fmt::format("{} is a folder, not a store of runs", file.string()),
                                 "name a file with --store FILE");
    if (access == store::Access::kRead && !fs::exists(file, error))
        return base::usage_error(fmt::format("there is no store of runs at {}", file.string()),
                                 "run 'fullstop probe' first, or name a file with --store FILE");
    try {
        if (access == store::Access::kWrite) return open_for_writing(file, largest);
        auto database = open_for_reading(file);
        if (auto ours = check_owner(*database, file, false); !ours)
            return std::unexpected(ours.error());
        return database;
    } catch (const SQLite::Exception& exception) {
        return std::unexpected(explain(exception, file, "opening it", obstacle(file)));
    }
}

}  // namespace fullstop::adapters::sqlite
