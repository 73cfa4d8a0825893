// SPDX-License-Identifier: MIT
#include "engine/histogram.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <linux/kxfer_bench.h>

using kxfer::bench::Histogram;

TEST(Histogram, small_values_have_a_bucket_each) {
    for (uint64_t value = 0; value < 256; value++) {
        EXPECT_EQ(Histogram::bucket_of(value), value);
        EXPECT_EQ(Histogram::bucket_first(value), value);
        EXPECT_EQ(Histogram::bucket_last(value), value);
    }
}

TEST(Histogram, buckets_cover_all_values_without_gap_or_overlap) {
    EXPECT_EQ(Histogram::bucket_first(0), 0U);
    for (unsigned bucket = 0; bucket + 1 < Histogram::nr_buckets(); bucket++)
        ASSERT_EQ(Histogram::bucket_last(bucket) + 1, Histogram::bucket_first(bucket + 1)) << bucket;
    EXPECT_EQ(Histogram::bucket_last(Histogram::nr_buckets() - 1), UINT64_MAX);
}

TEST(Histogram, each_value_lies_in_its_bucket) {
    std::mt19937_64 random(1);

    for (int i = 0; i < 100000; i++) {
        const uint64_t value = random() >> random() % 64;
        const unsigned bucket = Histogram::bucket_of(value);
        ASSERT_LE(Histogram::bucket_first(bucket), value);
        ASSERT_GE(Histogram::bucket_last(bucket), value);
    }
}

TEST(Histogram, a_bucket_is_at_most_a_128th_of_its_values_wide) {
    for (unsigned bucket = 256; bucket < Histogram::nr_buckets(); bucket++) {
        const uint64_t first = Histogram::bucket_first(bucket);
        ASSERT_LE(Histogram::bucket_last(bucket) - first, first / 128) << bucket;
    }
}

TEST(Histogram, percentiles_of_known_values) {
    Histogram histogram;

    for (uint64_t value = 1; value <= 100; value++) histogram.add(value);
    EXPECT_EQ(histogram.percentile(0), 1U);
    EXPECT_EQ(histogram.percentile(50), 50U);
    EXPECT_EQ(histogram.percentile(99), 99U);
    EXPECT_EQ(histogram.percentile(99.5), 100U);
    EXPECT_EQ(histogram.percentile(100), 100U);
    EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
}

TEST(Histogram, values_of_which_only_the_bucket_is_known_count_as_its_middle) {
    Histogram histogram;

    histogram.add_bucket(Histogram::bucket_of(7), 3);
    histogram.add_bucket(Histogram::bucket_of(1000000), 5);
    histogram.add_bucket(Histogram::bucket_of(2000000), 0);
    EXPECT_EQ(histogram.count(), 8U);
    EXPECT_EQ(histogram.min(), 7U);
    EXPECT_EQ(histogram.percentile(25), 7U);
    EXPECT_NEAR(static_cast<double>(histogram.percentile(50)), 1e6, 1e6 / 256);
    EXPECT_EQ(histogram.max(), histogram.percentile(100));
    EXPECT_NEAR(histogram.mean(), (3 * 7 + 5e6) / 8, 5e6 / 8 / 256);
}

// The module fills these buckets.
TEST(Histogram, the_kernel_s_buckets_are_the_first_of_these) {
    EXPECT_EQ(Histogram::bucket_of(UINT32_MAX) + 1, unsigned{KXFER_BENCH_NR_BUCKETS});
    EXPECT_LE(unsigned{KXFER_BENCH_NR_BUCKETS}, Histogram::nr_buckets());
}

TEST(Histogram, percentiles_stay_within_what_was_seen) {
    Histogram histogram;

    histogram.add(1000001);
    EXPECT_EQ(histogram.percentile(50), 1000001U);
    EXPECT_EQ(histogram.percentile(99.99), 1000001U);
}

