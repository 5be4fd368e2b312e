// A judged run as Markdown for an issue report to a server's author: verdict, levels, evidence, how
// to repeat. What servers and users wrote is escaped, so it can neither break the page nor link or
// mention anybody.
#pragma once

#include <string>

#include "report/json/document.h"

namespace fullstop::report {

std::string to_markdown(const Document& document);

}  // namespace fullstop::report
