// Two walks. Alone: one sequence grows by 1, 2, 4 ... rows, several times over. In company: eight
// sequences grow together, and at each depth 1, 2, 4 and 8 of them take their next token, in the
// unified layout also beside a piece of a prompt. A token is chosen from every output, as the
// engine does.
#include "engine/cost/measure_passes.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "engine/sampling/sampler.h"

namespace fullstop::engine {
namespace {

using base::Tokens;

constexpr std::int64_t kCompany = 8;
constexpr TokenId kFirstToken = 100, kTokens = 50;  // any that every vocabulary has

class PassTimer {
public:
    PassTimer(Backend& backend, const base::Clock& clock, const MeasurePlan& plan,
              const std::function<bool()>& stop)
        : backend_(backend),
          clock_(clock),
          plan_(plan),
          until_(clock.now() + plan.budget),
          stop_(stop),
          streams_(backend.facts().layout == KvLayout::kStreams) {
        for (std::int64_t i = 0; i < plan.most_rows; ++i)
            tokens_.push_back(kFirstToken + static_cast<TokenId>(i) % kTokens);
    }

    const MeasurePlan& plan() const { return plan_; }
    bool streams() const { return streams_; }
    bool over() const { return failed_ || stop_() || clock_.now() >= until_; }
    Tokens length(SequenceId id) { return held_[id]; }
    bool fits(SequenceId id, std::int64_t rows) {
        return (held_[id] + Tokens{rows}) < backend_.facts().window &&
               (all_ + Tokens{rows}) < backend_.facts().pool;
    }

