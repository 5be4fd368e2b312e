// A judged run for a person at a terminal: the verdict and what to change first, then one table of
// levels an arm, then the evidence, how sure it is, and what comes next. Eighty columns, readable
// without colour.
#pragma once

#include <string>

#include "report/json/document.h"

namespace fullstop::report {

struct TerminalOptions {
    bool colour = false;
    std::string stored;           ///< where the run is kept; "" when it is not
    bool store_is_named = false;  ///< not in the user's state folder: found with --store only
};

std::string to_terminal(const Document& document, const TerminalOptions& options);

}  // namespace fullstop::report
