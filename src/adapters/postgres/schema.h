// Whether a database holds our tables, in a version that this program reads; made when absent, by
// one of several programs that may be starting at once.
#pragma once

#include "adapters/postgres/connection.h"
#include "base/result.h"
#include "store/store.h"

namespace fullstop::adapters::postgres {

/// The tables live in a schema of this name, apart from whatever else is in the database.
inline constexpr const char* kSchemaName = "fullstop";

/// Afterwards names of tables are found without the schema's. Throws Failure; errors (usage) are
/// the database's state: no UTF-8, read-only, another program's schema, a newer version, tables
/// that may not be written or read.
base::Result<void> prepare(Connection& connection, const Target& target, store::Access access);
/// The same for a connection that follows one which was prepared.
void use_schema(Connection& connection);

}  // namespace fullstop::adapters::postgres
