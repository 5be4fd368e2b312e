// Every way an upstream can end, in every dialect: no cut answer may look whole to the client
// ("laundered"), every cut must carry its cause, and a whole answer must pass byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <iostream>

#include "gateway/test_endings.h"

namespace fullstop::gateway {
namespace {

using answer::Cause;
using testing::HasSubstr;
using testing::Not;

struct Row {
    std::string name;
    std::string bytes;
    After after = After::kFin;
    Cause cause = Cause::kConnectionBroken;
    bool object = true;  ///< an in-band error object of the gateway is due
};

/// Every cut of the matrix for one dialect and framing.
std::vector<Row> cuts(const Dialect& d, Framed framed) {
    const std::string whole = plain(d.pieces + d.ends);
    const std::string head = head_of(d, framed, whole.size() + 500);
    const std::string some = head + joined(d.pieces, framed);
    const std::string last = framed == Framed::kChunked ? wire::last_chunk() : "";
    const std::string half = d.ends.front().substr(0, d.ends.front().size() / 2);
    const bool object = d.stream;
    std::vector<Row> rows = {
        {"FIN", some, After::kFin, Cause::kConnectionBroken, object},
        {"RST", some, After::kRst, Cause::kConnectionBroken, object},
        {"stall", some, After::kNothing, Cause::kGatewayIdleTimeout, object},
        {"FIN after the head", head, After::kFin, Cause::kConnectionBroken, object},
        {"half event, FIN", some + joined({half}, framed), After::kFin, Cause::kConnectionBroken,
         object},
        {"half event, stall", some + joined({half}, framed), After::kNothing,
         Cause::kGatewayIdleTimeout, object},
    };
    if (framed == Framed::kChunked) {
        rows.push_back({"FIN inside a chunk", some + "40\r\n" + d.ends.front().substr(0, 20),
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"chunk framing is garbage", some + "this is no chunk size\r\n\r\n",
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"a raw 500 after a piece",
                        some + "HTTP/1.1 500 Internal Server Error\r\n\r\n", After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"clean end without finish", some + last, After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"clean end after half an event", some + wire::chunk(half) + last,
                        After::kFin, Cause::kConnectionBroken, object});
        rows.push_back({"clean end after nothing", head + last, After::kFin,
                        Cause::kConnectionBroken, object});
        rows.push_back({"garbage, then a clean end",
                        head + wire::chunk("\x01\x02 no event \xFF\n\n") + last, After::kFin,
                        Cause::kConnectionBroken, object});
    }
    if (d.stream) {
        rows.push_back({"error object", some + joined({d.error}, framed) + last, After::kFin,
                        Cause::kServerError, false});
        rows.push_back({"error object, then a stall", some + joined({d.error}, framed),
                        After::kNothing, Cause::kServerError, false});
        rows.push_back({"error object after the finish",
                        some + joined({d.ends.front(), d.error}, framed) + last, After::kFin,
                        Cause::kServerError, false});
        if (d.ends.size() > 1 && d.ends.front().find("incomplete") == std::string::npos) {
            const std::string done = some + joined({d.ends.back()}, framed);
            rows.push_back({"its own end without a reason", done + last, After::kFin,
                            Cause::kConnectionBroken, object});
            rows.push_back({"its own end without a reason, RST", done, After::kRst,
                            Cause::kConnectionBroken, object});
            rows.push_back({"its own end without a reason, then a stall", done, After::kNothing,
                            Cause::kGatewayIdleTimeout, object});
            rows.push_back({"error object, then its own end",
                            some + joined({d.error, d.ends.back()}, framed) + last, After::kFin,
                            Cause::kServerError, false});
        }
        rows.push_back({"error field", some + joined({d.error_field}, framed) + last, After::kFin,
                        Cause::kServerError, false});
    }
    return rows;
}

/// True when the client could take it for a whole answer. `holds_events`: as with `continuation`.
bool launders(const Dialect& dialect, const Row& row, bool holds_events) {
    GatewayOptions options = Bench::default_options();
    options.policy.continuation = holds_events;
    Bench bench(options);
    bench.request(bench.post(
        dialect.path,
        holds_events ? R"({"stream":true,"messages":[{"role":"user","content":"x"}]})" : "{}"));
    bench.connected();
    bench.receive(row.bytes);
    end_with(bench, row.after);
    const Seen seen = bench.seen;
    EXPECT_TRUE(seen.closed);
    EXPECT_FALSE(looks_whole(dialect, seen)) << seen.raw;
    EXPECT_THAT(seen.raw, Not(HasSubstr("[DONE]")));
    EXPECT_FALSE(seen.raw.ends_with("\r\n0\r\n\r\n")) << seen.raw;
    EXPECT_FALSE(seen.kept);
    const std::string name(answer::to_string(row.cause));
    if (row.object) {
        EXPECT_EQ(cause_in_band(seen), name) << seen.raw;
    } else {
        EXPECT_EQ(cause_in_band(seen), "");
    }
    bench.seen = {};
    bench.request(bench.get("/metrics"));
    EXPECT_THAT(bench.seen.raw, HasSubstr("fullstop_answers_total{cause=\"" + name + "\""))
        << row.name;
    return looks_whole(dialect, seen);
}

TEST(TruthMatrix, NoCutLooksWholeAndEachSaysWhy) {
    int rows = 0, laundered = 0;
    for (const Dialect& dialect : dialects()) {
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            for (const Row& row : cuts(dialect, framed)) {
                SCOPED_TRACE(dialect.name + ", framing " +
                             std::to_string(static_cast<int>(framed)) + ": " + row.name);
                for (const bool holds_events : {false, true}) {
                    ++rows;
                    laundered += launders(dialect, row, holds_events) ? 1 : 0;
                }
            }
        }
    }
    std::cout << "truth matrix: " << rows << " cut answers, laundered " << laundered << "\n";
    EXPECT_EQ(laundered, 0);
    EXPECT_GT(rows, 100);
}

TEST(TruthMatrix, AWholeAnswerPassesByteForByte) {
    for (const Dialect& dialect : dialects()) {
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            SCOPED_TRACE(dialect.name + ", framing " + std::to_string(static_cast<int>(framed)));
            const auto pieces = dialect.pieces + dialect.ends;
            const std::string upstream = head_of(dialect, framed, plain(pieces).size()) +
                                         joined(pieces, framed) +
                                         (framed == Framed::kChunked ? wire::last_chunk() : "");
            const Seen seen = relay(dialect, upstream, After::kFin);
            EXPECT_EQ(seen.body(), plain(pieces));
            EXPECT_TRUE(looks_whole(dialect, seen)) << seen.raw;
            EXPECT_TRUE(seen.kept);
            EXPECT_TRUE(seen.record().end.reason);
            EXPECT_EQ(cause_in_band(seen), "");
        }
    }
}