TEST(Histogram, an_empty_one_says_zero) {
    const Histogram histogram;

    EXPECT_EQ(histogram.count(), 0U);
    EXPECT_EQ(histogram.min(), 0U);
    EXPECT_EQ(histogram.max(), 0U);
    EXPECT_EQ(histogram.percentile(50), 0U);
    EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, the_greatest_value_has_room) {
    Histogram histogram;

    histogram.add(UINT64_MAX);
    EXPECT_EQ(histogram.percentile(100), UINT64_MAX);
}

TEST(Histogram, sums_are_as_if_all_had_been_added_to_one) {
    Histogram all, low, high;

    for (uint64_t value = 0; value < 3000; value += 7) {
        all.add(value * value);
        (value % 2 ? low : high).add(value * value);
    }
    low.add(high);
    EXPECT_EQ(low.count(), all.count());
    EXPECT_EQ(low.min(), all.min());
    EXPECT_EQ(low.max(), all.max());
    for (double percent : {1.0, 50.0, 90.0, 99.9})
        EXPECT_EQ(low.percentile(percent), all.percentile(percent));
}

TEST(Histogram, a_percentile_is_at_most_a_256th_off) {
    std::mt19937_64 random(2);

    for (int i = 0; i < 10000; i++) {
        const uint64_t value = random() >> random() % 64;
        Histogram histogram;
        // One value below and one above, so that min() and max() do not help.
        histogram.add(0);
        histogram.add(value);
        histogram.add(UINT64_MAX);
        const uint64_t told = histogram.percentile(50);
        ASSERT_LE(told > value ? told - value : value - told, value / 256 + 1) << value;
    }
}

TEST(Histogram, ten_values_have_to_lie_beyond_a_percentile) {
    Histogram histogram;

    EXPECT_EQ(Histogram::needed(50), 20U);
    EXPECT_EQ(Histogram::needed(90), 100U);
    EXPECT_EQ(Histogram::needed(99), 1000U);
    EXPECT_EQ(Histogram::needed(99.9), 10000U);
    EXPECT_EQ(Histogram::needed(99.99), 100000U);
    for (uint64_t value = 0; value < 999; value++) histogram.add(value);
    EXPECT_FALSE(histogram.supports(99));
    histogram.add(1);
    EXPECT_TRUE(histogram.supports(99));
    EXPECT_FALSE(histogram.supports(99.9));
}

TEST(Histogram, comes_back_from_its_words) {
    Histogram histogram;
    for (const uint64_t value : {uint64_t{1}, uint64_t{300}, uint64_t{300}, UINT64_MAX}) histogram.add(value);
    ASSERT_EQ(histogram.words().size(), Histogram::nr_words());
    Histogram copy = Histogram::from_words(histogram.words());
    EXPECT_EQ(copy.count(), 4U);
    EXPECT_EQ(copy.min(), 1U);
    EXPECT_EQ(copy.max(), UINT64_MAX);
    EXPECT_EQ(copy.mean(), histogram.mean());
    EXPECT_EQ(copy.percentile(50), histogram.percentile(50));
    EXPECT_EQ(Histogram::from_words(Histogram().words()).min(), 0U);
}

TEST(Histogram, numbers_of_another_process_have_to_belong_together) {
    Histogram whole;
    for (const uint64_t value : {100, 200, 300}) whole.add(value);
    const auto good = whole.words();
    const auto with = [&](size_t at, uint64_t word) {
        auto words = good;
        words[at] = word;
        return Histogram::from_words(words);
    };
    // The count follows from the buckets.
    EXPECT_EQ(with(0, UINT64_MAX).count(), 3U);
    EXPECT_EQ(with(0, 0).percentile(50), whole.percentile(50));
    EXPECT_EQ(with(1, 301).count(), 0U);
    EXPECT_EQ(with(3, std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())).count(), 0U);
    EXPECT_EQ(with(3, std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity())).mean(), 0);
    EXPECT_EQ(Histogram::from_words(Histogram().words()).count(), 0U);
    EXPECT_EQ(Histogram::from_words(good).mean(), 200);
}
