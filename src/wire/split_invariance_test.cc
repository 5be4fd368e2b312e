// Where the network cuts the bytes says nothing about an answer: any cut gives the same record, for
// every dialect.
#include <rapidcheck.h>

#include <algorithm>

#include "wire/test_samples.h"

namespace fullstop::wire {
namespace {

std::vector<std::size_t> every_byte(std::size_t size) {
    std::vector<std::size_t> cuts;
    for (std::size_t at = 1; at < size; ++at) cuts.push_back(at);
    return cuts;
}

class SplitInvariance : public testing::TestWithParam<Sample> {};

TEST_P(SplitInvariance, byte_by_byte_gives_the_same_record) {
    const auto& bytes = GetParam().bytes;
    const auto pieces = read_in_pieces(bytes, every_byte(bytes.size()), AnswerReader::Input::kHttp,
                                       StreamEnd::Kind::kFin);
    EXPECT_EQ(describe(pieces), describe(read_all(bytes)));
}

TEST_P(SplitInvariance, any_cut_gives_the_same_record) {
    const auto& bytes = GetParam().bytes;
    const std::string whole = describe(read_all(bytes));
    EXPECT_TRUE(rc::check(GetParam().name, [&](std::vector<std::size_t> cuts) {
        for (auto& cut : cuts) cut %= bytes.size();
        std::ranges::sort(cuts);
        RC_ASSERT(describe(read_in_pieces(bytes, cuts, AnswerReader::Input::kHttp,
                                          StreamEnd::Kind::kFin)) == whole);
    }));
}

TEST_P(SplitInvariance, any_cut_of_an_answer_that_broke_off_gives_the_same_record) {
    const auto& sample = GetParam().bytes;
    EXPECT_TRUE(rc::check(GetParam().name, [&](std::vector<std::size_t> cuts, std::size_t length) {
        const std::string_view bytes =
            std::string_view(sample).substr(0, length % sample.size() + 1);
        for (auto& cut : cuts) cut %= bytes.size();
        std::ranges::sort(cuts);
        RC_ASSERT(describe(read_in_pieces(bytes, cuts, AnswerReader::Input::kHttp,
                                          StreamEnd::Kind::kRst)) ==
                  describe(read_all(bytes, AnswerReader::Input::kHttp, StreamEnd::Kind::kRst)));
    }));
}

INSTANTIATE_TEST_SUITE_P(dialects, SplitInvariance, testing::ValuesIn(samples()),
                         [](const auto& info) { return info.param.name; });

TEST(SplitInvarianceOfRealAnswers, byte_by_byte_gives_the_same_record) {
    for (const auto* name : {"ollama_native_runnerkill9_n1_0.raw", "litellm_fake_close10_n1_0.raw",
                             "direct_stream_n8_0.raw", "haproxy_stall_n1_0.raw"}) {
        const std::string bytes = golden(name);
        const auto pieces = read_in_pieces(bytes, every_byte(bytes.size()),
                                           AnswerReader::Input::kHttp, StreamEnd::Kind::kFin);
        EXPECT_EQ(describe(pieces), describe(read_all(bytes))) << name;
    }
}

}  // namespace
}  // namespace fullstop::wire
