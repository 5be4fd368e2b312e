// admission_rejected, gateway_rejected, request_rejected: the answer never began. Needs: a failing
// status or an error before any text. Who refused is told by the words, then by the header that
// names a gateway or an HTML page. Refuted by: text that came first. Recommends: a limit on
// concurrent requests at the client with backoff, or a longer queue; for request_rejected: mending
// the request.
#include <fmt/format.h>

#include <algorithm>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/hop.h"
#include "judge/signs/words.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

std::optional<Cause> named(const Record& record) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    return kind ? std::optional(kind->cause) : std::nullopt;
}

Claim refusal(Cause cause, Confidence confidence, const Record& record) {
    Claim claim{cause, confidence};
    const auto* error = decisive_error(record);
    claim.evidence.push_back(
        {fmt::format("status {}{}", failing_status(record),
                     error != nullptr ? ": " + one_line(error->text, 160) : std::string()),
         {record.request.id},
         static_cast<double>(failing_status(record)),
         "status and body"});
    return claim;
}

/// The same request was taken on alone: what refuses it now is no fault of the request.
bool taken_alone(const Context& context) {
    return std::ranges::any_of(context.baselines, [](const Record* baseline) {
        return failing_status(*baseline) == 0 && has_content(*baseline);
    });
}

}  // namespace

MaybeClaim gateway_rejected(const Record& record, const Context& context) {
    const int status = failing_status(record);
    const auto cause = named(record);
    if (has_content(record) || (status == 0 && cause != Cause::kGatewayRejected))
        return std::nullopt;
    const auto hop = gateway_of(record);
    const bool gateways_own = html_body(record) || (hop && !cause);
    // A page for people about a request that was taken on alone is a gateway's refusal, whatever
    // its number.
    const bool page = hop && html_body(record) && taken_alone(context);
    const bool full = status == 429 || status == 502 || status == 503 || page;
    // 502 says that somebody stands before a server; a body of its own is not JSON.
    const auto& error = record.end.error;
    const bool bad_gateway =
        status == 502 && !cause && (!error || (error->type.empty() && error->code.empty()));
    if (cause != Cause::kGatewayRejected && !(full && gateways_own) && !bad_gateway)
        return std::nullopt;
    Confidence confidence = gateways_own ? Confidence::kStrong : Confidence::kWeak;
    if (cause == Cause::kGatewayRejected) confidence = Confidence::kProven;
    Claim claim = refusal(Cause::kGatewayRejected, confidence, record);
    if (hop)
        claim.evidence.push_back({"answered by " + hop->name, {record.request.id}, {}, hop->where});
    claim.remedies.push_back(
        {"raise the gateway's limit on concurrent requests to the number of users, or let clients "
         "wait as Retry-After says",
         fmt::format("concurrency limit {}", record.request.concurrency),
         static_cast<double>(record.request.concurrency)});
    return claim;
}

MaybeClaim admission_rejected(const Record& record, const Context&) {
    const int status = failing_status(record);
    const auto cause = named(record);
    const auto* error = decisive_error(record);
    const bool loading = error != nullptr && contains(lower(error->text), "loading model");
    const bool by_status = status == 429 || (status == 503 && !loading);
    if (has_content(record) || (cause != Cause::kAdmissionRejected && !(by_status && !cause)))
        return std::nullopt;
    Claim claim = refusal(
        Cause::kAdmissionRejected,
        cause == Cause::kAdmissionRejected ? Confidence::kProven : Confidence::kStrong, record);
    claim.remedies.push_back(
        {fmt::format("let clients keep at most as many requests open as the server's queue takes, "
                     "with backoff, or raise that queue above {}",
                     record.request.concurrency),
         "queue length", static_cast<double>(record.request.concurrency)});
    return claim;
}

MaybeClaim request_rejected(const Record& record, const Context& context) {
    const int status = failing_status(record);
    const bool by_status = status == 400 || status == 401 || status == 403 || status == 404 ||
                           status == 405 || status == 413 || status == 415 || status == 422;
    if (end_kind(record) == EndKind::kLoad && !has_content(record)) {
        Claim claim{Cause::kRequestRejected, Confidence::kProven};
        claim.evidence.push_back(
            {fmt::format("done reason \"{}\": the request held nothing to answer",
                         reason_word(record)),
             {record.request.id},
             {},
             "done_reason"});
        claim.remedies.push_back(
            {"send a user message; an empty message list only loads or unloads the model",
             "messages",
             {}});
        return claim;
    }
    const auto cause = named(record);
    if (has_content(record) || taken_alone(context) ||
        !(cause == Cause::kRequestRejected || (by_status && !cause)))
        return std::nullopt;
    Claim claim = refusal(Cause::kRequestRejected, Confidence::kProven, record);
    claim.next =
        "mend the request (or the model name, key or prompt length) as the message says; load has "
        "no part in it";
    return claim;
}

}  // namespace fullstop::judge
