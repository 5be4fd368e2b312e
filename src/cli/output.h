// Documents of a run on their way out: which ones were asked for, and writing them so that a
// failure leaves neither half a file nor a lost older one. `-` is standard output, and then nothing
// else may go there.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/world.h"

namespace fullstop::report {
struct Document;
}

namespace fullstop::cli {

/// File names as the user gave them; "" is not asked for.
struct Documents {
    std::string json, csv, junit, markdown;
    /// True: standard output belongs to a document, and the terminal report stays away.
    bool to_standard_output() const;
};

void declare_documents(CLI::App& app, Documents& documents);

/// What can be known before a run of ten minutes: one `-` at most, folders exist, no target is a
/// folder.
base::Result<void> check_documents(const Documents& documents);

/// Writes every document that was asked for; goes on after a failure and returns the first one.
base::Result<void> write_documents(const World& world, const Documents& documents,
                                   const report::Document& document);

/// `target` is "-" or a file. A regular file appears whole or not at all (written beside it, then
/// renamed); devices and pipes are written as they are.
base::Result<void> write_document(const World& world, const std::string& target,
                                  std::string_view text);

}  // namespace fullstop::cli
