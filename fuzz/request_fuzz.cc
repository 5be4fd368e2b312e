// A client's bytes: heads, chunked bodies, several requests behind one another, in any pieces.
#include <string>
#include <vector>

#include "adapters/asio/server/request_reader.h"
#include "cuts.h"

namespace {

using fullstop::adapters::asio::RequestReader;

/// Above the length of any input: where a limit fires depends on the pieces.
constexpr fullstop::adapters::asio::RequestLimits kLimits{.head_bytes = 1 << 20,
                                                          .body_bytes = 1 << 20};

struct Outcome {
    std::vector<std::string> requests;
    int refused = 0;
};

std::string text_of(const fullstop::net::ServiceRequest& request) {
    std::string out = request.method + " " + request.target + "\n";
    for (const auto& [name, value] : request.headers) out += name + ": " + value + "\n";
    return out + "\n" + request.body;
}

/// False when the reader refused.
bool read(RequestReader& reader, std::string& bytes, Outcome& out) {
    while (true) {
        switch (reader.read(bytes)) {
            case RequestReader::Status::kMore: return true;
            case RequestReader::Status::kHead: (void)reader.head(1); break;
            case RequestReader::Status::kRefused:
                out.refused = reader.refusal_status();
                fullstop::fuzz::require(!reader.refusal_text().empty() && out.refused >= 400,
                                        "a refusal without words");
                return false;
            case RequestReader::Status::kWhole:
                (void)reader.keep_alive();
                out.requests.push_back(text_of(reader.take()));
                reader.next();
                if (bytes.empty()) return true;
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fullstop::fuzz::Input input(data, size);
    Outcome once, cut;
    RequestReader whole(kLimits), pieces(kLimits);
    std::string bytes(input.bytes), waiting;
    if (!bytes.empty()) read(whole, bytes, once);
    fullstop::fuzz::in_pieces(input.bytes, input.pattern, [&](std::string_view piece) {
        return read(pieces, waiting.append(piece), cut);
    });
    fullstop::fuzz::require(once.requests == cut.requests,
                            "a request depends on the pieces it comes in");
    // Whether of two faults the first or the last is named depends on how much Beast sees at once,
    // and so does when a head that is not whole is refused: statuses are not compared.
    return 0;
}
