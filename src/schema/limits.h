// How large a schema may be, in one table with its reason and what happens at the limit. Together
// they bound the time that reading, compiling and following a schema may take from those whose
// answers run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fullstop::schema {

// name                                   value                         at the limit
/// A response format's JSON Schema, written compactly: OpenAI allows 120 000 characters of names
/// and values.
///   400
inline constexpr std::size_t kMaxSchemaBytes = 128 * 1024;
/// Schemas within one: OpenAI allows 5000 properties. The grammar of so many takes libllama some 10
/// ms.
///   400
inline constexpr std::size_t kMaxSchemaNodes = 5000;
/// Values of enum and const in all, as OpenAI allows.
///   400
inline constexpr std::size_t kMaxSchemaValues = 1000;
/// The name of a property. The grammar of names that must not come again nests as deep as they are
/// long.
///   400
inline constexpr std::size_t kMaxSchemaNameBytes = 256;
/// Names beside which others may come (additionalProperties), in all: each byte is a rule.
///   400
inline constexpr std::size_t kMaxExcludedNameBytes = 4096;
/// A count in minLength, maxLength, minItems or maxItems: beyond it libllama would take "at most"
/// for "any number".
///   400
inline constexpr std::int64_t kMaxSchemaCount = 2000;
/// All those counts and the states of all patterns together: libllama makes a rule of each.
///   400
inline constexpr std::int64_t kMaxSchemaRepetitions = 10'000;
/// A pattern as it is written.
///   400
inline constexpr std::size_t kMaxPatternBytes = 4096;
/// Characters that a pattern names, repetitions counted.
///   400
inline constexpr std::size_t kMaxPatternPlaces = 256;
/// States of the automaton of a pattern; each is a rule of the grammar. 2^n for n places in the
/// worst case: ^[ab]*a[ab]{20}$.
///   400
inline constexpr std::size_t kMaxPatternStates = 512;
/// Ends of ranges of characters looked at while the automata of a schema are made: some 5 ms.
///   400
inline constexpr std::size_t kMaxPatternWork = 50'000;
/// Beginnings of an answer that a grammar has to follow at once (optional properties in a row,
/// alternatives that begin alike): libllama looks at each for every token, up to 1 us, and for some
/// at the whole vocabulary; 128 cost up to 0.1 and 50 ms.
///   400
inline constexpr std::int64_t kMaxSchemaBranches = 128;
/// Digits of a bound of a whole number, and of every number in an answer: below 2^53, so every
/// reader of JSON holds it exactly.
///   400
inline constexpr std::int64_t kMaxWholeNumber = 999'999'999'999'999;
/// Nesting of JSON for which there is no schema (json_object): small models open brackets without
/// end.
///   no deeper bracket comes
inline constexpr int kMaxFreeJsonDepth = 16;

}  // namespace fullstop::schema
