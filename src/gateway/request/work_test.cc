// What is read from a request: who asks, for how much, how urgently, and whether comments would do
// harm.
#include "gateway/request/work.h"

#include <gtest/gtest.h>

namespace fullstop::gateway {
namespace {

net::ServiceRequest post(const std::string& target, const std::string& body) {
    return {.id = 1, .method = "POST", .target = target, .headers = {}, .body = body};
}

Work work_of(const std::string& target, const std::string& body) {
    return *read_work(post(target, body));
}

TEST(Work, OnlyPostsToPathsOfAnswersAreWork) {
    EXPECT_TRUE(work_of("/v1/chat/completions", "{}").answer);
    EXPECT_TRUE(work_of("/v1/completions?x=1", "{}").answer);
    EXPECT_FALSE(work_of("/v1/embeddings", R"({"input":"x"})").answer);
    auto get = post("/v1/chat/completions", "");
    get.method = "GET";
    EXPECT_FALSE(read_work(get)->answer);
}

TEST(Work, PromptsAreCountedInTextAndPicturesApart) {
    const Work work = work_of(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"12345"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},)"
        R"({"role":"assistant","content":"123"}],"n":3,"max_tokens":7,"model":"m"})");
    EXPECT_EQ(work.images, 1);
    EXPECT_EQ(work.messages, 2);
    EXPECT_EQ(work.answers, 3);
    EXPECT_EQ(work.max_tokens, 7);
    EXPECT_EQ(work.model, "m");
    EXPECT_GE(work.prompt_bytes, 8);
    EXPECT_LT(work.prompt_bytes, 60) << "names of roles and types, and no picture";
    EXPECT_EQ(prompt_tokens(work, 0), kTemplateTokens + 2 * kMessageTokens + kImageTokens);
}

TEST(Work, WhichStreamsBearComments) {
    struct Row {
        const char *target, *body;
        bool stream, sse;
    };
    for (const Row& row :
         {Row{"/v1/chat/completions", R"({"stream":true})", true, true},
          Row{"/v1/chat/completions", R"({"stream":false})", false, false},
          Row{"/v1/chat/completions", "{}", false, false},
          Row{"/completion", R"({"stream":true})", true, true}, Row{"/api/chat", "{}", true, false},
          Row{"/api/chat", R"({"stream":true})", true, false},
          Row{"/api/generate", R"({"stream":false})", false, false},
          Row{"/generate_stream", "{}", true, true}}) {
        const Work work = work_of(row.target, row.body);
        EXPECT_EQ(work.stream, row.stream) << row.target << row.body;
        EXPECT_EQ(work.sse, row.sse) << row.target << row.body;
    }
}

TEST(Work, WhatBelongsTogetherIsTheSessionElseTheBeginning) {
    const auto affinity = [](const std::string& body, const std::string& session = "") {
        auto request = post("/v1/chat/completions", body);
        if (!session.empty()) request.headers["x-session-id"] = session;
        return read_work(request)->affinity;
    };
    const std::string one =
        R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"}]})";
    const std::string two =
        R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"b"}]})";
    const std::string other =
        R"({"messages":[{"role":"system","content":"Be long."},{"role":"user","content":"a"}]})";
    EXPECT_EQ(affinity(one), affinity(two));
    EXPECT_NE(affinity(one), affinity(other));
    EXPECT_EQ(affinity(one, "s"), affinity(other, "s"));
    EXPECT_NE(affinity(one, "s"), affinity(one, "t"));
    EXPECT_EQ(affinity(R"({"user":"u","prompt":"x"})"), affinity(R"({"user":"u","prompt":"y"})"));
    EXPECT_EQ(affinity("{}"), 0U);
}

TEST(Work, AKeyIsKnownByItsDigestOnly) {
    auto request = post("/v1/chat/completions", "{}");
    EXPECT_EQ(read_work(request)->client, "");
    request.headers["authorization"] = "Bearer secret";
    const Work work = *read_work(request);
    EXPECT_EQ(work.client.size(), 16U);
    EXPECT_EQ(work.client.find("secret"), std::string::npos);
    request.headers["authorization"] = "Bearer other";
    EXPECT_NE(read_work(request)->client, work.client);
}

