// Runs as rows of any database: what is written, looked for and read, in statements that are made
// from the lists of columns. Transactions and errors are the adapter's: everything throws what the
// database throws, or Unreadable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer/run.h"
#include "base/result.h"
#include "store/database.h"
#include "store/store.h"

namespace fullstop::store {

void insert_run(Database& database, const answer::Run& run);
void insert_record(Database& database, std::string_view run_id, const answer::Record& record);
void insert_sample(Database& database, std::string_view run_id, const answer::Sample& sample);
/// What changes while a run goes on. `finished`: from now on it counts as complete.
void update_run(Database& database, const answer::Run& run, bool finished);

/// `id` itself, the run that alone begins with it, or for "last" the newest. Empty: none. Two:
/// several begin with it.
std::vector<std::string> matching_runs(Database& database, std::string_view id);
/// When it is not exactly one: the user's mistake in words.
base::Error not_one_run(std::string_view id, std::size_t found, const std::string& store_name);
answer::Run read_run(Database& database, const std::string& id, Captures captures);
std::vector<RunEntry> list_runs(Database& database);

struct RowCounts {
    std::int64_t records = 0, samples = 0;
};
RowCounts count_rows(Database& database, std::string_view run_id);

}  // namespace fullstop::store
