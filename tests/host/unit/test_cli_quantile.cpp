// SPDX-License-Identifier: MIT
//
// Percentiles of `kxfer ping` and `nop`: by nearest rank, and not known of too few.
#include "cli/transfer/quantile.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::cli;

namespace {

std::vector<uint64_t> first(size_t nr) {
    std::vector<uint64_t> values(nr);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

} // namespace

TEST(Quantile, of_too_few_is_not_known) {
    EXPECT_TRUE(std::isnan(quantile_ns(first(0), 50)));
    for (const double percent : {50.0, 99.0, 99.9}) {
        const uint64_t needed = kxfer::bench::Histogram::needed(percent);
        EXPECT_TRUE(std::isnan(quantile_ns(first(needed - 1), percent))) << percent;
        EXPECT_FALSE(std::isnan(quantile_ns(first(needed), percent))) << percent;
    }
}

TEST(Quantile, is_the_nearest_rank) {
    EXPECT_EQ(quantile_ns(first(1000), 99), 990);
    EXPECT_EQ(quantile_ns(first(1001), 99), 991);
    EXPECT_EQ(quantile_ns(first(101), 50), 51);
}
