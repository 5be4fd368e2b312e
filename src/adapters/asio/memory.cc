// Readings of /proc.
#include "adapters/asio/memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <string>

namespace fullstop::adapters::asio {
namespace {

/// /proc/meminfo is below 2 KiB, statm below 100 bytes; one read gives either whole.
std::string read_small(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    char buffer[8192];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    ::close(fd);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

std::optional<std::int64_t> number_at(std::string_view text) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data() + start, text.data() + text.size(), value);
    return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<base::Bytes> read_statm(std::string_view text, std::int64_t page_bytes) {
    const std::size_t space = text.find(' ');  // "size resident shared ...", in pages
    if (space == std::string_view::npos) return std::nullopt;
    const auto pages = number_at(text.substr(space));
    return pages ? std::optional(base::Bytes{*pages * page_bytes}) : std::nullopt;
}

std::optional<base::Bytes> read_meminfo(std::string_view text) {
    constexpr std::string_view kLabel = "MemAvailable:";
    const std::size_t at = text.find(kLabel);
    if (at == std::string_view::npos) return std::nullopt;
    const auto kibibytes = number_at(text.substr(at + kLabel.size()));
    return kibibytes ? std::optional(base::Bytes{*kibibytes * 1024}) : std::nullopt;
}

std::optional<base::Bytes> resident_memory(int pid) {
    return read_statm(read_small(fmt::format("/proc/{}/statm", pid)), ::sysconf(_SC_PAGESIZE));
}
std::optional<base::Bytes> available_memory() { return read_meminfo(read_small("/proc/meminfo")); }

}  // namespace fullstop::adapters::asio
