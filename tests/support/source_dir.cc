#include "tests/support/source_dir.h"

namespace fullstop::tests {

const std::filesystem::path& source_dir() {
    static const std::filesystem::path folder = FULLSTOP_SOURCE_DIR;
    return folder;
}

}  // namespace fullstop::tests
