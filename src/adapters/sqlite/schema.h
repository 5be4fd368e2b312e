// The tables of the store and the steps to the current version. A file of a newer version is refused, never guessed at.
#pragma once

namespace fullstop::adapters::sqlite {

/// "FSTP" in the file header: tells our file from another program's.
inline constexpr int kApplicationId = 0x46535450;
/// PRAGMA user_version. Raise it when a table changes; fields inside `recorded`, `experiment` and the like may be added
/// without, since a reader leaves unknown ones aside and gives missing ones their default.
inline constexpr int kSchemaVersion = 1;

inline constexpr const char* kSchema = R"sql(
CREATE TABLE runs (
    id               TEXT PRIMARY KEY NOT NULL,
    started_ns       INTEGER NOT NULL,               -- since the Unix epoch, UTC
    elapsed_ns       INTEGER NOT NULL,
    fullstop_version TEXT NOT NULL,
    fullstop_build   TEXT NOT NULL,
    url              TEXT NOT NULL,
    model            TEXT NOT NULL,
    api              TEXT NOT NULL,
    experiment       TEXT NOT NULL,                  -- JSON
    arms             TEXT NOT NULL,                  -- JSON
    server_before    TEXT NOT NULL,                  -- JSON, by arm
    server_after     TEXT NOT NULL,                  -- JSON, by arm
    notes            TEXT NOT NULL,                  -- JSON
    interrupted      INTEGER NOT NULL,
    finished         INTEGER NOT NULL                -- 0: the process ended before the run did
) STRICT;
CREATE TABLE records (
    seq         INTEGER PRIMARY KEY,                 -- the order in which answers ended
    run         TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    id          TEXT NOT NULL,
    arm         TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    prompt      TEXT NOT NULL,
    seed        INTEGER NOT NULL,
    repeat      INTEGER NOT NULL,
    reason      TEXT,                                -- raw word of the server
    transport   TEXT NOT NULL,
    tokens      INTEGER,                             -- reported, else counted
    ended_ns    INTEGER,                             -- since the start of the run
    text        TEXT NOT NULL,
    reasoning   TEXT NOT NULL,
    tool_calls  TEXT NOT NULL,
    recorded    TEXT NOT NULL,                       -- JSON: everything else; the columns above repeat some of it for queries
    gaps        BLOB NOT NULL,                       -- int64 nanoseconds, little-endian
    capture     BLOB NOT NULL,                       -- raw bytes from the socket
    arrivals    BLOB NOT NULL                        -- pairs: int64 nanoseconds since the start, uint64 offset after the read
) STRICT;
CREATE INDEX records_by_run ON records(run);
CREATE TABLE samples (
    seq          INTEGER PRIMARY KEY,
    run          TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    at_ns        INTEGER NOT NULL,                   -- since the start of the run
    arm          TEXT NOT NULL,
    kv_used      REAL,
    running      REAL,
    waiting      REAL,
    preemptions  REAL,
    free_bytes   REAL,
    server_bytes REAL,
    counters     TEXT NOT NULL                       -- JSON
) STRICT;
CREATE INDEX samples_by_run ON samples(run);
)sql";

}  // namespace fullstop::adapters::sqlite
