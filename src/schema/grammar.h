// A JSON Schema as a grammar (GBNF, llama.cpp's notation): every text derived from the rule `root`
// is one JSON value that fulfils the schema, and nothing stands before or behind it.
//
// llama.cpp brings a converter of its own, which weakens what it cannot express (an unanchored
// pattern becomes any text, the bounds of a number are dropped) and lets some schemas take
// exponential time. Here is written only what holds, of a size linear in the schema and without the
// two faults that libllama's grammars suffer from: left recursion, and many ways to read one
// beginning (check.cc). Members come in the order of the schema, which is how models are used to
// write them; white space is at most one blank, or a line break and 16 blanks, because small models
// write it without end; numbers have at most 15 digits before the point, 16 behind it and 2 in the
// exponent; surrogates are not written as escapes.
#pragma once

#include <string>

#include "schema/json_schema.h"

namespace fullstop::schema {

/// `schema` came from read_schema().
std::string grammar_of(const JsonSchema& schema);

/// Any JSON object, nested at most kMaxFreeJsonDepth deep.
std::string json_object_grammar();

}  // namespace fullstop::schema
