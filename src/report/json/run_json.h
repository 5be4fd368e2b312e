// The run document `fullstop.run/1` (docs/schemas/run-1.schema.json) as text, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/json/document.h"

namespace fullstop::report {

inline constexpr std::string_view kRunSchema = "fullstop.run/1";
/// Largest document that is read. A run of 1000 answers is about 5 MB; beyond this it is not a run
/// document.
inline constexpr std::size_t kMaxRunDocumentBytes = 512 * 1024 * 1024;

std::string to_json(const Document& document);

/// Errors (usage) name `name` and the place: not JSON, another schema, a field of the wrong kind,
/// an unknown word. Absent fields keep their defaults, unknown ones are left aside, so documents of
/// later versions of schema 1 are read too.
base::Result<Document> read_run_document(std::string_view text, std::string_view name);

}  // namespace fullstop::report
