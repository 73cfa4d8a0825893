// SPDX-License-Identifier: MIT
//
// TRY and TRY_SET: a failure is passed on, a value is kept, and the expression is evaluated once.
#include <cerrno>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <tl/expected.hpp>

#include <kxfer/error.hpp>

#include "base/try.hpp"
#include "cli/output/failure.hpp"

using kxfer::Error;

namespace {

unsigned nr_calls;

tl::expected<std::unique_ptr<int>, Error> number(int value) {
    nr_calls++;
    if (value < 0) return tl::unexpected(Error("no number", std::to_string(value), ERANGE));
    return std::make_unique<int>(value);
}

tl::expected<int, Error> sum(int a, int b) {
    TRY_SET(const auto first, number(a));
    std::unique_ptr<int> second;
    TRY_SET(second, number(b));
    return *first + *second;
}

tl::expected<void, Error> check(int value, bool wanted) {
    if (wanted)
        TRY(number(value));
    else
        nr_calls = 100;
    return {};
}

kxfer::cli::Result command(int value) {
    TRY(number(value));
    return kxfer::cli::exit_ok;
}

} // namespace

TEST(Try, gives_the_value_which_may_be_one_that_only_moves) {
    nr_calls = 0;
    EXPECT_EQ(sum(2, 3).value(), 5);
    EXPECT_EQ(nr_calls, 2U);
}

TEST(Try, returns_the_error_at_once) {
    nr_calls = 0;
    EXPECT_EQ(sum(-1, 3).error().on, "-1");
    EXPECT_EQ(nr_calls, 1U);
    EXPECT_EQ(sum(1, -3).error().on, "-3");
}

TEST(Try, is_one_statement) {
    nr_calls = 0;
    EXPECT_TRUE(check(1, true));
    EXPECT_EQ(nr_calls, 1U);
    EXPECT_EQ(check(-1, true).error().number, ERANGE);
    EXPECT_TRUE(check(-1, false));
    EXPECT_EQ(nr_calls, 100U);
}

TEST(Try, makes_a_failure_of_an_error) {
    EXPECT_EQ(command(1).value(), kxfer::cli::exit_ok);
    EXPECT_EQ(command(-1).error().status, kxfer::cli::exit_failed);
}
