// Files that people give to `fullstop explain`: any bytes are read for what they are or refused
// with words, and what was read is written and read again as the same answer.
#include <string>

#include "cuts.h"
#include "watch.h"
#include "wire/captures/capture.h"

namespace {

using namespace fullstop;

std::string facts(const answer::Record& r) {
    std::string out = r.text + "|" + r.end.reason.value_or("-") + "|" +
                      (r.end.error ? r.end.error->text : "-") + (r.end.terminator ? "|T" : "|");
    return out + std::to_string(static_cast<int>(r.end.transport));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::Input input(data, size);
    // Behind a line of its own there may be a request for answers whose file holds none.
    const auto cut = input.choice % 2 == 0 ? input.bytes.find("\n---\n") : std::string_view::npos;
    const std::string_view file = input.bytes.substr(0, cut);
    const std::string_view request =
        cut == std::string_view::npos ? std::string_view() : input.bytes.substr(cut + 5);
    const fuzz::Watch watch("reading a file");
    (void)wire::read_request(input.bytes);
    (void)wire::read_response(input.bytes);
    (void)wire::read_body(input.bytes);
    const auto records = wire::read_capture(file, request);
    if (!records) {
        fuzz::require(!records.error().message.empty(), "a file is refused without words");
        return 0;
    }
    for (const answer::Record& record : *records) {
        // Our own form keeps bodies without their framing: of bytes that were no response it keeps
        // nothing.
        if (!record.status || record.end.transport != answer::Transport::kClean ||
            record.capture.truncated)
            continue;
        const auto again = wire::read_capture(wire::write_capture(record));
        const bool same = again && again->size() == 1 && facts(again->front()) == facts(record);
        if (!same)
            std::fprintf(stderr, "was:\n%s\nis:\n%s\nwritten:\n%s\n", facts(record).c_str(),
                         again && !again->empty() ? facts(again->front()).c_str() : "nothing",
                         wire::write_capture(record).c_str());
        fuzz::require(same, "what was read and written is read otherwise");
    }
    return 0;
}