TEST(Work, ABodyThatIsNoJsonIsTheUpstreamsToRefuseUnlessLimitsHold) {
    for (const std::string body : {"", "no json", "[1]", "{\"messages\":", "\xEF\xBB\xBF{}",
                                   R"({"x":NaN})", "{}x", "{/**/}"}) {
        EXPECT_TRUE(read_work(post("/v1/chat/completions", body))) << body;
        EXPECT_FALSE(read_work(post("/v1/chat/completions", body), true)) << body;
        EXPECT_TRUE(read_work(post("/v1/embeddings", body), true)) << body;
    }
    EXPECT_TRUE(read_work(post("/v1/chat/completions", R"({"fullstop":null})")));
    EXPECT_FALSE(read_work(post("/v1/chat/completions", R"({"fullstop":{"priority":3}})")));
    EXPECT_FALSE(read_work(post("/v1/chat/completions", R"({"fullstop":{"deadline_ms":"9"}})")));
}

TEST(Work, NumbersAreClampedToWhatTheyCanMean) {
    const auto tokens = [](const std::string& number) {
        return work_of("/v1/chat/completions", R"({"max_tokens":)" + number + "}").max_tokens;
    };
    for (const auto* huge : {"9007199254740992", "9223372036854775807", "99999999999999999999",
                             "1e30", "1e300", "\"9223372036854775807\""})
        EXPECT_EQ(tokens(huge), kMostTokens) << huge;
    EXPECT_EQ(tokens("64.9"), 65);
    EXPECT_EQ(tokens("6.4e1"), 64);
    for (const auto* none : {"-1", "0", "null", "1e400", "true", "\"x\""})
        EXPECT_EQ(tokens(none), std::nullopt) << none;
    const auto answers = [](const std::string& body) {
        return work_of("/v1/completions", body).answers;
    };
    for (const auto* many :
         {R"({"n":1e300})", R"({"n":"128"})", R"({"n":129})", R"({"n":64,"prompt":["a","b","c"]})"})
        EXPECT_EQ(answers(many), 128) << many;
    for (const auto* one : {R"({"n":-5})", R"({"n":null})", R"({"prompt":[1,2,3]})",
                            R"({"prompt":"x"})", R"({"prompt":["x"]})"})
        EXPECT_EQ(answers(one), 1) << one;
    EXPECT_EQ(answers(R"({"prompt":[[1,2],[3]]})"), 2);
}

TEST(Work, ALimitIsFoundInEachDialectsSpelling) {
    const auto limit = [](const std::string& path, const std::string& body) {
        return work_of(path, body).max_tokens;
    };
    EXPECT_EQ(limit("/v1/chat/completions", R"({"max_tokens":5})"), 5);
    EXPECT_EQ(limit("/completion", R"({"n_predict":6})"), 6);
    EXPECT_EQ(limit("/api/chat", R"({"options":{"num_predict":7}})"), 7);
    EXPECT_EQ(limit("/generate", R"({"parameters":{"max_new_tokens":8}})"), 8);
    EXPECT_EQ(limit("/completion", R"({"n_predict":-1})"), std::nullopt);
    EXPECT_EQ(limit("/completion", "not json"), std::nullopt);
    EXPECT_EQ(limit("/completion", ""), std::nullopt);
}

