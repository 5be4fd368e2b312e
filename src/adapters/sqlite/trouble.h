// What SQLite's codes mean for the user: one sentence with the file's name, and the next step.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace SQLite {
class Exception;
}

namespace fullstop::adapters::sqlite {

/// `doing` completes "while ...": "storing an answer". `system` is errno of the failed system call,
/// 0 when none.
base::Error explain(const SQLite::Exception& exception, const std::filesystem::path& file,
                    const char* doing, int system = 0);

/// The file is SQLite, but not what this version reads.
base::Error damaged(const std::filesystem::path& file, const std::string& detail);

}  // namespace fullstop::adapters::sqlite
