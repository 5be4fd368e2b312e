#include "judge/witnesses/coverage.h"

#include <algorithm>
#include <boost/json.hpp>
#include <boost/regex.hpp>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "judge/signs/words.h"
#include "judge/witnesses/ending.h"

namespace fullstop::judge {
namespace {

/// A document inside prose or a fence: from its first bracket to its matching end.
bool holds_json(std::string_view text) {
    const std::size_t start = text.find_first_of("{[");
    if (start == std::string_view::npos) return false;
    for (std::size_t end = text.find_last_of("}]"); end != std::string_view::npos && end > start;
         end = text.find_last_of("}]", end - 1)) {
        boost::system::error_code trouble;
        boost::json::parse(boost::json::string_view(text.data() + start, end - start + 1), trouble);
        if (!trouble) return true;
        if (json_closed(text.substr(start, end - start + 1)))
            return false;  // closed and still not JSON: shorter will not do
    }
    return false;
}

std::optional<double> pattern_found(std::string_view text, const std::string& pattern) {
    try {
        const boost::regex expression(pattern, boost::regex::ECMAScript);
        return boost::regex_search(text.begin(), text.end(), expression) ? 1.0 : 0.0;
    } catch (const std::runtime_error&) {  // too complex for this text, or not a pattern: says
                                           // nothing about the answer
        return std::nullopt;
    }
}

std::string_view without_end_space(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    return text;
}

/// Each fact: is it there?
std::vector<bool> facts_in(std::string_view text, const answer::Check& check) {
    const std::string lowered = lower(text);
    std::vector<bool> found;
    for (const std::string& fact : check.contains) found.push_back(contains(lowered, lower(fact)));
    return found;
}

/// Number of the last fact that is there, from 1.
std::ptrdiff_t reach(const std::vector<bool>& facts) {
    const auto last = std::find(facts.rbegin(), facts.rend(), true);
    return facts.rend() - last;
}

constexpr double kTailShare = 0.25;

bool ends_earlier(const std::vector<bool>& one, const std::vector<bool>& other) {
    const auto until = one.begin() + reach(one);
    const auto missed = std::count(one.begin(), until, false);
    return static_cast<double>(reach(other) - reach(one)) >=
               std::max(1.0, kTailShare * static_cast<double>(one.size())) &&
           missed <= std::count(other.begin(), other.begin() + reach(one), false);
}

int sign(bool forward, bool backward) {
    return static_cast<int>(forward) - static_cast<int>(backward);
}

}  // namespace

int missing_tail(std::string_view text, std::string_view other, const answer::Check& check) {
    int sum = 0;
    if (!check.contains.empty()) {
        const auto here = facts_in(text, check), there = facts_in(other, check);
        sum += sign(ends_earlier(here, there), ends_earlier(there, here));
    }
    if (check.items && *check.items > 0) {
        const auto items = [&](std::string_view one) {
            return std::min(1.0, static_cast<double>(list_items(one)) / *check.items);
        };
        const double less = items(other) - items(text);
        sum += sign(less >= kTailShare, -less >= kTailShare);
    }
    if (check.json)
        sum += sign(holds_json(other) && !holds_json(text), holds_json(text) && !holds_json(other));
    if (check.ends_with) {
        const bool here = without_end_space(text).ends_with(*check.ends_with),
                   there = without_end_space(other).ends_with(*check.ends_with);
        sum += sign(there && !here, here && !there);
    }
    return std::clamp(sum, -1, 1);
}

bool unfinished(std::string_view text, const answer::Check& check) {
    const auto facts = facts_in(text, check);
    const auto count = static_cast<double>(facts.size());
    if (count > 1 && static_cast<double>(reach(facts)) <= count * (1 - kTailShare)) return true;
    if (check.items && *check.items > 1 &&
        static_cast<double>(list_items(text)) <= *check.items * (1 - kTailShare))
        return true;
    return (check.json && !holds_json(text)) ||
           (check.ends_with && !without_end_space(text).ends_with(*check.ends_with));
}

int list_items(std::string_view text) {
    std::set<std::string> items;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
            line.remove_prefix(1);
        std::size_t mark = 0;
        if (line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ")) mark = 2;
        std::size_t digits = 0;
        while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits])) != 0)
            ++digits;
        if (digits > 0 && digits < line.size() && (line[digits] == '.' || line[digits] == ')'))
            mark = digits + 1;
        if (mark == 0) continue;
        std::string_view item = without_end_space(line.substr(mark));
        while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
        if (!item.empty()) items.insert(lower(item));
    }
    return static_cast<int>(items.size());
}

std::optional<double> coverage_of(std::string_view text, const answer::Check& check) {
    std::vector<double> parts;
    if (check.items && *check.items > 0)
        parts.push_back(std::min(1.0, static_cast<double>(list_items(text)) / *check.items));
    if (!check.contains.empty()) {
        const std::string lowered = lower(text);
        const auto found = std::ranges::count_if(check.contains, [&](const std::string& fact) {
            return contains(lowered, lower(fact));
        });
        parts.push_back(static_cast<double>(found) / static_cast<double>(check.contains.size()));
    }
    if (check.json) parts.push_back(holds_json(text) ? 1.0 : 0.0);
    if (check.regex)
        if (const auto found = pattern_found(text, *check.regex)) parts.push_back(*found);
    if (check.ends_with)
        parts.push_back(without_end_space(text).ends_with(*check.ends_with) ? 1.0 : 0.0);
    if (parts.empty()) return std::nullopt;
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum / static_cast<double>(parts.size());
}

}  // namespace fullstop::judge
