// Prometheus' text format 0.0.4: the two lines that introduce any metric, a metric of one value,
// and histograms. Written directly: some dozen lines do not need a library.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullstop::serving {

inline void introduce_metric(std::string& out, std::string_view name, std::string_view type,
                             std::string_view help) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

/// A metric with one value and no label.
template <class Number>
void write_metric(std::string& out, std::string_view name, std::string_view type,
                  std::string_view help, Number value) {
    introduce_metric(out, name, type, help);
    fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

class Histogram {
public:
    /// Ascending, inclusive; they outlive the histogram.
    explicit Histogram(std::span<const double> bounds)
        : bounds_(bounds), counts_(bounds.size() + 1) {}

    void add(double value) {
        ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) -
                                           bounds_.begin())];
        sum_ += value;
    }
    /// `labels` as they stand between the braces, without the last comma; may be empty.
    void write(std::string& out, std::string_view name, std::string_view labels) const {
        const auto put = std::back_inserter(out);
        const std::string_view comma = labels.empty() ? "" : ",";
        std::int64_t below = 0;
        for (std::size_t i = 0; i < bounds_.size(); ++i)
            fmt::format_to(put, "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bounds_[i],
                           below += counts_[i]);
        below += counts_.back();
        const std::string own = labels.empty() ? "" : fmt::format("{{{}}}", labels);
        fmt::format_to(put,
                       "{0}_bucket{{{1}{2}le=\"+Inf\"}} {4}\n{0}_sum{5} {3}\n{0}_count{5} {4}\n",
                       name, labels, comma, sum_, below, own);
    }

private:
    std::span<const double> bounds_;
    std::vector<std::int64_t> counts_;
    double sum_ = 0;
};

}  // namespace fullstop::serving
