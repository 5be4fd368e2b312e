// A child process and one line of its output. Its memory for keys and values is sized so that every
// user of the highest level fits: what is to be seen here is a server in which nothing is cut.
#include "running/embedded_server.h"

#include <fmt/format.h>

#include "adapters/asio/memory.h"
#include "adapters/asio/process.h"

namespace fullstop::running {
namespace {

/// Loading the small model takes a second; a machine that needs longer than this is not measuring
/// anything.
constexpr base::Duration kStartTimeout = std::chrono::minutes(2);
constexpr std::string_view kReady = "listening on ";
/// Room for the longest built-in prompt beside the output.
constexpr base::Tokens kPromptRoom{512};
constexpr base::Tokens kDefaultOutput{512};  ///< when --max-tokens omit leaves it to the server
constexpr int kMaxSequences = 64;            ///< more users than this wait in the server's queue

}  // namespace

struct EmbeddedServer::State {
    std::unique_ptr<adapters::asio::Child> child;
};

EmbeddedServer::EmbeddedServer() = default;
EmbeddedServer::~EmbeddedServer() = default;

base::Result<std::unique_ptr<EmbeddedServer>> EmbeddedServer::start(
    const std::filesystem::path& program, Wanted wanted) {
    const int sequences = std::min(wanted.max_sequences, kMaxSequences);
    const base::Tokens each = wanted.max_tokens.value_or(kDefaultOutput) + kPromptRoom;
    auto child = adapters::asio::Child::start(
        {.program = program.string(),
         .arguments = {"serve", "--model", "builtin", "--listen", "127.0.0.1:0", "--quiet",
                       "--kv-layout", "streams", "--max-sequences", std::to_string(sequences),
                       "--kv-tokens", std::to_string((each * sequences).count)}});
    if (!child) return std::unexpected(child.error());
    std::unique_ptr<EmbeddedServer> server(new EmbeddedServer);
    server->state_ = std::make_unique<State>();
    server->state_->child = std::move(*child);
    auto line = server->state_->child->read_line(kStartTimeout);
    if (!line) return std::unexpected(line.error());
    if (!*line || !(*line)->starts_with(kReady)) {
        const auto ended = server->state_->child->ended();
        return base::unreachable_error(
            fmt::format("the embedded server {}",
                        ended ? ended->words() : "did not say where it listens"),
            server->state_->child->error_tail());
    }
    server->url_ = (*line)->substr(kReady.size());
    return server;
}

std::optional<base::Bytes> EmbeddedServer::resident_memory() const {
    return adapters::asio::resident_memory(state_->child->pid());
}

}  // namespace fullstop::running
