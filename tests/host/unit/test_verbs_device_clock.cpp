// SPDX-License-Identifier: MIT
#include "verbs/device_clock.hpp"

#include <gtest/gtest.h>

using kxfer::verbs::DeviceClock;

TEST(DeviceClock, ticks_are_told_in_nanoseconds) {
    EXPECT_EQ(DeviceClock(156250, UINT64_MAX).nanoseconds(156250), 1000000U);
    EXPECT_EQ(DeviceClock(1000000, UINT64_MAX).nanoseconds(7), 7U);
    EXPECT_EQ(DeviceClock().nanoseconds(7), 0U);
}

TEST(DeviceClock, the_first_completion_is_apart_from_nothing) {
    DeviceClock clock(1000000, UINT64_MAX);

    clock.add(1000);
    EXPECT_EQ(clock.take().count(), 0U);
    clock.add(5000);
    clock.add(5100);
    const auto gaps = clock.take();
    EXPECT_EQ(gaps.count(), 1U);
    EXPECT_EQ(gaps.max(), 100U);
}

TEST(DeviceClock, a_clock_of_few_bits_begins_again) {
    DeviceClock clock(1000000, 0xffff);

    clock.add(0xfff0);
    clock.add(0x0010);
    EXPECT_EQ(clock.take().max(), 0x20U);
}
