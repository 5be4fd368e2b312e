// From tokens and an Ending to response bytes in one dialect: events, head, framing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/event.h"
#include "simulator/server/ending.h"
#include "simulator/server/server_script.h"

namespace fullstop::simulator {

enum class Dialect { kOpenAi, kOllama, kLlamaNative };

/// Numbers an answer's last events carry.
struct Totals {
    std::int64_t prompt_tokens = 0, output_tokens = 0, reasoning_tokens = 0;
    double prompt_ms = 0, predicted_ms = 0;
};

/// Names that stand in every event.
struct EventNames {
    std::string id, model, fingerprint;
    bool include_usage = false;  ///< the client asked for it
};

/// Writes the events of one dialect; knows nothing of HTTP.
class EventWriter {
public:
    virtual ~EventWriter() = default;
    virtual std::string_view content_type() const = 0;
    virtual std::string opening() const { return {}; }
    virtual std::string token(std::string_view text, bool reasoning) const = 0;
    virtual std::vector<std::string> closing(const Ending& ending, const Totals& totals) const = 0;
    /// The body of an answer that is not streamed.
    virtual std::string whole(const Ending& ending, const Totals& totals, std::string_view text,
                              std::string_view reasoning) const = 0;
    virtual std::string error_body(const answer::ServerError& error) const = 0;
};
std::unique_ptr<EventWriter> make_event_writer(Dialect dialect, const ServerScript& script,
                                               EventNames names);

/// HTTP around the events: head at the first byte, chunks, and the end of the body. Returns bytes
/// to send.
class AnswerWriter {
public:
    AnswerWriter(std::unique_ptr<EventWriter> events, const ServerScript& script, bool stream);

    std::string token(std::string_view text, bool reasoning,
                      const std::vector<std::pair<std::string, std::string>>& headers);
    /// Bytes of an event that the dialect does not know: comments, text that is not JSON.
    std::string verbatim(std::string_view event,
                         const std::vector<std::pair<std::string, std::string>>& headers);
    struct Last {
        std::string bytes;
        net::CloseKind close = net::CloseKind::kFin;
    };
    Last end(const Ending& ending, const Totals& totals,
             const std::vector<std::pair<std::string, std::string>>& headers);

private:
    std::string head(int status, std::string_view content_type, std::optional<std::size_t> length,
                     const std::vector<std::pair<std::string, std::string>>& headers) const;
    Last end_stream(const Ending& ending, const Totals& totals, std::string opening);
    Last end_whole(const Ending& ending, const Totals& totals,
                   const std::vector<std::pair<std::string, std::string>>& headers);
    Last refuse(const Ending& ending,
                const std::vector<std::pair<std::string, std::string>>& headers) const;

    std::unique_ptr<EventWriter> events_;
    const ServerScript* script_;
    bool stream_;
    bool begun_ = false;
    std::string text_, reasoning_;  ///< collected when not streaming
};

/// `text` as a JSON string with its quotes.
std::string json_quoted(std::string_view text);
/// The product's own `Server` header value, "" for none.
std::string_view server_header(Plays plays);

}  // namespace fullstop::simulator