/// The same bytes in any cut: the same head, the same body, the same end. Chunk sizes follow the
/// reads and may differ.
TEST(TruthMatrix, AnyCutOfTheUpstreamsBytesGivesTheClientTheSame) {
    std::vector<std::pair<Dialect, Row>> all;
    for (const Dialect& dialect : dialects())
        for (const Framed framed : {Framed::kChunked, Framed::kLength, Framed::kClose}) {
            for (const Row& row : cuts(dialect, framed)) all.emplace_back(dialect, row);
            const auto pieces = dialect.pieces + dialect.ends;
            all.emplace_back(dialect,
                             Row{.name = "whole",
                                 .bytes = head_of(dialect, framed, plain(pieces).size()) +
                                          joined(pieces, framed) +
                                          (framed == Framed::kChunked ? wire::last_chunk() : "")});
        }
    // Times in the error's message depend on how many reads there were, a request's identity on
    // nothing.
    const auto timeless = [](std::string text) {
        const auto at = text.find("\"error\":{\"message\"");
        return at == std::string::npos || text.find("\"fullstop\"", at) == std::string::npos
                   ? text
                   : text.substr(0, at);
    };
    for (const auto& [dialect, row] : all) {
        SCOPED_TRACE(dialect.name + ": " + row.name);
        const Seen once = relay(dialect, row.bytes, row.after);
        for (const std::size_t every : {1, 2, 3, 7, 64}) {
            const Seen cut = relay(dialect, row.bytes, row.after, every);
            ASSERT_EQ(cut.head(), once.head());
            ASSERT_EQ(timeless(cut.body()), timeless(once.body())) << every;
            ASSERT_EQ(cut.raw.ends_with("\r\n0\r\n\r\n"), once.raw.ends_with("\r\n0\r\n\r\n"))
                << every;
            ASSERT_EQ(cut.kept, once.kept);
            ASSERT_EQ(cause_in_band(cut), cause_in_band(once));
        }
    }
}

/// An answer of random pieces that stops after any number of its bytes never looks whole, unless
/// all its facts came.
RC_GTEST_PROP(TruthMatrixProperty, StoppingAnywhereNeverLooksWhole, ()) {
    const auto all = dialects();
    const Dialect dialect = all[*rc::gen::inRange<std::size_t>(0, all.size())];
    const Framed framed = *rc::gen::element(Framed::kChunked, Framed::kLength, Framed::kClose);
    const After after = *rc::gen::element(After::kFin, After::kRst, After::kNothing);
    const auto pieces = dialect.pieces + dialect.ends;
    const std::string upstream = head_of(dialect, framed, plain(pieces).size()) +
                                 joined(pieces, framed) +
                                 (framed == Framed::kChunked ? wire::last_chunk() : "");
    const std::size_t stop = *rc::gen::inRange<std::size_t>(0, upstream.size());
    const std::size_t every = *rc::gen::inRange<std::size_t>(1, 80);
    const Seen seen = relay(dialect, upstream.substr(0, stop), after, every);
    std::string facts = plain(pieces);  // the line ends behind the last event add nothing
    // Some servers write [DONE] behind the own end of Responses, which says all without it.
    if (dialect.path.ends_with("/responses")) facts = facts.substr(0, facts.find("data: [DONE]"));
    facts.resize(facts.find_last_not_of('\n') + 1);
    const bool all_facts_came = seen.body().find(facts) != std::string::npos;
    RC_ASSERT(all_facts_came || !looks_whole(dialect, seen));
    RC_ASSERT(all_facts_came || !seen.raw.ends_with("\r\n0\r\n\r\n"));
    RC_ASSERT(all_facts_came || !seen.kept || seen.record().status != 200);
}

}  // namespace
}  // namespace fullstop::gateway
