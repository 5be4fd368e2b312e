// A request is what its dialect's server expects, byte by byte where it matters, and read back it
// is the same request.
#include "wire/http/request_text.h"

#include <gmock/gmock.h>
#include <boost/json.hpp>

#include "wire/captures/capture.h"

namespace fullstop::wire {
namespace {

using answer::Api;
using answer::Request;
using testing::HasSubstr;
using testing::Not;

Request request(Api api) {
    Request out;
    out.id = "r-1";
    out.api = api;
    out.model = "m";
    out.messages = {{"system", "Be brief."}, {"user", "Count \"up\"."}};
    out.max_tokens = base::Tokens{64};
    out.temperature = 0.7;
    out.top_p = 0.9;
    out.seed = 7;
    out.stop = {"END"};
    return out;
}

TEST(RequestBody, names_the_limit_as_each_server_does) {
    const auto body = [](Api api) { return request_body(request(api)); };
    EXPECT_EQ(
        body(Api::kOpenAiChat),
        R"({"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Count \"up\"."}],"max_tokens":64,"temperature":7E-1,)"
        R"("top_p":9E-1,"seed":7,"stop":["END"],"stream":true,"stream_options":{"include_usage":true}})");
    EXPECT_THAT(body(Api::kOpenAiCompletions),
                HasSubstr(R"("prompt":"Be brief.\n\nCount \"up\".","max_tokens":64)"));
    EXPECT_THAT(body(Api::kOllama), HasSubstr(R"("options":{"num_predict":64,)"));
    EXPECT_THAT(body(Api::kLlamaServer), HasSubstr(R"("n_predict":64,)"));
    EXPECT_THAT(body(Api::kKoboldCpp), HasSubstr(R"("max_length":64,)"));
    EXPECT_THAT(body(Api::kKoboldCpp),
                HasSubstr(R"("sampler_seed":7,"stop_sequence":["END"],"genkey":"r-1")"));
    EXPECT_THAT(body(Api::kTgi), HasSubstr(R"("parameters":{"max_new_tokens":64,)"));
}

TEST(RequestBody, what_was_not_asked_for_is_not_sent) {
    Request plain;
    plain.messages = {{"user", "Hi"}};
    plain.stream = false;
    EXPECT_EQ(request_body(plain),
              R"({"messages":[{"role":"user","content":"Hi"}],"seed":1,"stream":false})");
}

TEST(RequestBody, tgi_gets_greedy_and_all_in_its_own_words) {
    Request greedy = request(Api::kTgi);
    greedy.temperature = 0;
    EXPECT_THAT(request_body(greedy), HasSubstr(R"("do_sample":false)"));
    EXPECT_THAT(request_body(greedy), Not(HasSubstr("temperature")));
    Request all = request(Api::kTgi);
    all.top_p = 1;
    EXPECT_THAT(request_body(all), Not(HasSubstr("top_p")));
    EXPECT_THAT(request_body(all), HasSubstr(R"("do_sample":true)"));
}

TEST(RequestBody, read_back_it_is_the_same_request) {
    for (const Api api : {Api::kOpenAiChat, Api::kOpenAiCompletions, Api::kOllama,
                          Api::kLlamaServer, Api::kKoboldCpp, Api::kTgi}) {
        const Request sent = request(api);
        const auto read = read_request(request_body(sent));
        ASSERT_TRUE(read) << to_string(api);
        EXPECT_EQ(read->api, api) << to_string(api);
        EXPECT_EQ(read->max_tokens, sent.max_tokens) << to_string(api);
        EXPECT_EQ(read->seed, 7) << to_string(api);
        EXPECT_EQ(read->stop, sent.stop) << to_string(api);
        EXPECT_EQ(read->temperature, 0.7) << to_string(api);
        EXPECT_EQ(read->top_p, 0.9) << to_string(api);
    }
}

