// gateway_idle_timeout, gateway_deadline: a hop between client and server gave up. Needs: its own
// words (LiteLLM.Timeout, an Envoy or HTML page, 504/524), or a body broken while the silence
// before the end (idle) or the whole elapsed time (deadline) hits a known timer or is the same for
// every victim. Refuted by: an error of the server, or ends that keep no time. Recommends: proxy
// time-outs above the measured p99 elapsed time, with a margin. gateway_rewrite (a candidate here;
// control.h decides by the same request through and past the gateway): bytes that only a hop makes,
// a comment that came back as data or characters destroyed at a chunk boundary. Recommends: the
// hop's fixed version, and recording on both sides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/causes/causes.h"
#include "judge/signs/end_kind.h"
#include "judge/signs/error_class.h"
#include "judge/signs/hop.h"
#include "judge/signs/timers.h"
#include "judge/signs/words.h"
#include "stats/quantile.h"

namespace fullstop::judge {
namespace {

using answer::Cause;
using answer::Confidence;
using answer::Record;

/// Headroom over the longest measured time; load grows faster than limits are revisited.
constexpr double kMargin = 2;

/// What the limit must reach: p99 of the whole answers' time, or of the cut ones extrapolated to
/// their full length.
std::optional<double> needed_seconds(const Record& record, const Context& context) {
    std::vector<double> elapsed;
    for (const Record* other : context.siblings) {
        if (!is_timed(*other)) continue;
        double seconds = base::to_seconds(*other->elapsed());
        const auto length = other->length_tokens();
        if (is_victim(*other) && length && *length > 0 && other->requested_max_tokens)
            seconds *= std::max(1.0, static_cast<double>((*other->requested_max_tokens).count) /
                                         static_cast<double>(*length));
        elapsed.push_back(seconds);
    }
    if (elapsed.empty() && is_timed(record)) elapsed.push_back(base::to_seconds(*record.elapsed()));
    if (elapsed.empty()) return std::nullopt;
    return std::ceil(stats::quantile(elapsed, 0.99) * kMargin);
}

void advise(Claim& claim, const Record& record, const Context& context, bool idle) {
    const auto seconds = needed_seconds(record, context);
    const std::string name =
        idle
            ? "the gateway's limit on silence (proxy_read_timeout, timeout server, LiteLLM timeout)"
            : "the gateway's limit on the whole exchange (route timeout)";
    if (!seconds)
        claim.remedies.push_back(
            {"raise " + name + " above the longest answer under load", "timeout", {}});
    else
        claim.remedies.push_back(
            {fmt::format("raise {} to {:.0f} s: twice the p99 of what answers need at this load",
                         name, *seconds),
             fmt::format("timeout {:.0f}s", *seconds), seconds});
}

void name_hop(Claim& claim, const Record& record) {
    if (const auto hop = gateway_of(record))
        claim.evidence.push_back(
            {"the response head is of " + hop->name, {record.request.id}, {}, hop->where});
}

/// A timer alone does not show whose it is.
void need_a_gateway(Claim& claim, const Record& record) {
    if (gateway_of(record) || html_body(record)) return;
    claim.confidence = std::min(claim.confidence, Confidence::kWeak);
    claim.evidence.push_back(
        {"no header and no error page shows a gateway: a limit of the server's "
         "own would look the same; --control tells",
         {record.request.id},
         {},
         "headers"});
}

/// What a hop still held is flushed together with the end: then the silence is the gap before it.
bool flushed_at_the_end(const Record& record) {
    const auto& gaps = record.timeline.gaps;
    return !gaps.empty() && *record.last_silence() <= kSimultaneous &&
           gaps.back() >= std::chrono::seconds(2);
}

double silence_ms(const Record& record) {
    const double silence = base::to_ms(*record.last_silence());
    return flushed_at_the_end(record) ? silence + base::to_ms(record.timeline.gaps.back())
                                      : silence;
}

double longest_gap_ms(const Record& record) {
    const std::size_t count = record.timeline.gaps.size() - flushed_at_the_end(record);
    double longest = 0;
    for (std::size_t i = 0; i < count; ++i)
        longest = std::max(longest, base::to_ms(record.timeline.gaps[i]));
    return longest;
}

/// The body broke, or ended without any sign of an end: a timer of a hop may have done it.
bool cut_without_words(const Record& record) {
    if (record.end.error || end_kind(record) != EndKind::kNone || record.end.terminator)
        return false;
    return transport_broken(record) || record.end.transport == answer::Transport::kClean;
}

/// Silence before the end that stands out of the answer's own rhythm: 2 s, and four times its
/// longest gap.
bool silent_before_end(const Record& record, double silence_ms) {
    return silence_ms >= 2000 * 0.97 && silence_ms >= 4 * longest_gap_ms(record);
}

/// No gateway gives up sooner: what is refused at once met no time limit.
constexpr base::Duration kLeastTimeout = std::chrono::seconds(1);

bool lasted(const Record& record, base::Duration least) {
    return !is_timed(record) || *record.elapsed() >= least;
}

bool shared(const std::optional<Invariant>& invariant, double value) {
    return invariant && invariant->answers >= 3 &&
           std::abs(invariant->value - value) <= std::max(250.0, 0.02 * value);
}

/// Answers of the whole run, arms and levels together, that were cut after the same time in at
/// least two moments, where none took longer: what starts and ends together shares its time by that
/// alone.
std::optional<std::int64_t> cut_after_the_same_time(const Record& record, const Context& context) {
    if (context.run == nullptr) return std::nullopt;
    const double elapsed = base::to_ms(*record.elapsed());
    const double slack = std::max(100.0, 0.02 * elapsed);
    std::int64_t alike = 0;
    std::optional<base::Duration> first, last;
    for (const Record* other : *context.run) {
        if (!is_timed(*other) || !has_content(*other)) continue;
        const double theirs = base::to_ms(*other->elapsed());
        if (theirs > elapsed + slack) return std::nullopt;
        if (!cut_without_words(*other) || theirs < elapsed - slack) continue;
        ++alike;
        const base::Duration at = *other->timeline.ended;
        first = first ? std::min(*first, at) : at;
        last = last ? std::max(*last, at) : at;
    }
    const bool moments = first && *last - *first > std::chrono::milliseconds(500);
    return alike >= 3 && moments ? std::optional(alike) : std::nullopt;
}

/// Whole seconds and the wait for the first token stand between the stamps' span and the time since
/// the request.
constexpr std::int64_t kStampSlack = 3;

/// The server's own stamps show the span when the capture has no times of ours.
MaybeClaim deadline_by_stamps(const Record& record, const Context& context) {
    const auto stamps = server_stamps(record);
    const auto hop = gateway_of(record);
    if (!stamps || !hop || is_timed(record)) return std::nullopt;
    const auto timers = total_timers();
    const auto near = std::ranges::find_if(timers, [&](const KnownTimer& timer) {
        return timer.seconds >= static_cast<double>(stamps->span_s()) &&
               timer.seconds <= static_cast<double>(stamps->span_s() + kStampSlack);
    });
    if (near == timers.end()) return std::nullopt;
    const auto alike = std::ranges::count_if(context.siblings, [&](const Record* other) {
        const auto theirs = server_stamps(*other);
        return theirs && is_victim(*other) && std::abs(theirs->span_s() - stamps->span_s()) <= 1;
    });
    Claim claim{Cause::kGatewayDeadline, alike >= 3 ? Confidence::kStrong : Confidence::kWeak};
    claim.evidence.push_back(
        {fmt::format(
             "no last chunk; the events' own stamps span {} s, just below {}{}", stamps->span_s(),
             near->who,
             alike >= 3 ? fmt::format(", and so do those of {} answers", alike) : std::string()),
         {record.request.id},
         static_cast<double>(stamps->span_s()),
         "created"});
    name_hop(claim, record);
    advise(claim, record, context, false);
    return claim;
}

}  // namespace

MaybeClaim gateway_reported_timeout(const Record& record, const Context& context) {
    const auto* error = decisive_error(record);
    const auto kind = error != nullptr ? classify(*error) : std::nullopt;
    const int status = failing_status(record);
    const bool worded = kind && (kind->cause == Cause::kGatewayIdleTimeout ||
                                 kind->cause == Cause::kGatewayDeadline);
    const bool by_status = !kind && !has_content(record) &&
                           (status == 504 || status == 524 || status == 408 ||
                            (status == 502 && lasted(record, kLeastTimeout) &&
                             (html_body(record) || gateway_of(record))));
    if (!worded && !by_status) return std::nullopt;
    // Before the first byte of the body a gap between reads and a total are the same thing: the
    // wait for the answer.
    // Where tokens still flowed when it came, it was a limit on the whole.
    const bool silent = !is_timed(record) || *record.last_silence() * 2 >= *record.elapsed();
    const bool idle =
        worded && kind->cause == Cause::kGatewayIdleTimeout && has_content(record) && silent;
    Claim claim{idle ? Cause::kGatewayIdleTimeout : Cause::kGatewayDeadline,
                worded || status != 502 ? Confidence::kProven : Confidence::kStrong};
    std::string text = status != 0 ? fmt::format("status {}", status) : std::string("error event");
    if (error != nullptr) text += ": \"" + one_line(error->text, 160) + "\"";
    if (kind) text += fmt::format(": {}", kind->reading);
    if (is_timed(record))
        text += fmt::format(", after {:.1f} s", base::to_seconds(*record.elapsed()));
    claim.evidence.push_back({text, {record.request.id}, {}, "error"});
    name_hop(claim, record);
    advise(claim, record, context, idle);
    return claim;
}

MaybeClaim gateway_idle_timeout(const Record& record, const Context& context) {
    if (!cut_without_words(record) || !is_timed(record)) return std::nullopt;
    const double silence = silence_ms(record);
    if (!silent_before_end(record, silence)) return std::nullopt;
    const auto timer = hit(idle_timers(), silence);
    const bool common =
        context.population != nullptr && shared(context.population->silence_ms, silence);
    const double whole = std::round(silence / 1000) * 1000;
    const bool round = silence >= whole - 30 && silence - whole <= std::max(150.0, 0.02 * whole);
    if (!timer && !common && !round) return std::nullopt;
    Claim claim{Cause::kGatewayIdleTimeout, common || (timer && transport_broken(record))
                                                ? Confidence::kStrong
                                                : Confidence::kWeak};
    claim.evidence.push_back(
        {fmt::format("silence of {:.2f} s before the end{}, and then the body ended without a last "
                     "word; its longest gap before was {:.2f} s",
                     silence / 1000,
                     timer ? fmt::format(" (the limit of {})", timer->who) : std::string(),
                     longest_gap_ms(record) / 1000),
         {record.request.id},
         silence,
         "last silence"});
    need_a_gateway(claim, record);
    if (common)
        claim.evidence.push_back({fmt::format("the same silence ended {} answers",
                                              context.population->silence_ms->answers),
                                  {},
                                  context.population->silence_ms->value,
                                  "invariant silence"});
    name_hop(claim, record);
    advise(claim, record, context, true);
    return claim;
}

MaybeClaim gateway_deadline(const Record& record, const Context& context) {
    if (!cut_without_words(record)) return std::nullopt;
    if (!is_timed(record)) return deadline_by_stamps(record, context);
    const double elapsed = base::to_ms(*record.elapsed());
    if (silent_before_end(record, silence_ms(record)) || elapsed < 1000) return std::nullopt;
    const auto timer = hit(total_timers(), elapsed);
    const bool announced =
        record.gateway_deadline_ms &&
        std::abs(*record.gateway_deadline_ms - elapsed) <= std::max(1000.0, 0.02 * elapsed);
    const Cluster* cluster =
        context.population != nullptr ? cluster_of(context.population->clusters, record) : nullptr;
    // Answers that started and ended together share their elapsed time by that alone.
    const bool common = context.population != nullptr &&
                        shared(context.population->elapsed_ms, elapsed) &&
                        (cluster == nullptr || static_cast<std::int64_t>(cluster->members.size()) <
                                                   context.population->elapsed_ms->answers);
    const auto elsewhere = cut_after_the_same_time(record, context);
    if (!timer && !common && !announced && !elsewhere) return std::nullopt;
    Confidence confidence =
        transport_broken(record) && timer ? Confidence::kStrong : Confidence::kWeak;
    if (common || elsewhere) confidence = Confidence::kStrong;
    if (announced) confidence = Confidence::kProven;
    Claim claim{Cause::kGatewayDeadline, confidence};
    claim.evidence.push_back(
        {fmt::format("cut {:.2f} s after the request with tokens still flowing{}", elapsed / 1000,
                     timer ? fmt::format(" (the limit of {})", timer->who) : std::string()),
         {record.request.id},
         elapsed,
         "elapsed"});
    if (!announced) need_a_gateway(claim, record);
    if (common || elsewhere)
        claim.evidence.push_back(
            {fmt::format("{} answers were cut after the same time, whatever their length",
                         common ? context.population->elapsed_ms->answers : *elsewhere),
             {},
             elapsed,
             "invariant elapsed"});
    name_hop(claim, record);
    advise(claim, record, context, false);
    return claim;
}

MaybeClaim gateway_rewrite(const answer::Record& record, const Context&) {
    const bool comment_as_data = record.shape.comment_as_data;
    const bool destroyed =
        contains(record.text, "\xEF\xBF\xBD\xEF\xBF\xBD") || contains(record.text, "\xEF\xBF\xBD");
    if (!comment_as_data && !destroyed) return std::nullopt;
    Claim claim{answer::Cause::kGatewayRewrite, answer::Confidence::kWeak};
    claim.decisive = false;
    claim.why_not = comment_as_data ? "a keepalive comment came back as data: a hop re-wraps the "
                                      "stream; the end itself is not touched"
                                    : "replacement characters stand in the text: a hop may decode "
                                      "chunk by chunk, or the model wrote half a character";
    return claim;
}

}  // namespace fullstop::judge
