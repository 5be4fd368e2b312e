// What marks an SQLite file as a store of runs. The tables themselves are store/columns.h.
#pragma once

#include "store/schema.h"

namespace fullstop::adapters::sqlite {

/// "FSTP" in the file header: tells our file from another program's. Its PRAGMA user_version is
/// store::kSchemaVersion.
inline constexpr int kApplicationId = 0x46535450;

inline constexpr store::Dialect kDialect{.integer = "INTEGER",
                                         .real = "REAL",
                                         .text = "TEXT",
                                         .blob = "BLOB",
                                         .number = "INTEGER PRIMARY KEY",
                                         .suffix = " STRICT"};

}  // namespace fullstop::adapters::sqlite
