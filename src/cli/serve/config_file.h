// --config FILE: the flags of a command from a TOML file. The keys are the long names of the flags
// without the dashes; what stands on the command line wins.
//
//     listen = "127.0.0.1:8080"
//     max-sequences = 4
//     quiet = true
#pragma once

#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace fullstop::cli {

/// Declares --config. `file` outlives the parsing.
void declare_config(CLI::App& app, std::string& file);

/// Gives each option of `app` that was not on the command line the file's value; nothing when
/// `file` is "". Call it after parsing and before the words are read; an option that a file may
/// give cannot be required(). Errors are usage errors that name the file and the line: not TOML, an
/// unknown key, a value the flag does not take.
base::Result<void> apply_config(CLI::App& app, const std::string& file);

}  // namespace fullstop::cli
