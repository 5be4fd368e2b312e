// What a server repeats of our keys.
#include "cli/probe/own_secrets.h"

#include <gtest/gtest.h>

namespace fullstop::cli {
namespace {

OwnSecrets secrets() {
    OwnSecrets out;
    out.learn(wire::Headers{{"Authorization", "Bearer sk-12345678"},
                            {"X-Api-Key", "abcdefgh"},
                            {"X-Tenant", "berliners"},
                            {"X-Token", "abc"}});
    out.learn(
        wire::parse_server_url("http://127.0.0.1:1/v1?api_key=in-the-query&user=somebody").value());
    return out;
}

TEST(OwnSecrets, AreReplacedWhereverAServerRepeatsThem) {
    answer::Record record;
    record.text = "your key sk-12345678 of berliners";
    record.headers["x-echo"] = "Bearer sk-12345678";
    record.end.error = {.status = 401,
                        .code = "abcdefgh",
                        .type = "",
                        .text = "no sk-12345678, no in-the-query, somebody",
                        .where = {}};
    record.server_errors = {*record.end.error};
    record.stop_details["stop_reason"] = "abcdefgh";
    record.capture.bytes = "15\r\n{\"error\":\"sk-12345678\"}\r\n";
    const std::size_t size = record.capture.bytes.size();
    secrets().hide(record);
    EXPECT_EQ(record.text, "your key [key] of berliners");
    EXPECT_EQ(record.headers["x-echo"], "[key]");
    EXPECT_EQ(record.end.error->code, "[key]");
    EXPECT_EQ(record.server_errors[0].text, "no [key], no [key], somebody");
    EXPECT_EQ(record.stop_details["stop_reason"], "[key]");
    EXPECT_EQ(record.capture.bytes, "15\r\n{\"error\":\"[key]******\"}\r\n");
    EXPECT_EQ(record.capture.bytes.size(), size);
}

TEST(OwnSecrets, OfWhoIsAskedWhoItIs) {
    observe::Identity identity;
    identity.trouble = "it wants an API key (HTTP 401: sk-12345678 is wrong)";
    identity.models = {"sk-12345678"};
    identity.facts.raw["/props"] = "{\"key\":\"abcdefgh\"}";
    secrets().hide(identity);
    EXPECT_EQ(identity.trouble, "it wants an API key (HTTP 401: [key] is wrong)");
    EXPECT_EQ(identity.models[0], "[key]");
    EXPECT_EQ(identity.facts.raw["/props"], "{\"key\":\"[key]\"}");
}

}  // namespace
}  // namespace fullstop::cli
