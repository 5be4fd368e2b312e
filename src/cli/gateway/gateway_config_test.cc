// The file and the flags: what is wrong is named with its line, the documented example is the
// default, and the words of
// --check name every limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "cli/gateway/deadline_table.h"
#include "cli/gateway/gateway_options.h"
#include "cli/gateway/policy_text.h"
#include "tests/support/source_dir.h"

namespace fullstop::cli {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string example() {
    std::ifstream file(tests::source_dir() / "docs/gateway.toml");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// With its examples as well: lines that begin with '#' and no blank.
std::string everything() {
    std::istringstream lines(example());
    std::string out, line;
    while (std::getline(lines, line))
        out += (line.size() > 1 && line[0] == '#' && line[1] != ' ' ? line.substr(1) : line) + "\n";
    return out;
}

std::string error_of(const std::string& text) {
    const auto settings = read_gateway_config(text, "g.toml");
    return settings ? "" : settings.error().message + " (" + settings.error().hint + ")";
}

TEST(GatewayConfig, TheDocumentedFileIsTheDefaults) {
    const auto read = read_gateway_config(example(), "gateway.toml");
    ASSERT_TRUE(read) << read.error().message;
    GatewaySettings defaults;
    defaults.policy.upstreams = read->policy.upstreams;
    EXPECT_EQ(policy_text(*read), policy_text(defaults));
    EXPECT_EQ(read->host, defaults.host);
    EXPECT_EQ(read->port, defaults.port);
    EXPECT_EQ(read->policy.affinity, defaults.policy.affinity);
    EXPECT_EQ(read->policy.output.floor, defaults.policy.output.floor);
    ASSERT_EQ(read->policy.upstreams.size(), 1U);
    EXPECT_TRUE(read->policy.upstreams.front().learn);
    EXPECT_FALSE(read->policy.upstreams.front().max_concurrency);
}

TEST(GatewayConfig, EveryKeyIsInTheDocumentedFile) {
    std::set<std::string> keys;
    const auto read = read_gateway_config(everything(), "gateway.toml", &keys);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_GT(keys.size(), 35U);
    for (const std::string& key : keys) {
        const std::string last = key.substr(key.rfind('.') + 1);
        EXPECT_TRUE(everything().find("\n" + last + " = ") != std::string::npos ||
                    everything().find("[" + key + "]") != std::string::npos ||
                    everything().find("[" + key + ".") != std::string::npos)
            << key;
    }
    EXPECT_EQ(read->policy.output.max_tokens, 2048);
    EXPECT_EQ(read->policy.output.by_load.front().users, 8);
    EXPECT_EQ(read->policy.budgets.routes.at("/v1/chat/completions").tokens, 1'000'000);
    EXPECT_EQ(read->policy.budgets.per_key->window, std::chrono::hours(1));
    EXPECT_EQ(read->policy.upstreams.front().kv_tokens, 8192);
    const gateway::SharedStore shared = read->policy.budgets.shared.value();
    EXPECT_EQ(shared, gateway::SharedStore{.host = "127.0.0.1"})
        << "the documented values are the defaults";
}

TEST(GatewayConfig, TheStoreOfSharedBudgetsIsReadAndItsPasswordNeverShown) {
    const std::string window =
        "[budget.overall]\ntokens = 1000\nwindow = \"1m\"\n[budget.shared]\n";
    const auto read =
        read_gateway_config(window +
                                "url = \"redis://me:s%23cret@[::1]:7000/4\"\nprefix = "
                                "\"home\"\non_loss = \"fail_closed\"\ntimeout = \"80ms\"\n",
                            "g.toml");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read->policy.budgets.shared,
              (gateway::SharedStore{.host = "::1",
                                    .port = 7000,
                                    .user = "me",
                                    .password = "s#cret",
                                    .database = 4,
                                    .prefix = "home",
                                    .on_loss = gateway::SharedStore::OnLoss::kClosed,
                                    .timeout = std::chrono::milliseconds(80)}));
    EXPECT_THAT(policy_text(*read),
                AllOf(HasSubstr("counted in the store at [::1]:7000/4"), HasSubstr("prefix 'home'"),
                      HasSubstr("the store of shared budgets does not answer within 0.08 s (503, "
                                "gateway_rejected)"),
                      Not(HasSubstr("cret"))));
    EXPECT_THAT(policy_text(*read_gateway_config(window + "url = \"redis://h\"\n", "g.toml")),
                HasSubstr("When it does not answer within 0.5 s, this gateway's own counts alone "
                          "decide: N gateways then use at most N times each budget."));
    const auto wrong = [&](const std::string& line) { return error_of(window + line + "\n"); };
    EXPECT_TRUE(read_gateway_config(window + "url = \"rediss://h\"\n", "g.toml")
                    ->policy.budgets.shared->tls);
    EXPECT_THAT(wrong("url = \"http://:cret@h\""),
                AllOf(HasSubstr("g.toml:5: budget.shared.url: http:// is no scheme of a store"),
                      Not(HasSubstr("cret"))));
    EXPECT_THAT(wrong("url = \"redis://:cret@h/two\""),
                AllOf(HasSubstr("the number of a database"), Not(HasSubstr("cret"))));
    EXPECT_THAT(wrong("url = \"redis://:cret@h:99999\""),
                AllOf(HasSubstr("budget.shared.url"), Not(HasSubstr("cret"))));
    EXPECT_THAT(wrong("url = \"redis://me@h\""), HasSubstr("a user without a password"));
    EXPECT_THAT(wrong("url = \"redis://h?x=1\""), HasSubstr("has no '?'"));
    EXPECT_THAT(wrong("url = \"h:6379\""), HasSubstr("budget.shared.url"));
    EXPECT_THAT(wrong("prefix = \"x\""), HasSubstr("budget.shared: wants the url"));
    EXPECT_THAT(wrong("url = \"redis://h\"\nprefix = \"{x}\""),
                HasSubstr("g.toml:6: budget.shared.prefix: wants 1 to 64"));
    EXPECT_THAT(wrong("url = \"redis://h\"\non_loss = \"open\""),
                HasSubstr("g.toml:6: budget.shared.on_loss: wants \"fail_open\""));
    EXPECT_THAT(error_of("[budget.shared]\nurl = \"redis://h\"\n"),
                HasSubstr("budget: has nothing to share"));
}

TEST(GatewayConfig, WhatIsWrongIsNamedWithItsLine) {
    EXPECT_THAT(error_of("drain = \"30s\"\nlisten = \n"), HasSubstr("g.toml:2:"));
    EXPECT_THAT(error_of("\n[deadlines]\nidel = 5\n"),
                AllOf(HasSubstr("g.toml:3: deadlines.idel: unknown key"),
                      HasSubstr("idle, queue_wait, total")));
    EXPECT_THAT(error_of("[deadline]\n"), HasSubstr("g.toml:1: deadline: unknown key"));
    EXPECT_THAT(error_of("[deadlines]\ntotal = \"soon\"\n"),
                HasSubstr("g.toml:2: deadlines.total: wants a time above 0"));
    EXPECT_THAT(error_of("[deadlines]\ntotal = 0\n"),
                HasSubstr("deadlines.total: wants a time above 0"));
    EXPECT_THAT(error_of("[deadlines]\ntotal = true\n"),
                HasSubstr("deadlines.total: wants a time above 0"));
    EXPECT_THAT(error_of("drain = \"none\"\n"), HasSubstr("drain: wants a time above 0"));
    EXPECT_THAT(error_of("[queue]\nmax_requests = \"8\"\n"),
                HasSubstr("g.toml:2: queue.max_requests: wants a whole number from 0 to 1000000"));
    EXPECT_THAT(error_of("[queue.floors]\nurgent = 1\n"),
                HasSubstr("queue.floors.urgent: unknown key"));
    EXPECT_THAT(error_of("retry = 1\n"), HasSubstr("retry: wants true or false"));
    EXPECT_THAT(error_of("[[upstream]]\n"), HasSubstr("g.toml:1: upstream: wants a url"));
    EXPECT_THAT(error_of("[[upstream]]\nurl = \"ftp://x\"\n"),
                HasSubstr("g.toml:2: upstream.url: "));
    EXPECT_THAT(error_of("[upstream]\nurl = \"http://x\"\n"),
                HasSubstr("upstream: wants tables: [[upstream]]"));
    EXPECT_THAT(error_of("[[upstream]]\nurl = \"http://x\"\nmodels = \"a\"\n"),
                HasSubstr("upstream.models: wants a list of texts"));
    EXPECT_THAT(error_of("[output]\nmax_tokens = 10\n"),
                HasSubstr("output.max_tokens: 10 is below the floor of 64"));
    EXPECT_THAT(error_of("[[output.by_load]]\nusers = 8\nmax_tokens = 63\n"),
                HasSubstr("output.by_load.max_tokens: 63 is below the floor of 64"));
    EXPECT_THAT(error_of("[[output.by_load]]\nusers = 8\n"),
                HasSubstr("output.by_load: wants users and max_tokens"));
    EXPECT_THAT(error_of("[budget.per_key]\ntokens = 5\n"),
                HasSubstr("budget.per_key: wants tokens and window"));
    EXPECT_THAT(error_of("[[budget.route]]\ntokens = 5\nwindow = 1\npath = \"v1\"\n"),
                HasSubstr("budget.route: wants the path of a request"));
    EXPECT_THAT(error_of("listen = \"nowhere\"\n"), HasSubstr("g.toml:1: listen: "));
    EXPECT_THAT(error_of("[paths]\nother = \"pass\"\n"),
                HasSubstr("g.toml:2: paths.other: wants \"refuse\" or \"relay\""));
    for (const auto* path : {"/v1/x?y", "/v1/%", "http://x/v1"})
        EXPECT_THAT(error_of("[[budget.route]]\ntokens = 5\nwindow = 1\npath = \"" +
                             std::string(path) + "\"\n"),
                    HasSubstr("wants the path of a request"))
            << path;
    EXPECT_THAT(
        error_of("[[upstream]]\nurl = \"http://x\"\nexpected_output = 9000000000000000000\n"),
        HasSubstr("from 1 to 1000000000"));
}

TEST(GatewayConfig, PathsAreKnownInOneForm) {
    const auto read = read_gateway_config(
        "[paths]\nother = \"relay\"\n[[budget.route]]\npath = \"/v1//chat/completion%73/\"\ntokens "
        "= 5\nwindow = 1\n",
        "g.toml");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->policy.other_paths, gateway::OtherPaths::kRelay);
    EXPECT_TRUE(read->policy.budgets.routes.contains("/v1/chat/completions"));
    EXPECT_THAT(policy_text(*read), AllOf(HasSubstr("Paths that are not known are relayed"),
                                          HasSubstr("its body is no JSON object")));
    EXPECT_THAT(policy_text(GatewaySettings{}),
                AllOf(HasSubstr("a path that is not known and could carry an answer"),
                      Not(HasSubstr("no JSON object"))));
}

