// URLs of databases: what is shown of them, and that no password is.
#include "adapters/postgres/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/postgres/trouble.h"

namespace fullstop::adapters::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Target, ItsNameHasEverythingButThePassword) {
    EXPECT_EQ(parse_url("postgresql://me:secret@db.example:5433/runs").value().name,
              "postgresql://me@db.example:5433/runs");
    EXPECT_EQ(parse_url("postgres://me@db/runs?password=secret&sslmode=require").value().name,
              "postgresql://me@db/runs");
    EXPECT_EQ(parse_url("postgresql://me@[::1]:5433/runs").value().name,
              "postgresql://me@[::1]:5433/runs");
    EXPECT_EQ(parse_url("postgresql:///runs?host=/run/postgresql").value().name,
              "postgresql:///runs?host=/run/postgresql");
    EXPECT_EQ(parse_url("postgresql://a:1,b:2/runs").value().name, "postgresql://a,b:1,2/runs");
}

TEST(Target, APasswordIsReadWithItsMarksWritten) {
    const Target target = parse_url("postgresql://me:a%40b%2Fc@db/runs").value();
    EXPECT_EQ(target.options.at("password"), "a@b/c");
    EXPECT_EQ(target.options.at("client_encoding"), "UTF8");
}

TEST(Target, NoErrorRepeatsAPassword) {
    for (const char* url :
         {"postgresql://me:sec@ret@db/runs", "postgresql://me:sec/ret@db/runs",
          "postgresql://me:sec?ret@db/runs", "postgresql://me:sec%zzret@db/runs",
          "postgresql://db/runs?password=sec%zzret",
          "postgresql://me:secret@db:port/runs?nothing=1", "postgresql://me:secret@db/runs?port",
          "postgresql://me:secret@[::1/runs"}) {
        const auto refused = parse_url(url);
        ASSERT_FALSE(refused) << url;
        EXPECT_THAT(refused.error().message + refused.error().hint, Not(HasSubstr("sec"))) << url;
        EXPECT_THAT(refused.error().message + refused.error().hint, Not(HasSubstr("ret@"))) << url;
        EXPECT_FALSE(refused.error().hint.empty());
    }
}

TEST(Refusal, TheStateIsFoundInLibpqsVerboseWords) {
    const Refusal refusal = read_refusal(
        "connection to server at \"::1\", port 5432 failed: FATAL:  28P01: password authentication "
        "failed for user \"me\"\nLOCATION:  auth_failed, "
        "auth.c:338\n");
    EXPECT_EQ(refusal.state, "28P01");
    EXPECT_EQ(refusal.words,
              "connection to server at \"::1\", port 5432 failed: FATAL: password authentication "
              "failed for user \"me\"");
    const Refusal silent = read_refusal(
        "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server "
        "running on that host?\n");
    EXPECT_EQ(silent.state, "");
    EXPECT_EQ(silent.words,
              "connection to server at \"127.0.0.1\", port 1 failed: Connection refused Is the "
              "server running on that host?");
}

}  // namespace
}  // namespace fullstop::adapters::postgres
