// From each state the characters are cut where a range of a place that may come next begins or
// ends; what lies between two cuts leads to one set of places. Pieces that lead to the same set
// become one way.
#include "schema/pattern/pattern_automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace fullstop::schema {
namespace {

struct Cut {
    std::uint32_t at = 0;
    std::size_t place = 0;  ///< whose range begins or ends here
};

class Builder {
public:
    Builder(const Places& places, std::size_t& work) : places_(places), work_(work) {}

    std::expected<TextPattern, std::string> build() {
        // The beginning is no place; state 0 stands for it, and no way leads back there.
        out_.states.push_back({.ends = places_.may_be_empty, .ways = {}});
        sets_.emplace_back();
        leave(0, places_.first);
        for (std::size_t state = 1; state < sets_.size() && !too_large_; ++state) {
            PlaceSet next;
            for (std::size_t place = 0; place < places_.sets.size(); ++place)
                if (sets_[state][place]) next |= places_.follow[place];
            leave(state, next);
        }
        if (too_large_)
            return std::unexpected(
                fmt::format("it needs more than {} states to be followed character by character; "
                            "write it so that fewer things may come next",
                            kMaxPatternStates));
        return std::move(out_);
    }

private:
    void leave(std::size_t state, const PlaceSet& next) {
        std::vector<Cut> cuts;
        for (std::size_t place = 0; place < places_.sets.size(); ++place) {
            if (!next[place]) continue;
            for (const CharacterRange& range : places_.sets[place].ranges()) {
                cuts.push_back({range.first, place});
                cuts.push_back({range.last + 1, place});
            }
        }
        too_large_ = cuts.size() > work_;
        if (too_large_) return;
        work_ -= cuts.size();
        std::ranges::sort(cuts, {}, &Cut::at);
        std::vector<std::pair<PlaceSet, CharacterSet>> ways;
        PlaceSet open;
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            open.flip(cuts[i].place);
            if (i + 1 == cuts.size() || cuts[i + 1].at == cuts[i].at || open.none()) continue;
            auto way = std::ranges::find(ways, open, &std::pair<PlaceSet, CharacterSet>::first);
            if (way == ways.end()) way = ways.insert(ways.end(), {open, {}});
            way->second.add(cuts[i].at, cuts[i + 1].at - 1);
        }
        std::int64_t width = out_.states[state].ends ? 1 : 0;
        for (const auto& [to, characters] : ways) {
            auto [grammar, choices] = characters.spelling();
            if (choices == 0) continue;  // control characters only
            width += choices;
            const std::size_t target = state_of(to);
            if (too_large_) return;
            out_.states[state].ways.push_back({std::move(grammar), target});
        }
        out_.widest = std::max(out_.widest, width);
    }

    std::size_t state_of(const PlaceSet& set) {
        const auto [found, added] = numbers_.try_emplace(set, sets_.size());
        if (!added) return found->second;
        too_large_ = sets_.size() >= kMaxPatternStates;
        if (too_large_) return 0;
        sets_.push_back(set);
        out_.states.push_back({.ends = (set & places_.last).any(), .ways = {}});
        return found->second;
    }

    const Places& places_;
    std::size_t& work_;  ///< that may still be done
    TextPattern out_;
    std::vector<PlaceSet> sets_;  ///< of each state
    std::unordered_map<PlaceSet, std::size_t> numbers_;
    bool too_large_ = false;
};

}  // namespace

std::expected<TextPattern, std::string> automaton_of(const Places& places, std::size_t& work) {
    return Builder(places, work).build();
}

}  // namespace fullstop::schema
