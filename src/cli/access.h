// Who may ask `serve` and `gateway`: --api-key-file and --allow-origin, read, warned of, and said
// in plain words.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/world.h"
#include "serving/access.h"

namespace fullstop::cli {

/// As the user wrote them.
struct AccessFlags {
    std::string key_file;              ///< "": everybody may ask
    std::vector<std::string> origins;  ///< of pages that may ask beside the server's own
};

void declare_access(CLI::App& app, AccessFlags& flags);
/// Reads the file. Errors are usage errors that name the flag, or the file and the line.
base::Result<serving::Access> read_access(const AccessFlags& flags);

/// What whoever starts a server should know: it can be reached and asks for no key; its keys can be
/// read by others. "": nothing.
std::string access_warnings(const AccessFlags& flags, const std::string& host);
/// For --check.
std::string access_summary(const AccessFlags& flags, const serving::Access& access);

}  // namespace fullstop::cli