TEST(Work, AStreamedChatOfOneAnswerOfTextIsPlain) {
    const auto plain = [](const std::string& messages, const std::string& more = "",
                          const std::string& path = "/v1/chat/completions") {
        return work_of(path, R"({"stream":true,"messages":)" + messages + more + "}").plain_chat;
    };
    const std::string user = R"([{"role":"assistant"},{"content":"x","role":"user"}])";
    for (const auto* asks_for_nothing :
         {"", R"(,"n":1)", R"(,"n":null)", R"(,"tools":[],"echo":false,"grammar":"")",
          R"(,"response_format":null)", R"(,"response_format":{"type":"text"})",
          R"(,"max_tokens":-1,"seed":7,"stop":["a"],"user":"tools")"})
        EXPECT_TRUE(plain(user, asks_for_nothing)) << asks_for_nothing;
    for (const auto* asks_for_more :
         {R"(,"n":2)", R"(,"n":1.0)", R"(,"tools":[{}])", R"(,"tools":[null])", R"(,"echo":true)",
          R"(,"json_schema":{})", R"(,"logprobs":0)", R"(,"grammar":"root")",
          R"(,"grammar":"root","grammar":"")", R"(,"response_format":{})",
          R"(,"response_format":{"schema":{"type":"text"}})",
          R"(,"response_format":{"type":"json_object"})", R"(,"response_format":["text"])",
          R"(,"response_format":{"type":"text","type":"json_object"})"})
        EXPECT_FALSE(plain(user, asks_for_more)) << asks_for_more;
    for (const auto* not_the_users_turn :
         {"[]", "null", R"({"":{}})", R"(["x"])", R"([[{"role":"user"}]])",
          R"([{"role":"user"},{"role":"assistant"}])", R"([{"role":"assistant","role":"user"}])"})
        EXPECT_FALSE(plain(not_the_users_turn)) << not_the_users_turn;
    EXPECT_FALSE(work_of("/v1/chat/completions", R"({"messages":)" + user + "}").plain_chat);
    EXPECT_FALSE(plain(user, "", "/v1/completions"));
}

TEST(Work, OfSeveralLimitsTheLargestCounts) {
    EXPECT_EQ(work_of("/v1/chat/completions", R"({"max_tokens":1,"max_completion_tokens":5000})")
                  .max_tokens,
              5000);
    EXPECT_EQ(work_of("/v1/chat/completions", R"({"max_tokens":9,"options":{"num_predict":5000}})")
                  .max_tokens,
              9)
        << "nobody looks there";
    EXPECT_EQ(work_of("/v1/chat/completions", R"({"max_tokens":9,"max_completion_tokens":-1})")
                  .max_tokens,
              std::nullopt)
        << "no limit, in some reader's eyes";
    EXPECT_EQ(work_of("/v1/chat/completions", R"({"max_tokens":9,"max_completion_tokens":null})")
                  .max_tokens,
              9);
    EXPECT_EQ(work_of("/v1/responses", R"({"max_output_tokens":7})").max_tokens, 7);
}

TEST(Work, TokensAndPicturesOfAPromptAreCountedInEveryDialect) {
    EXPECT_EQ(work_of("/v1/completions", R"({"prompt":[1,2,3]})").prompt_ids, 3);
    EXPECT_EQ(work_of("/v1/completions", R"({"prompt":[[1,2],[3]]})").prompt_ids, 3);
    const Work anthropic = work_of(
        "/v1/messages",
        R"({"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AAAAAAAA"}}]}]})");
    EXPECT_EQ(anthropic.images, 1);
    EXPECT_EQ(
        work_of("/api/chat", R"({"messages":[{"content":"x","images":["AAAA","BBBB"]}]})").images,
        2);
    EXPECT_EQ(work_of("/v1/responses",
                      R"({"instructions":"12345","input":[{"role":"user","content":"123"},{}]})")
                  .messages,
              2);
}

TEST(Work, BodiesBeyondTheBoundsAreRefused) {
    const auto of = [](const std::string& body) {
        return read_work(post("/v1/chat/completions", body));
    };
    std::string many = R"({"messages":[0)";
    for (std::size_t i = 0; i < kMaxRequestValues; ++i) many += ",0";
    EXPECT_FALSE(of(many + "]}"));
    const auto nested = [](int levels) {
        return R"({"messages":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
    };
    EXPECT_TRUE(of(nested(kMaxRequestDepth)));
    EXPECT_FALSE(of(nested(kMaxRequestDepth + 1)));
    const std::string text(1 << 20, ',');
    EXPECT_EQ(of(R"({"messages":[{"content":")" + text + R"("}]})")->prompt_bytes, 1 << 20);
    EXPECT_EQ(of(R"({"model":")" + text + R"("})")->model.size(), kMaxModelBytes);
}

}  // namespace
}  // namespace fullstop::gateway
