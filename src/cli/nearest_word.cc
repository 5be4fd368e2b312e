// Levenshtein distance; the words are short.
#include "cli/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace fullstop::cli {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
    const auto best = std::ranges::min_element(
        known, {}, [&](const std::string& k) { return distance(word, k); });
    return best != known.end() && distance(word, *best) <= 2 ? *best : "";
}

}  // namespace fullstop::cli
