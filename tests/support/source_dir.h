// Where this checkout lies, for tests that read data from it. One object knows, so that all others
// are the same in every checkout.
#pragma once

#include <filesystem>

namespace fullstop::tests {

const std::filesystem::path& source_dir();

}  // namespace fullstop::tests
