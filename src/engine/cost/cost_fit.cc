// Normal equations of the scaled problem, solved for each of the 31 subsets by elimination with
// pivoting. A subset whose columns depend on each other is skipped: a smaller one says the same.
#include "engine/cost/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace fullstop::engine {
namespace {

using Matrix = std::array<CostTerms, kCostTerms>;

/// min |A x - 1|² with A = features / ms, each column scaled to length one: G = AᵀA, r = Aᵀ1.
struct NormalEquations {
    Matrix gram{};
    CostTerms right{};
    CostTerms scale{};  ///< 0: the column is empty

    explicit NormalEquations(std::span<const CostSample> samples) {
        for (const CostSample& sample : samples)
            for (std::size_t i = 0; i < kCostTerms; ++i)
                scale[i] += sample.features[i] * sample.features[i] / (sample.ms * sample.ms);
        for (double& length : scale) length = std::sqrt(length);
        for (const CostSample& sample : samples)
            for (std::size_t i = 0; i < kCostTerms; ++i) {
                if (scale[i] == 0) continue;
                const double a = sample.features[i] / sample.ms / scale[i];
                right[i] += a;
                for (std::size_t j = 0; j < kCostTerms; ++j)
                    if (scale[j] != 0) gram[i][j] += a * sample.features[j] / sample.ms / scale[j];
            }
    }
};

/// Columns of length one that are this close to depending on each other are told apart by rounding
/// only.
constexpr double kLeastPivot = 1e-9;

/// The unconstrained solution with the columns in `subset`, the others zero. Absent: the columns
/// depend on each other.
std::optional<CostTerms> solve(const NormalEquations& equations, std::uint32_t subset) {
    std::array<std::size_t, kCostTerms> column{};
    std::size_t n = 0;
    for (std::size_t i = 0; i < kCostTerms; ++i)
        if ((subset >> i & 1U) != 0) column[n++] = i;
    std::array<std::array<double, kCostTerms + 1>, kCostTerms> m{};
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) m[i][j] = equations.gram[column[i]][column[j]];
        m[i][n] = equations.right[column[i]];
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t pivot = i;
        for (std::size_t k = i + 1; k < n; ++k)
            if (std::abs(m[k][i]) > std::abs(m[pivot][i])) pivot = k;
        if (std::abs(m[pivot][i]) < kLeastPivot) return std::nullopt;
        std::swap(m[i], m[pivot]);
        for (std::size_t k = 0; k < n; ++k) {
            if (k == i) continue;
            const double factor = m[k][i] / m[i][i];
            for (std::size_t j = i; j <= n; ++j) m[k][j] -= factor * m[i][j];
        }
    }
    CostTerms x{};
    for (std::size_t i = 0; i < n; ++i) x[column[i]] = m[i][n] / m[i][i];
    return x;
}

/// |A x - 1|² without the constant.
double objective(const NormalEquations& equations, const CostTerms& x) {
    double sum = 0;
    for (std::size_t i = 0; i < kCostTerms; ++i)
        sum += x[i] * (dot(equations.gram[i], x) - 2 * equations.right[i]);
    return sum;
}

}  // namespace

double dot(const CostTerms& a, const CostTerms& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

CostTerms fit_non_negative(std::span<const CostSample> samples) {
    for (const CostSample& sample : samples)
        FULLSTOP_ASSERT(sample.ms > 0, "a measured time is above zero");
    const NormalEquations equations(samples);
    CostTerms best{};
    double least = 0;  // of all zeros
    for (std::uint32_t subset = 1; subset < 1U << kCostTerms; ++subset) {
        const auto x = solve(equations, subset);
        if (!x || std::ranges::any_of(*x, [](double value) { return value < 0; })) continue;
        if (const double value = objective(equations, *x); value < least) {
            least = value;
            best = *x;
        }
    }
    for (std::size_t i = 0; i < kCostTerms; ++i)
        best[i] = equations.scale[i] == 0 ? 0 : best[i] / equations.scale[i];
    return best;
}

}  // namespace fullstop::engine
