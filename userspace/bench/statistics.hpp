// SPDX-License-Identifier: MIT
//
// How two engines compare, from pairs of figures measured side by side: each
// round gives one pair, so that what drifts from round to round falls out.
// The ratio is the geometric mean of the rounds' ratios; its 95 % interval is
// Student's t over their logarithms.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace kxfer::bench {

// Jain's: the square of the sum by n times the sum of squares. 1: all get the same; 1/n: one
// gets all. 0 of nothing.
double fairness_index(std::span<const double> values);
double median(std::span<const double> values);
// Of a two-sided 95 % interval; 0 degrees of freedom have none.
double student_t95(unsigned degrees_of_freedom);

struct Ratio {
    double value = 1;
    double low = 1;
    double high = 1;

    // The interval does not hold 1: one side is better beyond chance.
    bool significant() const { return low > 1 || high < 1; }
};

// Of a pair's first to its second. Empty: fewer than two pairs, or a figure
// that is not above zero.
std::optional<Ratio> ratio_of(std::span<const std::pair<double, double>> pairs);

} // namespace kxfer::bench
