// One line an answer, for spreadsheets and data frames (columns: docs/schemas/run-1.csv.md). What
// is not known is empty, never zero; provenance is in the JSON document only. RFC 4180 with '\n'.
#pragma once

#include <string>

#include "report/json/document.h"

namespace fullstop::report {

std::string to_csv(const Document& document);

}  // namespace fullstop::report
