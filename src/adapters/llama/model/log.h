// libllama's log: silent unless something went wrong. Loading collects the errors for its own
// message; later ones go to standard error as they are.
#pragma once

#include <string>

namespace fullstop::adapters::llama {

/// While it lives, errors are collected instead of printed. One at a time.
class ErrorCollector {
public:
    ErrorCollector();
    ~ErrorCollector();
    ErrorCollector(const ErrorCollector&) = delete;
    ErrorCollector& operator=(const ErrorCollector&) = delete;
    /// Lines collected so far, joined by "; ".
    std::string text() const;
};

}  // namespace fullstop::adapters::llama
