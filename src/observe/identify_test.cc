// Who a server is, and what is said when it cannot be asked: every trouble with its next step, none
// without an end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/limits.h"
#include "observe/observer.h"
#include "observe/test_samples.h"
#include "observe/test_server.h"

namespace fullstop::observe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const wire::ServerUrl kUrl{.host = "127.0.0.1",
                           .port = 8080,
                           .tls = false,
                           .base_path = "",
                           .query = "",
                           .text = "http://127.0.0.1:8080"};

Identity identify(TestServer& server, wire::ServerUrl url = kUrl, wire::Headers headers = {}) {
    Identity identity;
    Identify part(std::move(url), std::move(headers), identity);
    server.run(part);
    EXPECT_TRUE(part.done());
    EXPECT_EQ(server.open(), 0u) << "nothing stays open";
    EXPECT_LE(server.most_open, 1u) << "one question at a time";
    return identity;
}

TestServer llama_server() {
    TestServer server;
    server.json("/v1/models", std::string(samples::kLlamaModels));
    server.json("/props", std::string(samples::kLlamaProps));
    server.json("/slots", std::string(samples::kLlamaSlots));
    server.replies["/metrics"] =
        TestServer::http(200, std::string(samples::kLlamaMetrics), "text/plain; version=0.0.4");
    return server;
}

TEST(Identify, LlamaServerWithItsFactsAndVerbatimBodies) {
    TestServer server = llama_server();
    const Identity identity = identify(server);
    EXPECT_TRUE(identity.reachable);
    EXPECT_EQ(identity.trouble, "");
    EXPECT_EQ(identity.facts.name, "llama-server");
    EXPECT_EQ(identity.api, answer::Api::kOpenAiChat);
    EXPECT_THAT(identity.models, testing::ElementsAre("SmolLM2-135M-Instruct.Q4_1.gguf"));
    EXPECT_EQ(identity.facts.window.value->count, 1024);
    EXPECT_EQ(identity.facts.raw.at("/props"), samples::kLlamaProps);
    EXPECT_TRUE(identity.facts.raw.contains("/slots") && identity.facts.raw.contains("/metrics"));
    EXPECT_THAT(server.asked, testing::Not(testing::Contains("GET /api/version")))
        << "known servers are not asked what is not theirs";
}

TEST(Identify, LlamaServerWithoutMetricsStillHasItsWindow) {
    TestServer server = llama_server();
    server.replies["/metrics"] = TestServer::http(
        501,
        R"({"error":{"code":501,"message":"This server does not support metrics endpoint. Start it with `--metrics`"}})");
    server.replies.erase("/slots");
    const Identity identity = identify(server);
    EXPECT_TRUE(identity.reachable);
    EXPECT_EQ(identity.facts.slots.value, 8);
    EXPECT_FALSE(identity.facts.raw.contains("/metrics"));
}

TEST(Identify, Fullstop) {
    TestServer server;
    server.json(
        "/v1/models",
        R"({"object":"list","data":[{"id":"smol","object":"model","owned_by":"fullstop","max_model_len":2048}]})");
    server.json("/fullstop/status", std::string(samples::kFullstopStatus));
    const Identity identity = identify(server);
    EXPECT_EQ(identity.facts.name, "fullstop");
    EXPECT_EQ(identity.facts.kv_bytes_per_token.value->count, 12240);
    EXPECT_THAT(server.asked,
                testing::ElementsAre("GET /v1/models", "GET /fullstop/status", "GET /metrics"));
}

TEST(Identify, Vllm) {
    TestServer server;
    server.json("/v1/models", std::string(samples::kVllmModels));
    server.json("/version", R"({"version":"0.22.0"})");
    server.replies["/metrics"] =
        TestServer::http(200, std::string(samples::kVllmMetrics), "text/plain");
    const Identity identity = identify(server);
    EXPECT_EQ(identity.facts.name, "vllm");
    EXPECT_EQ(identity.facts.version, "0.22.0");
    EXPECT_EQ(identity.facts.pool.value->count, 2016);
}