TEST(RequestText, is_one_http_request_with_the_length_of_its_body) {
    const ServerUrl url = *parse_server_url("http://[::1]:8080/gw/v1/");
    const std::string text =
        request_text(request(Api::kOpenAiChat), url, {{"Authorization", "Bearer k"}});
    EXPECT_THAT(
        text, testing::StartsWith("POST /gw/v1/chat/completions HTTP/1.1\r\nHost: [::1]:8080\r\n"));
    EXPECT_THAT(text, HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_THAT(text, HasSubstr("\r\nX-Request-Id: r-1\r\n"));
    EXPECT_THAT(text, HasSubstr("\r\nAuthorization: Bearer k\r\n"));
    const auto body_at = text.find("\r\n\r\n") + 4;
    EXPECT_THAT(text,
                HasSubstr("\r\nContent-Length: " + std::to_string(text.size() - body_at) + "\r\n"));
    EXPECT_EQ(text.substr(body_at), request_body(request(Api::kOpenAiChat)));
}

TEST(RequestText, goes_to_the_path_of_its_dialect) {
    const ServerUrl url = *parse_server_url("http://h");
    const auto path = [&](Api api, bool stream) {
        Request asked = request(api);
        asked.stream = stream;
        const std::string text = request_text(asked, url, {});
        return text.substr(5, text.find(' ', 5) - 5);
    };
    EXPECT_EQ(path(Api::kOpenAiCompletions, true), "/v1/completions");
    EXPECT_EQ(path(Api::kOllama, true), "/api/chat");
    EXPECT_EQ(path(Api::kLlamaServer, true), "/completion");
    EXPECT_EQ(path(Api::kKoboldCpp, true), "/api/extra/generate/stream");
    EXPECT_EQ(path(Api::kKoboldCpp, false), "/api/v1/generate");
    EXPECT_EQ(path(Api::kTgi, true), "/generate_stream");
    EXPECT_EQ(path(Api::kTgi, false), "/generate");
}

TEST(RequestText, the_user_s_headers_replace_ours_and_cannot_add_lines) {
    const std::string text =
        get_text(*parse_server_url("http://h:1"), "/props", {{"user-agent", "mine\r\nX-Evil: 1"}});
    EXPECT_THAT(text, testing::StartsWith("GET /props HTTP/1.1\r\nHost: h:1\r\n"));
    EXPECT_THAT(text, HasSubstr("user-agent: mineX-Evil: 1\r\n"));
    EXPECT_THAT(text, Not(HasSubstr("User-Agent")));
}

TEST(ServerUrl, root_v1_and_own_paths_mean_the_same_server) {
    for (const auto* text :
         {"http://localhost:11434", "http://localhost:11434/", "http://localhost:11434/v1",
          "http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions",
          "HTTP://localhost:11434/api/chat"}) {
        const auto url = parse_server_url(text);
        ASSERT_TRUE(url) << text;
        EXPECT_EQ(url->host, "localhost");
        EXPECT_EQ(url->port, 11434);
        EXPECT_EQ(url->base_path, "") << text;
        EXPECT_FALSE(url->tls);
        EXPECT_EQ(url->text, text);
    }
    EXPECT_EQ(parse_server_url("https://gw.example/llm/v1")->base_path, "/llm");
    EXPECT_EQ(parse_server_url("https://gw.example")->port, 443);
    EXPECT_TRUE(parse_server_url("https://gw.example")->tls);
    EXPECT_EQ(parse_server_url("http://[fe80::1]:9/")->host, "fe80::1");
    EXPECT_EQ(parse_server_url("http://h/api/v12")->base_path, "/api/v12");
}

TEST(ServerUrl, a_query_is_sent_and_never_shown) {
    const auto url = parse_server_url("http://h/v1?api_key=secret#part").value();
    EXPECT_EQ(url.text, "http://h/v1");
    EXPECT_THAT(get_text(url, "/v1/models", {}),
                testing::StartsWith("GET /v1/models?api_key=secret HTTP/1.1\r\n"));
    for (const auto* wrong : {"h/?token=secret", "://h?token=secret", "http://a b?token=secret",
                              "http://user:secret@a b", "user:secret@h"}) {
        const auto parsed = parse_server_url(wrong);
        ASSERT_FALSE(parsed) << wrong;
        EXPECT_THAT(parsed.error().message, Not(HasSubstr("secret"))) << wrong;
    }
}

TEST(ServerUrl, what_is_wrong_is_named) {
    const auto message = [](const char* text) {
        const auto url = parse_server_url(text);
        EXPECT_FALSE(url) << text;
        return url ? std::string() : url.error().message;
    };
    EXPECT_THAT(message("localhost:8080"), HasSubstr("no scheme"));
    EXPECT_THAT(message("ftp://h"), HasSubstr("'ftp'"));
    EXPECT_THAT(message("http://user:secret@h/"), HasSubstr("credentials"));
    EXPECT_THAT(message("http://user:secret@h/"), Not(HasSubstr("secret")));
    EXPECT_THAT(message("http://h:99999"), HasSubstr("99999"));
    EXPECT_THAT(message("http://"), HasSubstr("no host"));
    EXPECT_THAT(message("http://a b"), HasSubstr("not a URL"));
    EXPECT_THAT(message("://x"), HasSubstr("not a URL"));
    EXPECT_THAT(message(""), HasSubstr("no scheme"));
}

}  // namespace
}  // namespace fullstop::wire
