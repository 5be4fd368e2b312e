// Explanations as documents: contract section 5.
#include "report/explanation.h"
#include "report/json/json_parts.h"
#include "report/json/json_text.h"

namespace fullstop::report {
namespace {

json::value said_of(const judge::Evidence& evidence) {
    return json::object{{"text", text(evidence.text)}, {"where", text(evidence.where)}};
}

json::object explanation_of(const Explanation& one) {
    const answer::Record& record = one.record;
    const judge::Finding& finding = one.finding;
    json::array evidence;
    if (!one.place.quote.empty())
        evidence.push_back(
            json::object{{"text", text(one.place.quote)},
                         {"where", text("line " + std::to_string(one.place.line) + ", byte " +
                                        std::to_string(one.place.offset))}});
    for (const judge::Evidence& said : finding.evidence) evidence.push_back(said_of(said));
    return {{"schema", "fullstop.explanation/1"},
            {"file", text(one.file)},
            {"dialect", word(record.request.api)},
            {"end", end_of(record.end)},
            {"cause", word(finding.cause)},
            {"layer", word(finding.layer)},
            {"confidence", word(finding.confidence)},
            {"shortened", maybe(finding.shortened)},
            {"prompt_tokens", fact(record.prompt_tokens)},
            {"output_tokens", fact(record.output_tokens)},
            {"requested_max_tokens", fact(record.requested_max_tokens)},
            {"text_bytes", static_cast<std::int64_t>(record.text.size())},
            {"evidence", std::move(evidence)},
            {"alternatives", list(finding.alternatives, alternative_of)},
            {"next", text(finding.next)}};
}

}  // namespace

std::string to_json(const Explanations& explanations) {
    if (explanations.answers.size() == 1 && !explanations.together.verdict)
        return json_text(explanation_of(explanations.answers.front()));
    json::array answers;
    for (const Explanation& one : explanations.answers) answers.push_back(explanation_of(one));
    const auto together = [](const judge::Evidence& evidence) -> json::value {
        return json::object{{"text", text(evidence.text)}, {"records", list(evidence.records)}};
    };
    return json_text(json::object{{"schema", "fullstop.explanations/1"},
                                  {"together", list(explanations.together.together, together)},
                                  {"verdict", maybe_word(explanations.together.verdict)},
                                  {"cause", maybe_word(explanations.together.cause)},
                                  {"next", text(explanations.together.next)},
                                  {"explanations", std::move(answers)}});
}

}  // namespace fullstop::report