TEST(Identify, OllamaIsProbedInItsOwnDialectAndAskedAboutItsModel) {
    TestServer server;
    server.json(
        "/v1/models",
        R"({"object":"list","data":[{"id":"smol:latest","object":"model","owned_by":"library"}]})");
    server.json("/api/version", R"({"version":"0.17.4"})");
    server.json("/api/ps", std::string(samples::kOllamaPs));
    server.json("/api/show", std::string(samples::kOllamaShow));
    const Identity identity = identify(server);
    EXPECT_EQ(identity.facts.name, "ollama");
    EXPECT_EQ(identity.api, answer::Api::kOllama);
    EXPECT_EQ(identity.facts.window.value->count, 4096);
    EXPECT_THAT(server.asked, testing::Contains("POST /api/show"));
    EXPECT_THAT(server.requests.back(), HasSubstr("{\"model\":\"smol:latest\"}"));
    EXPECT_THAT(server.requests.back(), HasSubstr("Content-Length: 23\r\n"));
}

TEST(Identify, TgiKoboldCppAndSglang) {
    TestServer tgi;
    tgi.json("/v1/models",
             R"({"object":"list","data":[{"id":"smol","object":"model","owned_by":"smol"}]})");
    tgi.json("/info", std::string(samples::kTgiInfo));
    EXPECT_EQ(identify(tgi).facts.name, "tgi");
    TestServer kobold;
    kobold.json(
        "/v1/models",
        R"({"object":"list","data":[{"id":"koboldcpp/smol","object":"model","owned_by":"koboldcpp"}]})");
    kobold.json("/api/extra/version", R"({"result":"KoboldCpp","version":"1.102"})");
    kobold.json("/api/version", R"({"version":"0.7.0"})");  // it plays Ollama too
    EXPECT_EQ(identify(kobold).facts.name, "koboldcpp");
    TestServer sglang;
    sglang.json(
        "/v1/models",
        R"({"object":"list","data":[{"id":"smol","object":"model","owned_by":"sglang","max_model_len":8192}]})");
    sglang.json("/get_server_info", std::string(samples::kSglangInfo));
    EXPECT_EQ(identify(sglang).facts.pool.value->count, 20000);
}

TEST(Identify, AnUnknownOpenAiServerIsUsableAndItsGapsHaveReasons) {
    TestServer server;
    server.json("/v1/models", R"({"object":"list","data":[{"id":"m","object":"model"}]})");
    const Identity identity = identify(server);
    EXPECT_TRUE(identity.reachable);
    EXPECT_EQ(identity.facts.name, "unknown");
    EXPECT_THAT(identity.facts.how, HasSubstr("/v1/models"));
    EXPECT_EQ(identity.facts.pool.how, "the server is not recognised");
}

TEST(Identify, OneQuestionIsEnoughWhenNobodyListens) {
    TestServer server;
    server.refuses = net::ConnectFailed{0, net::ConnectFailure::kRefused, "Connection refused"};
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_EQ(identity.trouble, "the connection was refused (Connection refused)");
    EXPECT_THAT(identity.hint, HasSubstr("port"));
}

TEST(Identify, TlsTroubleNamesTheSwitch) {
    TestServer server;
    server.refuses = net::ConnectFailed{0, net::ConnectFailure::kTls, "wrong version number"};
    wire::ServerUrl url = kUrl;
    url.tls = true;
    const Identity identity = identify(server, url);
    EXPECT_THAT(identity.trouble, HasSubstr("TLS handshake failed (wrong version number)"));
    EXPECT_THAT(identity.hint, HasSubstr("--insecure"));
}

TEST(Identify, AMissingKeyNamesTheOption) {
    TestServer server;
    server.replies["/v1/models"] = TestServer::http(
        401, R"({"error":{"message":"Invalid API Key","type":"authentication_error","code":401}})");
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_EQ(identity.trouble, "it wants an API key (HTTP 401: Invalid API Key)");
    EXPECT_THAT(identity.hint, HasSubstr("--api-key-env"));
    EXPECT_EQ(server.asked.size(), 1u);
}

TEST(Identify, TheKeyIsSentAndKeptNowhere) {
    TestServer server = llama_server();
    const Identity identity = identify(server, kUrl, {{"Authorization", "Bearer s3cret"}});
    EXPECT_THAT(server.requests, testing::Each(HasSubstr("Bearer s3cret")));
    for (const auto& [path, body] : identity.facts.raw)
        EXPECT_EQ(body.find("s3cret"), std::string::npos);
}

TEST(Identify, AServerThatIsStillLoadingSaysSo) {
    TestServer server;
    server.replies["/v1/models"] = TestServer::http(
        503, R"({"error":{"message":"Loading model","type":"unavailable_error","code":503}})");
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_EQ(identity.trouble, "it is not ready (HTTP 503: Loading model)");
}

