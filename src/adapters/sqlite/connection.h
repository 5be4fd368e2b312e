// Opening the file: folder, rights, journal, schema. What comes out is a connection on which
// reading and, when asked for, writing are known to work. Included by the store's own sources only,
// since it shows SQLiteCpp.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "base/units.h"
#include "store/store.h"

namespace fullstop::adapters::sqlite {

/// How long a write waits for another process's write, which takes milliseconds. Then the error
/// says "locked".
inline constexpr int kBusyMs = 2000;
/// Pages in the log before SQLite copies them into the file (64 MiB). The copy waits for the disk,
/// and a run must not wait for the disk while it takes times; most runs fit, and closing the file
/// copies everything.
inline constexpr int kCheckpointPages = 16 * 1024;

base::Result<std::unique_ptr<SQLite::Database>> connect(const std::filesystem::path& file,
                                                        store::Access access, base::Bytes largest);

}  // namespace fullstop::adapters::sqlite