TEST(GatewayOptions, FlagsGoBeforeTheFile) {
    GatewayFlags flags;
    flags.config = "g.toml";
    flags.total = "90s";
    flags.idle = "none";
    flags.max_concurrency = 3;
    const auto settings = read_gateway(
        flags,
        "[deadlines]\ntotal = 5\nfirst_token = 7\n[[upstream]]\nurl = \"http://127.0.0.1:1\"\n");
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->policy.deadlines.total, seconds(90));
    EXPECT_EQ(settings->policy.deadlines.idle, std::nullopt);
    EXPECT_EQ(settings->policy.deadlines.first_token, seconds(7));
    ASSERT_EQ(settings->policy.upstreams.size(), 1U);
    EXPECT_EQ(settings->policy.upstreams.front().max_concurrency, 3);
    flags.upstreams = {"http://127.0.0.1:2", "http://127.0.0.1:3"};
    EXPECT_EQ(read_gateway(flags, "[[upstream]]\nurl = \"http://127.0.0.1:1\"\n")
                  ->policy.upstreams.size(),
              2U);
}

TEST(GatewayOptions, WithoutAServerThereIsNothingToDo) {
    const auto settings = read_gateway({}, std::nullopt);
    ASSERT_FALSE(settings);
    EXPECT_THAT(settings.error().hint, AllOf(HasSubstr("--upstream"), HasSubstr("[[upstream]]")));
}