TEST(Identify, ARedirectNamesTheAddress) {
    TestServer server;
    server.replies["/v1/models"] =
        TestServer::http(301, "", "text/html", "Location: https://llm.example/v1/models\r\n");
    EXPECT_EQ(identify(server).trouble, "it redirects (HTTP 301) to https://llm.example/v1/models");
}

TEST(Identify, AWebInterfaceIsNotTakenForAnApi) {
    TestServer server;
    for (const char* path :
         {"/v1/models", "/fullstop/status", "/props", "/api/extra/version", "/info",
          "/get_server_info", "/version", "/api/version", "/api/v0/models", "/metrics"})
        server.replies[path] =
            TestServer::http(200, "<!doctype html><title>Chat</title>", "text/html");
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_EQ(identity.trouble, "it answers with an HTML page where JSON was due");
    EXPECT_THAT(identity.hint, HasSubstr("web interface"));
}

TEST(Identify, AGatewayWithoutAModelListMayStillBeProbed) {
    TestServer server;  // 404 in JSON everywhere
    const Identity identity = identify(server);
    EXPECT_TRUE(identity.reachable);
    EXPECT_TRUE(identity.models.empty());
    EXPECT_THAT(identity.hint, HasSubstr("--model"));
}

TEST(Identify, AServerThatAcceptsAndNeverAnswersCostsOneWait) {
    TestServer server;
    server.silent.insert("/v1/models");
    const base::Instant before = server.now();
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_THAT(identity.trouble, HasSubstr("did not answer within 5 s"));
    EXPECT_EQ(server.now() - before, net::kObserveTimeout);
}

TEST(Identify, SilentSideEndpointsEndTheQuestioning) {
    TestServer server;
    server.json("/v1/models", std::string(samples::kVllmModels));
    for (const char* path : {"/fullstop/status", "/props", "/api/extra/version", "/info",
                             "/get_server_info", "/version", "/metrics"})
        server.silent.insert(path);
    const base::Instant before = server.now();
    const Identity identity = identify(server);
    EXPECT_TRUE(identity.reachable);
    EXPECT_LT(server.now() - before, 3 * net::kObserveTimeout);
}

TEST(Identify, AnEndlessHeadAndAHugeBodyAreBounded) {
    TestServer head;
    head.replies["/v1/models"] = "HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x');
    EXPECT_THAT(identify(head).trouble, HasSubstr("head is larger than 64 KiB"));
    TestServer body;
    body.replies["/v1/models"] = "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" +
                                 std::string(net::kMaxObserveBytes + 10, ' ');
    EXPECT_THAT(identify(body).trouble, HasSubstr("larger than 4 MiB"));
}

TEST(Identify, NoHttpAtAllIsSaid) {
    TestServer server;
    server.replies["/v1/models"] = std::string("\x15\x03\x01\x00\x02\x02\x46", 7);  // a TLS alert
    server.closes.insert("/v1/models");
    const Identity identity = identify(server);
    EXPECT_FALSE(identity.reachable);
    EXPECT_THAT(identity.hint, HasSubstr("https://"));
}

TEST(Identify, ACutBodyIsNotTakenForAnAnswer) {
    TestServer server;
    server.replies["/v1/models"] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
        "500\r\n\r\n{\"data\":[";
    server.closes.insert("/v1/models");
    EXPECT_THAT(identify(server).trouble,
                HasSubstr("closed the connection without a whole HTTP answer"));
}

TEST(Identify, ABodyThatEndsByCloseIsWhole) {
    TestServer server;
    server.replies["/v1/models"] = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" +
                                   std::string(samples::kVllmModels);
    server.closes.insert("/v1/models");
    EXPECT_THAT(identify(server).models, testing::ElementsAre("smol"));
}

TEST(Identify, RawBodiesAreBounded) {
    TestServer server = llama_server();
    server.replies["/metrics"] = TestServer::http(200, std::string(200'000, '#'), "text/plain");
    EXPECT_EQ(identify(server).facts.raw.at("/metrics").size(), 64u * 1024);
}

TEST(Identify, AnInterruptionEndsIt) {
    TestServer server;
    server.silent.insert("/v1/models");
    server.interrupt(1s);
    EXPECT_FALSE(identify(server).reachable);
}

}  // namespace
}  // namespace fullstop::observe
