// Read piece by piece, so that a file beyond the limit (or a device without end) is left when the
// limit is passed.
#include "cli/input_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace fullstop::cli {

base::Result<std::string> read_input(const std::filesystem::path& file, std::size_t most_bytes,
                                     const std::string& kind, const std::string& hint) {
    constexpr std::size_t kPiece = 1024 * 1024;
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    std::string text;
    while (stream && text.size() <= most_bytes) {
        const std::size_t before = text.size();
        text.resize(before + kPiece);
        stream.read(text.data() + before,
                    kPiece);  // and not through its buffer, which throws when the file is a folder
        text.resize(before + static_cast<std::size_t>(stream.gcount()));
    }
    if (text.size() > most_bytes)
        return base::usage_error(fmt::format("{} is larger than any {}", file.string(), kind));
    if (!stream.eof() || stream.bad())
        return base::usage_error(
            fmt::format("cannot read {}: {}", file.string(),
                        errno != 0 ? std::generic_category().message(errno) : "the read failed"),
            hint);
    return text;
}

}  // namespace fullstop::cli
