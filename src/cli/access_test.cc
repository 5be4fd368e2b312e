// What whoever starts a server is told about who may ask it.
#include "cli/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fullstop::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(AccessWarnings, AnAddressThatOthersReachWithoutKeysIsWarnedOf) {
    for (const char* host : {"0.0.0.0", "::", "192.168.1.7", "gpu-box"})
        EXPECT_THAT(access_warnings({}, host), AllOf(HasSubstr("warning"), HasSubstr(host)));
    for (const char* host : {"127.0.0.1", "::1", "localhost"})
        EXPECT_EQ(access_warnings({}, host), "");
}

TEST(AccessWarnings, AFileOfKeysThatOthersCanReadIsWarnedOf) {
    namespace fs = std::filesystem;
    const fs::path file = fs::path(testing::TempDir()) / "access_warnings.keys";
    std::ofstream(file) << "alice: wonder\n";
    const AccessFlags flags{.key_file = file.string(), .origins = {}};
    for (const auto& [mode, warned] :
         {std::pair(0600, false), std::pair(0400, false), std::pair(0640, true),
          std::pair(0604, true), std::pair(0620, true)}) {
        fs::permissions(file, static_cast<fs::perms>(mode));
        EXPECT_EQ(access_warnings(flags, "0.0.0.0").find("chmod 600") != std::string::npos, warned)
            << std::oct << mode;
    }
    fs::remove(file);
}

TEST(AccessSummary, NamesWhoMayAskAndNoKey) {
    EXPECT_THAT(access_summary({}, {}), HasSubstr("everybody"));
    std::string file;
    for (int i = 1; i <= 10; ++i)
        file += "client" + std::to_string(i) + ": key" + std::to_string(i) + "\n";
    const serving::Access access{.keys = serving::ApiKeys::parse(file, "keys").value()};
    EXPECT_THAT(access_summary({.key_file = "keys", .origins = {"https://chat.example"}}, access),
                AllOf(HasSubstr("keys (client1, "), HasSubstr("client8 and 2 more)"),
                      HasSubstr("https://chat.example"), Not(HasSubstr("key1"))));
}

}  // namespace
}  // namespace fullstop::cli
