// What PostgreSQL's failures mean for the user: one sentence with the database's name, and the next
// step.
#pragma once

#include <string>
#include <string_view>

#include "adapters/postgres/connection.h"
#include "base/result.h"

namespace fullstop::adapters::postgres {

/// Lines of libpq as one.
std::string one_line(std::string_view words);

/// libpq's verbose words on a refused connection: the SQLSTATE among them, if the database itself
/// said no.
struct Refusal {
    std::string state, words;
};
Refusal read_refusal(std::string_view verbose);

/// `doing` completes "while ...": "storing an answer".
base::Error explain(const Failure& failure, const Target& target, const char* doing);

/// The database holds rows that this version does not read.
base::Error damaged(const Target& target, const std::string& detail);

/// The record itself was refused; any other failure may pass.
bool is_the_records_fault(const Failure& failure);

}  // namespace fullstop::adapters::postgres