TEST(GatewayOptions, KeysOfServersComeFromTheEnvironmentAndAreShownNowhere) {
    GatewayFlags flags;
    flags.api_key_env = "ALL";
    const auto settings = read_gateway(flags,
                                       "[[upstream]]\nurl = \"http://a:1\"\n[[upstream]]\nurl = "
                                       "\"http://b:1\"\napi_key_env = \"OWN\"\n");
    ASSERT_TRUE(settings) << settings.error().message;
    gateway::Policy policy = settings->policy;
    const auto read = [&](std::map<std::string, std::string> held) {
        return read_api_keys(policy, [&](const std::string& name) {
            return held.contains(name) ? std::optional(held.at(name)) : std::nullopt;
        });
    };
    ASSERT_TRUE(read({{"ALL", "k-all"}, {"OWN", "k-own"}}));
    EXPECT_EQ(policy.upstreams[0].api_key, "k-all");
    EXPECT_EQ(policy.upstreams[1].api_key, "k-own");
    const GatewaySettings shown{.policy = policy};
    EXPECT_THAT(policy_text(shown) + policy_line(policy), Not(HasSubstr("k-")));
    EXPECT_EQ(read({{"ALL", "k-all"}}).error().message,
              "the API key for http://b:1: the environment variable OWN is not set");
    EXPECT_THAT(read({{"ALL", "k\r\nHost: x"}}).error().message,
                AllOf(HasSubstr("ALL holds a control character"), Not(HasSubstr("Host: x"))));
    EXPECT_THAT(error_of("[[upstream]]\nurl = \"http://a:1\"\napi_key_env = \"\"\n"),
                HasSubstr("g.toml:3: upstream.api_key_env: wants the name"));
}

