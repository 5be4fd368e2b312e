// Readings of /proc and /sys/fs/cgroup. A control group's cached files are given back when memory
// is short, so they count as available, as they do in MemAvailable. A process sees its own group's
// path from outside its container, where the folders begin further up: those that are not there are
// passed over.
#include "adapters/llama/model/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

namespace fullstop::adapters::llama {
namespace {

using base::Bytes;
namespace fs = std::filesystem;

/// Scratch of one pass: libllama's own accounts say 15 MiB for SmolLM2-135M and 28 for Gemma 3
/// 270M, which the least covers together with the program; larger models have wider rows, so it
/// grows with the weights.
constexpr std::int64_t kMarginShare = 16;
constexpr Bytes kLeastMargin{std::int64_t{64} << 20};
/// Windows come in steps of this many tokens.
constexpr std::int64_t kStep = 256;

std::string in_mib(Bytes bytes) { return fmt::format("{} MiB", bytes.count >> 20); }

/// The number behind `label` in a file of lines "label number ...".
std::optional<std::int64_t> number_in(const fs::path& path, std::string_view label) {
    std::ifstream file(path);
    std::string word, rest;
    std::int64_t number = 0;
    while (file >> word) {
        if (word == label) return file >> number ? std::optional(number) : std::nullopt;
        std::getline(file, rest);
    }
    return std::nullopt;
}

/// A file that holds one number; absent when it holds a word ("max").
std::optional<std::int64_t> number_in(const fs::path& path) {
    std::ifstream file(path);
    std::int64_t number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
}

void add_machine(const fs::path& root, std::vector<MemoryLimit>& out) {
    if (const auto kib = number_in(root / "proc/meminfo", "MemAvailable:"))
        out.push_back({Bytes{*kib * 1024}, "this machine"});
}

/// One folder of one version of control groups.
struct GroupFiles {
    const char *limit, *used, *inactive, *active;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "active_file"};

void add_group(const fs::path& folder, const GroupFiles& files, const std::string& name,
               std::vector<MemoryLimit>& out) {
    const auto limit = number_in(folder / files.limit), used = number_in(folder / files.used);
    if (!limit || !used) return;
    const std::int64_t cached = number_in(folder / "memory.stat", files.inactive).value_or(0) +
                                number_in(folder / "memory.stat", files.active).value_or(0);
    out.push_back(
        {Bytes{std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *used - cached))},
         "the control group " + name});
}

/// The group and all above it.
void add_groups(const fs::path& mount, const fs::path& group, const GroupFiles& files,
                std::vector<MemoryLimit>& out) {
    fs::path at = group.relative_path();
    while (true) {
        add_group(mount / at, files, "/" + at.string(), out);
        if (at.empty()) return;
        at = at.parent_path();
    }
}

void add_control_groups(const fs::path& root, std::vector<MemoryLimit>& out) {
    std::ifstream file(root / "proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {  // number:controllers:path
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1),
                          path = line.substr(second + 1);
        if (controllers.empty())
            add_groups(root / "sys/fs/cgroup", path, kVersion2, out);
        else if (("," + controllers + ",").contains(",memory,"))
            add_groups(root / "sys/fs/cgroup/memory", path, kVersion1, out);
    }
}

void add_address_space(const fs::path& root, std::vector<MemoryLimit>& out) {
    rlimit limit{};
    const auto kib = number_in(root / "proc/self/status", "VmSize:");
    if (!kib || ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const auto most = static_cast<std::int64_t>(
        std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()));
    out.push_back({Bytes{std::max<std::int64_t>(0, most - *kib * 1024)},
                   "the limit on address space (ulimit -v)"});
}

}  // namespace

std::optional<MemoryLimit> available_memory(const fs::path& root) {
    std::vector<MemoryLimit> limits;
    add_machine(root, limits);
    add_control_groups(root, limits);
    add_address_space(root, limits);
    const auto least =
        std::ranges::min_element(limits, {}, [](const MemoryLimit& limit) { return limit.bytes; });
    return least == limits.end() ? std::nullopt : std::optional(std::move(*least));
}

Bytes MemoryNeed::margin() const {
    return std::max(kLeastMargin, Bytes{weights.count / kMarginShare});
}

base::Result<void> check_fits(const std::string& model, const MemoryNeed& need,
                              const MemoryLimit& limit) {
    if (need.all() <= limit.bytes) return {};
    const std::string numbers = fmt::format(
        "{} needs {} for its weights, {} for {} tokens of KV and {} to compute with, and {} {} "
        "available ({})",
        model, in_mib(need.weights), in_mib(need.kv()), need.kv_tokens.count, in_mib(need.margin()),
        in_mib(limit.bytes), limit.bytes.count >> 20 == 1 ? "is" : "are", limit.of);
    const Bytes left = limit.bytes - need.weights - need.margin();
    const std::int64_t tokens =
        left.count / std::max<std::int64_t>(1, need.kv_bytes_per_token.count) / kStep * kStep;
    if (tokens >= kStep)
        return base::unreachable_error(
            numbers,
            fmt::format("give --kv-tokens {} or less, fewer --max-sequences{}; or free memory",
                        tokens, need.f16 ? ", or --kv-type q8_0" : ""));
    return base::unreachable_error(numbers,
                                   "use a smaller model or quantisation, or free memory: weights "
                                   "beyond memory would be read from disk again for every token, "
                                   "so that answers would seem to hang");
}

}  // namespace fullstop::adapters::llama
