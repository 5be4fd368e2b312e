// A configuration file says what the flags say, and what is wrong in it is named with its line.
#include "cli/serve/config_file.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace fullstop::cli {
namespace {

class ConfigFile : public testing::Test {
protected:
    ConfigFile() {
        app_.name("serve");
        app_.add_option("--listen", listen_, "HOST:PORT");
        app_.add_option("--max-sequences", sequences_, "how many");
        app_.add_option("--upstream", upstreams_, "URLs");
        app_.add_option("--share", share_, "0 to 1");
        app_.add_flag("--quiet", quiet_);
        declare_config(app_, config_);
    }
    ~ConfigFile() override { std::filesystem::remove_all(folder_); }

    base::Result<void> read(const std::string& text, std::vector<std::string> flags = {}) {
        std::ofstream(file_) << text;
        std::ranges::reverse(flags);
        app_.parse(flags);
        return apply_config(app_, file_.string());
    }
    std::string error(const std::string& text) {
        const auto read_text = read(text);
        if (read_text) return "accepted";
        EXPECT_EQ(read_text.error().kind, base::ErrorKind::kUsage);
        EXPECT_FALSE(read_text.error().hint.empty());
        return read_text.error().message.substr(read_text.error().message.rfind('/') + 1) + " | " +
               read_text.error().hint;
    }
    static std::string own_folder() {
        std::string name = testing::TempDir() + "fullstop_config_XXXXXX";
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        return name;
    }

    std::filesystem::path folder_ = own_folder(), file_ = folder_ / "f.toml";
    CLI::App app_;
    std::string listen_ = "default", config_;
    int sequences_ = 8;
    double share_ = 0;
    std::vector<std::string> upstreams_;
    bool quiet_ = false;
};

TEST_F(ConfigFile, GivesWhatTheFlagsWouldGive) {
    ASSERT_TRUE(
        read("# a comment\nlisten = '127.0.0.1:0'\nmax-sequences = 4\nshare = 0.25\nquiet = "
             "true\nupstream = ['http://a', 'http://b']\n"));
    EXPECT_EQ(listen_, "127.0.0.1:0");
    EXPECT_EQ(sequences_, 4);
    EXPECT_EQ(share_, 0.25);
    EXPECT_TRUE(quiet_);
    EXPECT_EQ(upstreams_, (std::vector<std::string>{"http://a", "http://b"}));
}

TEST_F(ConfigFile, TheCommandLineWinsAndWhatNobodySaysStays) {
    ASSERT_TRUE(read("max-sequences = 4\nquiet = false\nupstream = 'http://a'\n",
                     {"--max-sequences", "2", "--upstream", "http://b"}));
    EXPECT_EQ(sequences_, 2);
    EXPECT_EQ(upstreams_, std::vector<std::string>{"http://b"});
    EXPECT_EQ(listen_, "default");
    EXPECT_FALSE(quiet_);
}

TEST_F(ConfigFile, EachFaultIsNamedWithItsLine) {
    EXPECT_EQ(error("\n\nmax-sequence = 4\n"),
              "f.toml:3: 'max-sequence' is not known here | did you mean 'max-sequences'?");
    EXPECT_EQ(
        error("quiet = true\ncolour = 1\n"),
        "f.toml:2: 'colour' is not known here | the keys are the flags of fullstop serve --help");
    EXPECT_EQ(error("config = 'other.toml'\n").substr(0, 35),
              "f.toml:1: 'config' is not known her");
    EXPECT_EQ(error("[listen]\nhost = 'a'\n").substr(0, 38),
              "f.toml:1: listen does not take this va");
    EXPECT_EQ(error("quiet = 'loud'\n"),
              "f.toml:1: quiet does not take this value | true or false");
    EXPECT_NE(error("listen = 'a'\nmax-sequences = 'many'\n").find("f.toml:2: max-sequences: "),
              std::string::npos);
    EXPECT_NE(error("max-sequences = 99999999999\n").find("f.toml:1: max-sequences: "),
              std::string::npos);
    EXPECT_EQ(error("max-sequences = [1, 2]\n").substr(0, 39),
              "f.toml:1: max-sequences does not take t");
    EXPECT_EQ(error("listen = 1979-05-27\n").substr(0, 38),
              "f.toml:1: listen does not take this va");
    EXPECT_EQ(error("listen = 'a'\nlisten = 'b'\n").substr(0, 9), "f.toml:2:");
    EXPECT_EQ(error("listen: a\n").substr(0, 9), "f.toml:1:");
}

TEST_F(ConfigFile, AFileThatIsNotThereIsNamedAndNoFileIsFine) {
    EXPECT_TRUE(apply_config(app_, ""));
    const auto none = apply_config(app_, (folder_ / "none.toml").string());
    ASSERT_FALSE(none.has_value());
    EXPECT_NE(none.error().message.find("none.toml"), std::string::npos);
    EXPECT_FALSE(apply_config(app_, folder_.string()).has_value());
}

}  // namespace
}  // namespace fullstop::cli
