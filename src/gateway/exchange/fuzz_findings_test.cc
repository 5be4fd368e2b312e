// What fuzz/exchange_fuzz found, one test each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/test_upstream.h"
#include "wire/http/response_text.h"

namespace fullstop::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The upstream's error stands behind a broken chunk and is not passed on: the gateway must say its
/// own.
TEST(FuzzFindings, AnErrorBehindBrokenFramingIsNotTakenForSaid) {
    const std::string head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: "
        "chunked\r\n\r\n";
    const std::string broken = "5\r\n{\"a\":1}\n\r\n";
    const std::string error = wire::chunk("{\"error\":\"out of memory\"}\n");
    for (const bool at_once : {true, false}) {
        Bench bench;
        bench.request(bench.post("/api/chat"));
        bench.connected();
        if (at_once) {
            bench.receive(head + broken + error);
        } else {
            for (const char byte : head + broken + error) bench.receive(std::string(1, byte));
        }
        EXPECT_TRUE(bench.seen.closed);
        EXPECT_THAT(bench.seen.body(), HasSubstr("\"cause\":\"connection_broken\"")) << at_once;
        EXPECT_THAT(bench.seen.body(), Not(HasSubstr("out of memory")));
        EXPECT_FALSE(bench.seen.raw.ends_with("\r\n0\r\n\r\n"));
    }
}

}  // namespace
}  // namespace fullstop::gateway
