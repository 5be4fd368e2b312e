// Reported: NDJSON objects split or merged by the reads.
#include "exchange.h"

namespace fullstop::regressions {
namespace {

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n";
const std::string kLines =
    R"({"model":"m","message":{"role":"assistant","content":"Hello"},"done":false})"
    "\n"
    R"({"model":"m","message":{"content":" there."},"done":false})"
    "\n";
const std::string kLast =
    R"({"model":"m","message":{"content":""},"done":true,"done_reason":"stop","eval_count":4,"context":[1,2,3,4]})"
    "\n";

TEST(JsonLinesSplit, AnyCutOfTheSameBytesIsTheSameWholeAnswer) {
    const std::string bytes = kHead + kLines + kLast;
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{41}, bytes.size()}) {
        Exchange exchange;
        for (std::size_t at = 0; at < bytes.size(); at += size)
            exchange.bytes(bytes.substr(at, size), 1);
        const answer::Record record = exchange.ends();
        EXPECT_EQ(record.text, "Hello there.") << size;
        EXPECT_EQ(judged(record).cause, Cause::kNaturalEnd) << size << word(judged(record));
    }
}

TEST(JsonLinesSplit, AHalfLastLineIsACut) {
    const judge::Finding finding =
        judged(Exchange().bytes(kHead + kLines + kLast.substr(0, 40)).ends());
    EXPECT_EQ(finding.shortened, true) << word(finding);
}

}  // namespace
}  // namespace fullstop::regressions
