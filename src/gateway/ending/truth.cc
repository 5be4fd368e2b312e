// One question after the other: an error the upstream spoke of, the end facts of the dialect, the
// framing, then who cut.
#include "gateway/ending/truth.h"

#include <algorithm>
#include <array>

#include "answer/finish_word.h"
#include "base/utf8.h"
#include "gateway/limits.h"

namespace fullstop::gateway {
namespace {

using answer::Api;
using answer::Cause;

/// Every choice that was opened has a finish reason. With several, the record tells them apart.
bool choices_finished(const answer::Record& record) {
    if (!record.end.reason) return false;
    return std::ranges::none_of(record.stop_details, [](const auto& detail) {
        return detail.first.starts_with("finish_reason[") && detail.second == "null";
    });
}

/// The end facts that the dialect sends, all of them. `framed`: the upstream's framing ended, so
/// that nothing can follow.
bool facts_whole(const Facts& facts, bool framed) {
    const answer::Record& record = facts.record;
    if (facts.own_end) return record.end.terminator && choices_finished(record);
    if (facts.form == BodyForm::kJson) return record.end.terminator;  // one whole JSON text
    if (!facts.dialect)
        return choices_finished(record) &&
               ((framed && !facts.inside_event) || record.end.terminator);  // SGLang's own is one
    switch (*facts.dialect) {
        // Some servers never send [DONE]: its absence is no cut once the framing has ended behind a
        // whole event; without framing only it tells that nothing was to follow the reason.
        case Api::kOpenAiChat:
        case Api::kOpenAiCompletions:
            return choices_finished(record) &&
                   ((framed && !facts.inside_event) || record.end.terminator);
        case Api::kLlamaServer: return record.end.terminator && choices_finished(record);
        // Old versions name no reason, but count; one whose runner died does neither.
        case Api::kOllama:
            return record.end.terminator && (record.end.reason || record.output_tokens);
        // Neither ever sends a terminator: the reason is the last event.
        case Api::kKoboldCpp:
        case Api::kTgi: return choices_finished(record);
    }
    return false;
}

bool at_asked_limit(const answer::Record& record) {
    return record.requested_max_tokens && record.output_tokens &&
           (*record.output_tokens).count >= (*record.requested_max_tokens).count;
}

Cause of_reason(const answer::Record& record) {
    if (record.fullstop_cause)
        if (const auto cause = answer::parse_cause(*record.fullstop_cause)) return *cause;
    if (!record.end.reason) return Cause::kUnexplained;
    const std::string& word = *record.end.reason;
    // llama-server knows no other word.
    if (word == "completed" && at_asked_limit(record)) return Cause::kTokenLimit;
    if (word == "model_context_window_exceeded") return Cause::kContextLimit;
    switch (answer::finish_kind(word)) {
        case answer::FinishKind::kStop:
        case answer::FinishKind::kToolCalls: return Cause::kNaturalEnd;
        case answer::FinishKind::kStopString: return Cause::kStopString;
        case answer::FinishKind::kAbort: return Cause::kAbortedByServer;
        case answer::FinishKind::kError: return Cause::kServerError;
        case answer::FinishKind::kLength: break;
        default: return Cause::kUnexplained;
    }
    const auto truncated = record.stop_details.find("truncated");
    if (truncated != record.stop_details.end() && truncated->second == "true")
        return Cause::kContextLimit;
    const bool asked =
        record.requested_max_tokens && (!record.output_tokens || at_asked_limit(record));
    return asked ? Cause::kTokenLimit : Cause::kDefaultTokenLimit;
}

/// An answer that ended at a limit which this gateway had lowered: the upstream's own word cannot
/// tell.
Cause of_reason(const Facts& facts) {
    const Cause cause = of_reason(facts.record);
    const bool at_limit = cause == Cause::kTokenLimit || cause == Cause::kDefaultTokenLimit;
    if (!facts.our_max_tokens || !at_limit) return cause;
    return facts.ours_by_load ? Cause::kGatewayTokenBudget : Cause::kDefaultTokenLimit;
}

Cause of_error(const answer::Record& record) {
    if (record.fullstop_cause)
        if (const auto cause = answer::parse_cause(*record.fullstop_cause)) return *cause;
    constexpr std::array kRejecting = {400, 401, 403, 404, 413, 422};
    if (!record.status || *record.status < 300) return Cause::kServerError;
    if (std::ranges::find(kRejecting, *record.status) != kRejecting.end())
        return Cause::kRequestRejected;
    return *record.status == 429 || *record.status == 503 ? Cause::kAdmissionRejected
                                                          : Cause::kServerError;
}

End cut(Stop stop, std::string detail) {
    End end{.detail = std::move(detail)};
    end.by = By::kGateway;
    switch (stop) {
        case Stop::kIdle: end.cause = Cause::kGatewayIdleTimeout; break;
        case Stop::kDeadline:
        case Stop::kShutdown: end.cause = Cause::kGatewayDeadline; break;
        case Stop::kRefused:
        case Stop::kFault:
        case Stop::kTooLarge: end.cause = Cause::kGatewayRejected; break;
        case Stop::kEncoded: end.cause = Cause::kServerError, end.by = By::kUpstream; break;
        default: end.cause = Cause::kConnectionBroken, end.by = By::kUpstream; break;
    }
    return end;
}

std::string message_of(const answer::ServerError& error) {
    return std::string(base::front_characters(error.text, kMaxDetailBytes));
}

/// A response that is no answer of a model, or refuses to be one: its framing is all there is to
/// judge.
End judge_framing(const Facts& facts) {
    // Where only the close ends a body, it has to end behind a whole event, line or JSON text.
    const bool whole = facts.stop == Stop::kFramed ||
                       (facts.close_delimited && facts.stop == Stop::kFin && !facts.inside_event);
    End end = whole ? End{.whole = true} : cut(facts.stop, facts.detail);
    end.answer = facts.answer_expected;
    if (facts.answer_expected && whole) {
        end.cause = of_error(facts.record);
        end.detail = facts.record.end.error ? message_of(*facts.record.end.error) : "";
    }
    return end;
}

}  // namespace

std::string_view to_string(By by) {
    switch (by) {
        case By::kUpstream: return "upstream";
        case By::kGateway: return "gateway";
        case By::kClient: return "client";
    }
    return "";
}

End judge_end(const Facts& facts) {
    const answer::Record& record = facts.record;
    const bool page =
        !facts.dialect &&
        facts.form == BodyForm::kOther;  // for people: whatever it says, it is no answer
    if (!facts.success || page || !(facts.answer_expected || facts.dialect))
        return judge_framing(facts);
    End end{.answer = true};
    const bool framed = facts.stop == Stop::kFramed;
    if (record.end.error && record.end.error->where == answer::ErrorPlace::kStream &&
        !record.end.error->plain) {
        // The upstream has said itself what went wrong. Of one JSON text the framing may end; a
        // stream stays open-ended.
        end.whole = framed && !is_stream(facts.form);
        end.cause = of_error(record);
        end.detail = message_of(*record.end.error);
        return end;
    }
    const bool whole_facts = facts_whole(facts, framed);
    const bool ended = framed || (facts.close_delimited && facts.stop == Stop::kFin);
    if (whole_facts && (ended || record.end.terminator)) {
        // The dialect's terminator came, and only the framing broke behind it: the answer is whole,
        // its framing is passed on as it was.
        end.whole = ended;
        end.finished = true;
        end.cause = of_reason(facts);
        if (facts.our_max_tokens && answer::entry(end.cause).effect == answer::Effect::kShortened)
            end.by = By::kGateway;
        return end;
    }
    end = cut(facts.stop,
              framed ? std::string("the upstream ended its body before the answer's own end")
                     : facts.detail);
    end.answer = true;
    end.say = is_stream(facts.form);
    return end;
}

End end_before_head(Stop stop, std::string detail) {
    End end = cut(stop, std::move(detail));
    end.answer = true;
    return end;
}

int status_before_head(const End& end, Stop stop) {
    if (stop == Stop::kShutdown || stop == Stop::kRefused) return 503;
    if (stop == Stop::kFault) return 500;
    return end.cause == Cause::kGatewayIdleTimeout || stop == Stop::kDeadline ? 504 : 502;
}

}  // namespace fullstop::gateway
