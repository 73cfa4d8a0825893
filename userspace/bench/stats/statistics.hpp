// SPDX-License-Identifier: MIT
//
// Comparison of two engines, from pairs of figures measured side by side: each
// round gives one pair, so that a drift from round to round cancels out.
// The ratio is the geometric mean of the rounds' ratios; its 95 % interval is
// Student's t over their logarithms.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace kxfer::bench {

// Jain's index: the square of the sum, divided by n times the sum of squares. 1: all values are
// equal; 1/n: one has all. 0 without values.
double fairness_index(std::span<const double> values);
double median(std::span<const double> values);
// Student's t of a two-sided 95 % interval; infinite for 0 degrees of freedom.
double student_t95(unsigned degrees_of_freedom);

struct Ratio {
    double value = 1;
    double low = 1;
    double high = 1;

    // The interval does not contain 1: the difference is unlikely to be chance.
    bool significant() const { return low > 1 || high < 1; }
};

// Ratio of the first of each pair to the second. Empty: fewer than two pairs, or a figure
// that is not above zero.
std::optional<Ratio> ratio_of(std::span<const std::pair<double, double>> pairs);

} // namespace kxfer::bench