    struct Piece {
        SequenceId id;
        std::int64_t rows;
        bool wants_logits;
    };
    /// Computes the pieces together. Absent: it failed.
    std::optional<CostPoint> run(const std::vector<Piece>& pieces) {
        std::vector<Run> runs;
        for (const Piece& piece : pieces) {
            runs.push_back(
                {.sequence = piece.id,
                 .position = held_[piece.id],
                 .tokens = std::span(tokens_).first(static_cast<std::size_t>(piece.rows)),
                 .wants_logits = piece.wants_logits});
        }
        const StepShape shape(streams_, runs, all_);
        const auto before = clock_.now();
        failed_ = backend_.decode(runs) != DecodeStatus::kOk;
        if (failed_) return std::nullopt;
        for (std::size_t i = 0; i < runs.size(); ++i)
            if (runs[i].wants_logits) (void)sampler_.pick(backend_.logits(i));
        const double ms = base::to_ms(clock_.now() - before);
        for (const Piece& piece : pieces)
            held_[piece.id] += Tokens{piece.rows}, all_ += Tokens{piece.rows};
        if (shape.passes().size() != 1 || ms <= 0) return std::nullopt;
        return CostPoint{.pass = shape.passes().front(), .ms = ms};
    }
    /// Copies a sequence to host memory and back. Absent: the backend cannot.
    std::optional<SwapPoint> swap(SequenceId id) {
        SwapPoint point{.tokens = held_[id]};
        auto before = clock_.now();
        const auto bytes = backend_.snapshot(id, {});
        point.out_ms = base::to_ms(clock_.now() - before);
        backend_.remove(id);
        before = clock_.now();
        const bool back = !bytes.empty() && backend_.restore(id, held_[id], held_[id], bytes);
        point.in_ms = base::to_ms(clock_.now() - before);
        failed_ = !back;
        return back ? std::optional(point) : std::nullopt;
    }
    void clear() {
        for (const auto& [id, length] : held_) backend_.remove(id);
        held_.clear();
        all_ = {};
    }

private:
    Backend& backend_;
    const base::Clock& clock_;
    const MeasurePlan& plan_;
    base::Instant until_;
    const std::function<bool()>& stop_;
    bool streams_, failed_ = false;
    std::vector<TokenId> tokens_;
    std::map<SequenceId, Tokens> held_;
    Tokens all_;
    Sampler sampler_{{.temperature = 0.7, .top_p = 1, .top_k = 0, .min_p = 0, .seed = 1}};
};

CostPoint median(std::vector<CostPoint> points) {
    const auto middle = points.begin() + std::ssize(points) / 2;
    std::ranges::nth_element(points, middle, {}, &CostPoint::ms);
    return *middle;
}

/// One walk alone; points of the same shape gather in `seen`.
using Seen = std::map<std::tuple<std::int64_t, std::int64_t, double>, std::vector<CostPoint>>;
void walk_alone(PassTimer& timer, std::int64_t deepest, bool wants_logits, Seen& seen) {
    timer.clear();
    for (std::int64_t rows = 1;
         timer.length(1).count + rows < deepest && timer.fits(1, rows) && !timer.over();
         rows = rows == timer.plan().most_rows ? 1 : 2 * rows)
        if (const auto point =
                timer.run({{.id = 1, .rows = rows, .wants_logits = wants_logits || rows == 1}}))
            seen[{point->pass.rows, point->pass.outputs, point->pass.row_kv}].push_back(*point);
}

/// `count` sequences take their next token, the last one `rows` of a prompt instead where that is
/// more than one.
std::vector<PassTimer::Piece> company(std::int64_t count, std::int64_t rows) {
    std::vector<PassTimer::Piece> pieces;
    for (std::int64_t i = 1; i <= count; ++i)
        pieces.push_back({.id = static_cast<SequenceId>(i),
                          .rows = i == count ? rows : 1,
                          .wants_logits = i < count || rows == 1});
    return pieces;
}

/// The median of several copies of the first sequence.
void measure_swap(PassTimer& timer, std::vector<SwapPoint>& swaps) {
    std::vector<SwapPoint> repeats;
    for (int repeat = 0; repeat < timer.plan().repeats && !timer.over(); ++repeat)
        if (const auto point = timer.swap(1)) repeats.push_back(*point);
    if (repeats.empty()) return;
    const auto middle = repeats.begin() + std::ssize(repeats) / 2;
    std::ranges::nth_element(repeats, middle, {},
                             [](const SwapPoint& point) { return point.out_ms + point.in_ms; });
    swaps.push_back(*middle);
}

void walk_in_company(PassTimer& timer, std::int64_t sequences, MeasuredCosts& costs) {
    std::vector<CostPoint>& points = costs.passes;
    timer.clear();
    for (const std::int64_t depth : timer.plan().depths) {
        for (std::int64_t i = 1; i <= sequences; ++i) {
            const auto id = static_cast<SequenceId>(i);
            while (timer.length(id).count < depth && !timer.over()) {
                const std::int64_t rows =
                    std::min(depth - timer.length(id).count, timer.plan().most_rows);
                if (!timer.fits(id, rows)) return;
                if (const auto point =
                        timer.run({{.id = id, .rows = rows, .wants_logits = rows == 1}});
                    point && !timer.streams())
                    points.push_back(*point);
            }
        }
        for (std::int64_t count = 1; count <= sequences; count *= 2) {
            std::vector<CostPoint> repeats;
            for (int repeat = 0;
                 repeat < timer.plan().repeats && timer.fits(1, count) && !timer.over(); ++repeat)
                if (const auto point = timer.run(company(count, 1))) repeats.push_back(*point);
            if (!repeats.empty()) points.push_back(median(std::move(repeats)));
        }
        for (const std::int64_t rows : {16, 64, 16, 64})
            if (!timer.streams() && sequences > 1 &&
                timer.fits(static_cast<SequenceId>(sequences), rows + sequences) && !timer.over())
                if (const auto point = timer.run(company(sequences, rows)))
                    points.push_back(*point);
        measure_swap(timer, costs.swaps);
    }
}

}  // namespace

MeasuredCosts measure_passes(Backend& backend, const base::Clock& clock, const MeasurePlan& plan,
                             const std::function<bool()>& stop,
                             const std::function<void(double)>& seen_share) {
    PassTimer timer(backend, clock, plan, stop);
    const std::int64_t sequences = std::min(kCompany, backend.facts().max_sequences);
    MeasuredCosts costs;
    Seen seen;
    walk_alone(timer, 2 * plan.most_rows, true, seen);
    if (!timer.over())
        seen.clear();  // caches and clocks were warming up; on a machine so slow that there is
                       // nothing else, it must do
    for (int walk = 0; walk < plan.walks_alone && !timer.over(); ++walk) {
        seen_share(0.1 + 0.4 * walk / plan.walks_alone);
        walk_alone(timer, plan.deepest_alone, walk % 2 != 0, seen);
        if (walk == 0) walk_in_company(timer, sequences, costs);
    }
    timer.clear();
    seen_share(1);
    for (auto& [shape, same] : seen) costs.passes.push_back(median(std::move(same)));
    return costs;
}

}  // namespace fullstop::engine
