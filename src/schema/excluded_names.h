// The name of a member that is none of those a schema describes, as a grammar.
#pragma once

#include <span>
#include <string>

#include "schema/json_schema.h"

namespace fullstop::schema {

/// Any JSON text but these names, with its quotes. Where it could still become one of them no
/// escape may come, so that none is written in another way. In GBNF; uses the rule `char`.
std::string excluded_names(std::span<const JsonObject::Property> names);

}  // namespace fullstop::schema
