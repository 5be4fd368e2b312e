// What is read from a request: who asks, for how much, how urgently, and whether comments would do harm.
#include "gateway/work.h"

#include <gtest/gtest.h>

namespace fullstop::gateway {
namespace {

net::ServiceRequest post(const std::string& target, const std::string& body) {
    return {.id = 1, .method = "POST", .target = target, .headers = {}, .body = body};
}

Work work_of(const std::string& target, const std::string& body) { return *read_work(post(target, body)); }

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
    for (const Row& row : {Row{"/v1/chat/completions", R"({"stream":true})", true, true}, Row{"/v1/chat/completions", R"({"stream":false})", false, false},
                           Row{"/v1/chat/completions", "{}", false, false}, Row{"/completion", R"({"stream":true})", true, true},
                           Row{"/api/chat", "{}", true, false}, Row{"/api/chat", R"({"stream":true})", true, false},
                           Row{"/api/generate", R"({"stream":false})", false, false}, Row{"/generate_stream", "{}", true, true}}) {
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
    const std::string one = R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"}]})";
    const std::string two = R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"b"}]})";
    const std::string other = R"({"messages":[{"role":"system","content":"Be long."},{"role":"user","content":"a"}]})";
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

TEST(Work, ABodyThatIsNoJsonIsTheUpstreamsToRefuse) {
    for (const auto* body : {"", "no json", "[1]", "{\"messages\":"}) EXPECT_TRUE(read_work(post("/v1/chat/completions", body))) << body;
    EXPECT_TRUE(read_work(post("/v1/chat/completions", R"({"fullstop":null})")));
    EXPECT_FALSE(read_work(post("/v1/chat/completions", R"({"fullstop":{"priority":3}})")));
}

}  // namespace
}  // namespace fullstop::gateway
