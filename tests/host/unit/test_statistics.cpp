// SPDX-License-Identifier: MIT
#include "bench/stats/statistics.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::bench;
using Pairs = std::vector<std::pair<double, double>>;

TEST(Statistics, median_of_odd_and_even_numbers_of_values) {
    EXPECT_EQ(median(std::vector<double>{}), 0);
    EXPECT_EQ(median(std::vector<double>{3}), 3);
    EXPECT_EQ(median(std::vector<double>{9, 1, 5}), 5);
    EXPECT_EQ(median(std::vector<double>{9, 1, 5, 6}), 5.5);
}

TEST(Statistics, student_quantiles_fall_to_the_normal_one) {
    EXPECT_TRUE(std::isinf(student_t95(0)));
    EXPECT_DOUBLE_EQ(student_t95(1), 12.706);
    EXPECT_DOUBLE_EQ(student_t95(4), 2.776);
    EXPECT_NEAR(student_t95(31), 2.0395, 0.005);
    EXPECT_NEAR(student_t95(120), 1.9799, 0.002);
    for (unsigned degrees = 1; degrees < 200; degrees++)
        EXPECT_LT(student_t95(degrees + 1), student_t95(degrees)) << degrees;
}

TEST(Statistics, a_ratio_needs_two_pairs_above_zero) {
    EXPECT_FALSE(ratio_of(Pairs{}));
    EXPECT_FALSE(ratio_of(Pairs{{1, 2}}));
    EXPECT_FALSE(ratio_of(Pairs{{1, 2}, {1, 0}}));
    EXPECT_FALSE(ratio_of(Pairs{{1, 2}, {NAN, 1}}));
    EXPECT_TRUE(ratio_of(Pairs{{1, 2}, {1, 2}}));
}

TEST(Statistics, a_constant_ratio_has_no_width_and_is_significant) {
    const auto ratio = ratio_of(Pairs{{20, 10}, {40, 20}, {2, 1}});

    ASSERT_TRUE(ratio);
    EXPECT_DOUBLE_EQ(ratio->value, 2);
    EXPECT_NEAR(ratio->low, 2, 1e-9);
    EXPECT_NEAR(ratio->high, 2, 1e-9);
    EXPECT_TRUE(ratio->significant());
}

TEST(Statistics, a_common_drift_does_not_widen_the_interval) {
    Pairs pairs;

    for (int round = 1; round <= 8; round++) pairs.emplace_back(3.0 * round, 2.0 * round);
    const auto ratio = ratio_of(pairs);
    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->low, 1.5, 1e-9);
    EXPECT_NEAR(ratio->high, 1.5, 1e-9);
}

TEST(Statistics, equal_sides_with_noise_are_not_told_apart) {
    const auto ratio = ratio_of(Pairs{{10, 11}, {11, 10}, {10, 10.5}, {10.5, 10}});

    ASSERT_TRUE(ratio);
    EXPECT_LT(ratio->low, 1);
    EXPECT_GT(ratio->high, 1);
    EXPECT_FALSE(ratio->significant());
}

// By hand: logs 0, ln 4; mean ln 2; deviation sqrt(2) ln 2; reach 12.706 ln 2.
TEST(Statistics, the_interval_is_students) {
    const auto ratio = ratio_of(Pairs{{1, 1}, {4, 1}});

    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->value, 2, 1e-12);
    EXPECT_NEAR(std::log(ratio->high / ratio->value), 12.706 * std::log(2.0), 1e-9);
    EXPECT_NEAR(std::log(ratio->value / ratio->low), 12.706 * std::log(2.0), 1e-9);
}

TEST(Statistics, the_interval_holds_the_truth_in_about_95_of_100_cases) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, 0.1);
    int held = 0;

    for (int i = 0; i < 2000; i++) {
        Pairs pairs;
        for (int round = 0; round < 5; round++) pairs.emplace_back(1.3 * std::exp(noise(random)), 1.0);
        const auto ratio = ratio_of(pairs);
        ASSERT_TRUE(ratio);
        held += ratio->low <= 1.3 && 1.3 <= ratio->high;
    }
    EXPECT_NEAR(held, 1900, 50);
}

TEST(Statistics, fairness_is_1_if_all_get_the_same_and_1_by_n_if_one_gets_all) {
    EXPECT_DOUBLE_EQ(fairness_index(std::vector<double>{7, 7, 7, 7}), 1);
    EXPECT_DOUBLE_EQ(fairness_index(std::vector<double>{0, 0, 0, 5}), 0.25);
    EXPECT_DOUBLE_EQ(fairness_index(std::vector<double>{1, 3}), 0.8);
    EXPECT_EQ(fairness_index(std::vector<double>{}), 0);
    EXPECT_EQ(fairness_index(std::vector<double>{0, 0}), 0);
}
