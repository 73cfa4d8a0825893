// SPDX-License-Identifier: MIT
#include "bench/stats/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace kxfer::bench {

double fairness_index(std::span<const double> values) {
    double sum = 0, squares = 0;

    for (const double value : values) {
        sum += value;
        squares += value * value;
    }
    return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 0;
}

double median(std::span<const double> values) {
    std::vector<double> sorted(values.begin(), values.end());
    const size_t middle = sorted.size() / 2;

    if (sorted.empty()) return 0;
    std::ranges::sort(sorted);
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double student_t95(unsigned degrees_of_freedom) {
    // 97.5 % quantiles for 1 to 30 degrees of freedom.
    static constexpr std::array table{
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    };

    if (degrees_of_freedom == 0) return INFINITY;
    if (degrees_of_freedom <= table.size()) return table[degrees_of_freedom - 1];
    // Cornish-Fisher to the first order; within 0.2 % from 30 on.
    constexpr double z = 1.959964;
    return z + (z * z * z + z) / (4.0 * degrees_of_freedom);
}

std::optional<Ratio> ratio_of(std::span<const std::pair<double, double>> pairs) {
    const auto count = static_cast<double>(pairs.size());
    std::vector<double> logs;
    double sum = 0, squares = 0;

    if (pairs.size() < 2) return std::nullopt;
    for (const auto& [first, second] : pairs) {
        if (!(first > 0) || !(second > 0)) return std::nullopt;
        logs.push_back(std::log(first / second));
        sum += logs.back();
    }
    const double mean = sum / count;
    for (double log : logs) squares += (log - mean) * (log - mean);
    const double deviation = std::sqrt(squares / (count - 1));
    const double reach = student_t95(static_cast<unsigned>(pairs.size() - 1)) * deviation / std::sqrt(count);
    return Ratio{std::exp(mean), std::exp(mean - reach), std::exp(mean + reach)};
}

} // namespace kxfer::bench
