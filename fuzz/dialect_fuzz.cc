// A server's answer in each dialect, by the one reader for all, in any pieces and with any end.
#include <string>

#include "cuts.h"
#include "wire/answer_reader.h"

namespace {

using fullstop::answer::Record;
using fullstop::wire::AnswerReader;
using fullstop::wire::StreamEnd;

constexpr fullstop::answer::Api kApis[] = {
    fullstop::answer::Api::kOpenAiChat, fullstop::answer::Api::kOpenAiCompletions,
    fullstop::answer::Api::kOllama,     fullstop::answer::Api::kLlamaServer,
    fullstop::answer::Api::kKoboldCpp,  fullstop::answer::Api::kTgi};
constexpr AnswerReader::Input kInputs[] = {AnswerReader::Input::kHttp, AnswerReader::Input::kBody,
                                           AnswerReader::Input::kUnframed};

std::string facts(const Record& r) {
    std::string out = std::to_string(r.status.value_or(0)) + "|" + r.text + "|" + r.reasoning +
                      "|" + r.end.reason.value_or("-") + "|";
    out += r.end.error ? r.end.error->text : "-";
    out += r.end.terminator ? "|T" : "|";
    out += std::to_string(static_cast<int>(r.end.transport));
    if (r.output_tokens) out += "|" + std::to_string((*r.output_tokens).count);
    for (const auto& [name, value] : r.stop_details) out += "|" + name + "=" + value;
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fullstop::fuzz::Input input(data, size);
    const StreamEnd end{input.choice & 64 ? StreamEnd::Kind::kRst : StreamEnd::Kind::kFin};
    Record once, cut;
    once.request.api = cut.request.api = kApis[input.choice % 6];
    const auto form = kInputs[(input.choice / 6) % 3];
    AnswerReader whole(once, form), pieces(cut, form);
    const auto at = fullstop::base::from_ms(1);
    if (!input.bytes.empty())
        whole.bytes(input.bytes, at, fullstop::answer::StampClock::kUserSpace);
    whole.end(end, at);
    fullstop::fuzz::in_pieces(input.bytes, input.pattern, [&](std::string_view piece) {
        pieces.bytes(piece, at, fullstop::answer::StampClock::kUserSpace);
        return true;
    });
    pieces.end(end, at);
    fullstop::fuzz::require(facts(once) == facts(cut),
                            "an answer depends on the pieces it comes in");
    return 0;
}
