// Flags of `fullstop serve`: what is wrong is named, and what is right arrives.
#include "cli/serve/serve_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fullstop::cli {
namespace {

struct StoppedClock final : base::Clock {
    base::Instant now() const override { return {}; }
    base::WallTime wall() const override { return {}; }
};

class ServeFlagsTest : public testing::Test {
protected:
    ServeFlagsTest() {
        std::filesystem::create_directories(folder_ / "bin" / "models");
        std::ofstream(folder_ / "bin" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf") << "GGUF";
    }
    ~ServeFlagsTest() override { std::filesystem::remove_all(folder_); }

    base::Result<ServeOptions> read(const std::function<void(ServeFlags&)>& change = {}) {
        ServeFlags flags;
        if (change) change(flags);
        World world{.out = out_,
                    .err = out_,
                    .env = [](const std::string&) { return std::nullopt; },
                    .out_is_terminal = false,
                    .err_is_terminal = false,
                    .columns = 80,
                    .executable = folder_ / "bin" / "fullstop",
                    .clock = clock_};
        return read_serve(flags, world);
    }
    std::string wrong(const std::function<void(ServeFlags&)>& change) {
        const auto options = read(change);
        if (options) return "accepted";
        EXPECT_EQ(options.error().kind, base::ErrorKind::kUsage);
        EXPECT_FALSE(options.error().hint.empty());
        return options.error().message;
    }

    static std::string own_folder() {
        std::string name = testing::TempDir() + "fullstop_serve_XXXXXX";
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        return name;
    }

    std::filesystem::path folder_ = own_folder();
    std::ostringstream out_;
    StoppedClock clock_;
};

TEST_F(ServeFlagsTest, DefaultsServeTheBuiltinModelWithEightWindowsOf1024) {
    const auto options = read().value();
    EXPECT_EQ(options.load.model, folder_ / "bin" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf");
    EXPECT_EQ(options.load.max_sequences, 8);
    EXPECT_EQ(options.load.auto_window, base::Tokens{1024});
    EXPECT_EQ(options.load.layout, std::nullopt) << "what suits the pool";
    EXPECT_EQ(options.admission, engine::AdmissionMode::kForecast);
    EXPECT_EQ(options.host_memory, engine::kDefaultHostMemory);
    EXPECT_EQ(options.load.kv_tokens, std::nullopt);
    EXPECT_EQ(options.port, 8080);
    EXPECT_EQ(options.drain, std::chrono::seconds(30));
    EXPECT_GE(options.load.threads, 1);
}

TEST_F(ServeFlagsTest, AnInstalledProgramFindsItsModelInShare) {
    std::filesystem::create_directories(folder_ / "share" / "fullstop" / "models");
    std::filesystem::rename(
        folder_ / "bin" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf",
        folder_ / "share" / "fullstop" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf");
    EXPECT_EQ(read().value().load.model.parent_path(), folder_ / "share" / "fullstop" / "models");
    std::filesystem::remove_all(folder_ / "share");
    const auto none = read();
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().kind, base::ErrorKind::kUnreachable);
    EXPECT_NE(none.error().hint.find("--model FILE"), std::string::npos);
}

TEST_F(ServeFlagsTest, AddressesOfBothKindsAreRead) {
    const auto six = read([](ServeFlags& w) { w.listen = "[::1]:0"; }).value();
    EXPECT_EQ(std::pair(six.host, six.port), std::pair(std::string("::1"), std::uint16_t{0}));
    for (const char* bad : {"", "8080", "host", "host:", ":80", "host:70000", "host:-1", "host:8o"})
        EXPECT_NE(wrong([&](ServeFlags& w) { w.listen = bad; }).find("--listen"), std::string::npos)
            << bad;
}

TEST_F(ServeFlagsTest, TargetsAreMillisecondsUnlessTheySayOtherwise) {
    const auto options =
        read([](ServeFlags& w) { w.itl_target = "150", w.ttft_target = "2s"; }).value();
    EXPECT_EQ(options.itl_target, std::chrono::milliseconds(150));
    EXPECT_EQ(options.ttft_target, std::chrono::seconds(2));
    EXPECT_EQ(read().value().itl_target, std::nullopt);
    EXPECT_EQ(read().value().slo_policy, engine::SloPolicy::kIgnore);
    EXPECT_EQ(read([](ServeFlags& w) { w.slo_policy = "reject_early", w.ttft_target = "2s"; })
                  .value()
                  .slo_policy,
              engine::SloPolicy::kRejectEarly);
}

TEST_F(ServeFlagsTest, KeysComeFromAFileAndNoneMeansEverybody) {
    EXPECT_TRUE(read().value().access.keys.open());
    const auto file = (folder_ / "keys").string();
    std::ofstream(file) << "alice:k1\n";
    EXPECT_EQ(read([&](ServeFlags& w) { w.access.key_file = file; })
                  .value()
                  .access.keys.client("Bearer k1"),
              "alice");
    std::ofstream(file) << "alice:k1\nbob:\n";
    EXPECT_NE(wrong([&](ServeFlags& w) { w.access.key_file = file; }).find("keys:2"),
              std::string::npos);
    EXPECT_NE(
        wrong([&](ServeFlags& w) { w.access.key_file = file + "-none"; }).find("--api-key-file"),
        std::string::npos);
    EXPECT_NE(
        wrong([&](ServeFlags& w) { w.access.key_file = folder_.string(); }).find("--api-key-file"),
        std::string::npos);
}

TEST_F(ServeFlagsTest, ATemplateComesFromAFileAndMustBeAProgram) {
    EXPECT_EQ(read().value().load.chat_template, "");
    const auto file = (folder_ / "form.jinja").string();
    std::ofstream(file) << "{{ messages[0].content }}";
    EXPECT_EQ(read([&](ServeFlags& w) { w.chat_template = file; }).value().load.chat_template,
              "{{ messages[0].content }}");
    std::ofstream(file) << "{% for m in messages %}";
    const std::string said = wrong([&](ServeFlags& w) { w.chat_template = file; });
    EXPECT_NE(said.find("--chat-template"), std::string::npos);
    EXPECT_NE(said.find("form.jinja"), std::string::npos) << said;
}

TEST_F(ServeFlagsTest, EachWrongValueNamesItsFlag) {
    const std::vector<std::pair<const char*, std::function<void(ServeFlags&)>>> changes = {
        {"--kv-tokens", [](ServeFlags& w) { w.kv_tokens = "0"; }},
        {"--kv-tokens", [](ServeFlags& w) { w.kv_tokens = "12k"; }},
        {"--kv-type", [](ServeFlags& w) { w.kv_type = "q4_0"; }},
        {"--kv-layout", [](ServeFlags& w) { w.kv_layout = "paged"; }},
        {"--admission", [](ServeFlags& w) { w.admission = "hopeful"; }},
        {"--max-sequences", [](ServeFlags& w) { w.max_sequences = 0; }},
        {"--max-queue", [](ServeFlags& w) { w.max_queue = -1; }},
        {"--load-invariant", [](ServeFlags& w) { w.load_invariant = "maybe"; }},
        {"--itl-target", [](ServeFlags& w) { w.itl_target = "0"; }},
        {"--ttft-target", [](ServeFlags& w) { w.ttft_target = "fast"; }},
        {"--slo-policy", [](ServeFlags& w) { w.slo_policy = "hope", w.ttft_target = "2s"; }},
        {"--slo-policy", [](ServeFlags& w) { w.slo_policy = "demote"; }},
        {"--gpu-layers", [](ServeFlags& w) { w.gpu_layers = "-1"; }},
        {"--gpu-layers", [](ServeFlags& w) { w.gpu_layers = "all"; }},
        {"--threads", [](ServeFlags& w) { w.threads = 100'000; }},
        {"--drain", [](ServeFlags& w) { w.drain = "soon"; }},
    };
    for (const auto& [flag, change] : changes)
        EXPECT_NE(wrong(change).find(flag), std::string::npos) << flag;
    const auto target = read([](ServeFlags& w) { w.itl_target = "abc"; });
    ASSERT_FALSE(target);
    EXPECT_NE(target.error().hint.find("200 (milliseconds)"), std::string::npos)
        << "the hint is of that flag's size";
}

}  // namespace
}  // namespace fullstop::cli
