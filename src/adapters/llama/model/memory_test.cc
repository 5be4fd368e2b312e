// What a process may have is the least of what machine, containers and limits leave it, and what
// does not fit is refused with the numbers.
#include "adapters/llama/model/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

namespace fullstop::adapters::llama {
namespace {

namespace fs = std::filesystem;
using base::Bytes;
using base::Tokens;
using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;

/// /proc and /sys of a made-up machine.
MemoryLimit read(const std::string& name, const std::map<std::string, std::string>& files) {
    const fs::path root = fs::path(testing::TempDir()) / ("fullstop_memory_" + name);
    fs::remove_all(root);
    for (const auto& [path, text] : files) {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text;
    }
    const auto limit = available_memory(root);
    fs::remove_all(root);
    return limit.value_or(MemoryLimit{Bytes{-1}, "nothing"});
}

const std::string kMachine =
    "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8388608 kB\n";

TEST(Memory, WithoutAContainerTheMachineDecides) {
    const auto limit = read("plain", {{"proc/meminfo", kMachine}, {"proc/self/cgroup", "0::/\n"}});
    EXPECT_EQ(limit.bytes, Bytes{8192 * kMiB});
    EXPECT_EQ(limit.of, "this machine");
    EXPECT_EQ(read("silent", {}).of, "nothing");
}

TEST(Memory, AContainersLimitCountsAndItsCachedFilesDoNot) {
    const auto limit =
        read("v2", {{"proc/meminfo", kMachine},
                    {"proc/self/cgroup", "0::/pods/mine\n"},
                    {"sys/fs/cgroup/pods/mine/memory.max", "max\n"},
                    {"sys/fs/cgroup/pods/mine/memory.current", "7\n"},
                    {"sys/fs/cgroup/pods/memory.max", std::to_string(1000 * kMiB)},
                    {"sys/fs/cgroup/pods/memory.current", std::to_string(700 * kMiB)},
                    {"sys/fs/cgroup/pods/memory.stat",
                     "anon 1\ninactive_file " + std::to_string(400 * kMiB) + "\nactive_file " +
                         std::to_string(100 * kMiB) + "\n"}});
    EXPECT_EQ(limit.bytes, Bytes{800 * kMiB}) << "200 MiB of the 1000 cannot be given back";
    EXPECT_EQ(limit.of, "the control group /pods");
}

TEST(Memory, OldControlGroupsAreReadTooWhereTheContainerBeginsFurtherUp) {
    const auto limit =
        read("v1", {{"proc/meminfo", kMachine},
                    {"proc/self/cgroup", "5:devices:/docker/abc\n4:cpu,memory:/docker/abc\n0::/\n"},
                    {"sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(512 * kMiB)},
                    {"sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(600 * kMiB)},
                    {"sys/fs/cgroup/memory/memory.stat",
                     "cache 1\ntotal_inactive_file 0\ntotal_active_file 0\n"}});
    EXPECT_EQ(limit.bytes, Bytes{0}) << "never below nothing";
    EXPECT_EQ(limit.of, "the control group /");
    EXPECT_EQ(
        read("v1_unlimited", {{"proc/meminfo", kMachine},
                              {"proc/self/cgroup", "4:memory:/\n"},
                              {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"},
                              {"sys/fs/cgroup/memory/memory.usage_in_bytes", "600"}})
            .of,
        "this machine");
}

std::string trouble(const MemoryNeed& need, Bytes available) {
    const auto fits = check_fits("m.gguf", need, {available, "this machine"});
    return fits ? std::string("fits") : fits.error().message + " | " + fits.error().hint;
}

TEST(Memory, AModelThatIsTooLargeIsRefusedWithTheNumbersAndWhatWouldFit) {
    const MemoryNeed need{.weights = Bytes{4096 * kMiB},
                          .kv_tokens = Tokens{8192},
                          .kv_bytes_per_token = Bytes{kMiB / 8}};
    EXPECT_EQ(need.kv(), Bytes{1024 * kMiB});
    EXPECT_EQ(need.margin(), Bytes{256 * kMiB});
    EXPECT_EQ(trouble(need, Bytes{5376 * kMiB}), "fits");
    EXPECT_THAT(trouble(need, Bytes{5376 * kMiB - 1}),
                AllOf(HasSubstr("4096 MiB for its weights, 1024 MiB for 8192 tokens of KV and 256 "
                                "MiB to compute with, and 5375 MiB are available (this machine)"),
                      HasSubstr("--kv-tokens 7936")));
    EXPECT_THAT(trouble(need, Bytes{4096 * kMiB}),
                AllOf(HasSubstr("smaller model or quantisation"),
                      HasSubstr("from disk again for every token")));
}

TEST(Memory, EvenATinyModelLeavesRoomToComputeIn) {
    EXPECT_EQ(
        (MemoryNeed{
             .weights = Bytes{kMiB}, .kv_tokens = Tokens{256}, .kv_bytes_per_token = Bytes{64}})
            .margin(),
        Bytes{64 * kMiB});
}

}  // namespace
}  // namespace fullstop::adapters::llama