TEST(PolicyText, NameEveryLimitAndItsCause) {
    const auto settings = read_gateway_config(everything(), "gateway.toml");
    ASSERT_TRUE(settings);
    EXPECT_THAT(policy_text(*settings),
                AllOf(HasSubstr("300 s of silence of its server (gateway_idle_timeout)"),
                      HasSubstr("to 2048 tokens, whatever is asked for (default_token_limit"),
                      HasSubstr("to 512 tokens from 8 answers at once on (gateway_token_budget"),
                      HasSubstr("its API key's 200000 tokens in 3600 s are used up"),
                      HasSubstr("/v1/chat/completions's 1000000 tokens"),
                      HasSubstr("answers at once 4, tokens they share 8192, a request without a "
                                "limit is taken to need 1024 tokens")));
    GatewayFlags flags;
    flags.upstreams = {"http://127.0.0.1:1"};
    flags.total = "60s";
    EXPECT_THAT(
        policy_text(*read_gateway(flags, std::nullopt)),
        AllOf(HasSubstr("60 s from arrival to the end, waiting included (gateway_deadline, total)"),
              HasSubstr("No answer is shortened"),
              HasSubstr("Nothing that a server may have read is sent twice"),
              Not(HasSubstr("first_token"))));
}

TEST(DeadlineTable, SaysWhatEachDeadlineAllowsAtEachNumberOfUsers) {
    const gateway::Deadlines deadlines{.queue_wait = seconds(9),
                                       .first_token = seconds(3),
                                       .idle = seconds(300),
                                       .total = seconds(60)};
    const std::string table =
        deadline_table(deadlines,
                       {{.users = 1, .tokens_per_second = 40, .first_token_s = 0.5},
                        {.users = 8, .tokens_per_second = 5, .first_token_s = 4}},
                       "Measured.");
    EXPECT_THAT(table,
                AllOf(HasSubstr("total 60 s: tokens that fit               2380         280\n"),
                      HasSubstr("first token 3 s                     any length        none\n"),
                      HasSubstr("idle 300 s, in one piece                 11980        1480\n"),
                      HasSubstr("queue wait 9 s: refuses")));
    EXPECT_THAT(
        deadline_table({.queue_wait = {}, .first_token = {}, .idle = {}, .total = {}}, {}, ""),
        HasSubstr("no deadline is set"));
}

}  // namespace
}  // namespace fullstop::cli
