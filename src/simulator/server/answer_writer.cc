// Heads, chunks and ends of bodies around a dialect's events.
#include "simulator/server/answer_writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace fullstop::simulator {
namespace {

std::string chunk(std::string_view bytes) {
    return bytes.empty() ? std::string{} : fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200: return "OK";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 404: return "Not Found";
        case 408: return "Request Timeout";
        case 413: return "Content Too Large";
        case 422: return "Unprocessable Entity";
        case 429: return "Too Many Requests";
        case 500: return "Internal Server Error";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        default: return "Status";
    }
}

std::string html_page(int status, std::string_view server) {
    return fmt::format(
        "<html>\r\n<head><title>{0} {1}</title></head>\r\n<body>\r\n<center><h1>{0} "
        "{1}</h1></center>\r\n<hr><center>{2}</center>\r\n</body>\r\n</html>\r\n",
        status, reason_phrase(status), server);
}

/// Bytes of a chunk that never comes: announces more than it holds.
constexpr std::string_view kTornChunk =
    "120\r\ndata: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"con";

}  // namespace

std::string_view server_header(Plays plays) {
    switch (plays) {
        case Plays::kLlamaServer: return "llama.cpp";
        case Plays::kOllama:
        case Plays::kLocalAi: return "";
        default: return "uvicorn";
    }
}

AnswerWriter::AnswerWriter(std::unique_ptr<EventWriter> events, const ServerScript& script,
                           bool stream)
    : events_(std::move(events)), script_(&script), stream_(stream) {}

std::string AnswerWriter::head(
    int status, std::string_view content_type, std::optional<std::size_t> length,
    const std::vector<std::pair<std::string, std::string>>& headers) const {
    std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
    const bool replaced = std::ranges::any_of(
        script_->headers, [](const auto& header) { return header.first == "Server"; });
    if (const auto own = server_header(script_->plays); !own.empty() && !replaced)
        out += fmt::format("Server: {}\r\n", own);
    for (const auto* list : {&script_->headers, &headers})
        for (const auto& [name, value] : *list) out += fmt::format("{}: {}\r\n", name, value);
    out += fmt::format("Content-Type: {}\r\n", content_type);
    out += length ? fmt::format("Content-Length: {}\r\n", *length)
                  : std::string("Transfer-Encoding: chunked\r\n");
    return out + "Connection: close\r\n\r\n";
}

std::string AnswerWriter::token(std::string_view text, bool reasoning,
                                const std::vector<std::pair<std::string, std::string>>& headers) {
    if (!stream_) {
        begun_ = true;
        (reasoning ? reasoning_ : text_) += text;
        return {};
    }
    if (begun_) return chunk(events_->token(text, reasoning));
    begun_ = true;
    return head(200, events_->content_type(), std::nullopt, headers) +
           chunk(events_->opening() + events_->token(text, reasoning));
}

std::string AnswerWriter::verbatim(
    std::string_view event, const std::vector<std::pair<std::string, std::string>>& headers) {
    if (!stream_) return {};
    const auto start = begun_ ? std::string{} : head(200, events_->content_type(), {}, headers);
    begun_ = true;
    return start + chunk(event);
}

AnswerWriter::Last AnswerWriter::end(
    const Ending& ending, const Totals& totals,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    if (!stream_) return end_whole(ending, totals, headers);
    if (begun_) return end_stream(ending, totals, {});
    if (ending.error && !ending.error_always_in_band) return refuse(ending, headers);
    if (!ending.error && ending.body != BodyEnd::kLastChunk)
        return {{}, ending.body == BodyEnd::kReset ? net::CloseKind::kRst : net::CloseKind::kFin};
    return end_stream(ending, totals,
                      head(200, events_->content_type(), std::nullopt, headers) +
                          (ending.opening ? chunk(events_->opening()) : std::string{}));
}

AnswerWriter::Last AnswerWriter::end_stream(const Ending& ending, const Totals& totals,
                                            std::string opening) {
    Last last{std::move(opening)};
    for (const auto& event : events_->closing(ending, totals)) last.bytes += chunk(event);
    if (ending.body == BodyEnd::kLastChunk) last.bytes += "0\r\n\r\n";
    if (ending.body == BodyEnd::kFinInsideChunk) last.bytes += kTornChunk;
    if (ending.body == BodyEnd::kReset) last.close = net::CloseKind::kRst;
    return last;
}

AnswerWriter::Last AnswerWriter::end_whole(
    const Ending& ending, const Totals& totals,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    if (ending.error) return refuse(ending, headers);
    const auto body = events_->whole(ending, totals, text_, reasoning_);
    Last last{head(200, "application/json", body.size(), headers)};
    switch (ending.body) {
        case BodyEnd::kLastChunk: last.bytes += body; break;
        case BodyEnd::kFin: last.bytes.clear(); break;
        case BodyEnd::kFinInsideChunk:
            last.bytes += std::string_view(body).substr(0, body.size() / 2);
            break;
        case BodyEnd::kReset:
            last.bytes.clear();
            last.close = net::CloseKind::kRst;
            break;
    }
    return last;
}

AnswerWriter::Last AnswerWriter::refuse(
    const Ending& ending, const std::vector<std::pair<std::string, std::string>>& headers) const {
    const int status = ending.error->status.value_or(500);
    std::string server(server_header(script_->plays));
    for (const auto& [name, value] : script_->headers)
        if (name == "Server") server = value;
    auto body = ending.html_error ? html_page(status, server) : events_->error_body(*ending.error);
    std::string_view type = ending.html_error ? "text/html" : "application/json; charset=utf-8";
    if (ending.verbatim) {
        body = *ending.verbatim;
        type = body.starts_with('<')   ? "text/html"
               : body.starts_with('{') ? "application/json"
                                       : "text/plain";
    }
    return {head(status, type, body.size(), headers) + body};
}

}  // namespace fullstop::simulator
