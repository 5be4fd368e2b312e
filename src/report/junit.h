// JUnit XML for CI: one test suite an arm, one test case a level. A level whose answers were
// shortened fails, an inconclusive one is skipped. Valid XML 1.0 whatever a server sent.
#pragma once

#include <string>

#include "report/json/document.h"

namespace fullstop::report {

std::string to_junit(const Document& document);

}  // namespace fullstop::report
