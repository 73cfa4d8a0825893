// SPDX-License-Identifier: MIT
//
// To pass a failure on: both macros take an expression that gives a tl::expected, and return its
// error, if it has one, from the function they stand in.
//
//   TRY(engine.settle());                              there is no value, or it is not needed
//   TRY_SET(auto memory, Memory::create(bytes));       declares a variable with the value
//   TRY_SET(region_, session.add_region(range, 0));    assigns the value
//
// A function that returns Failure may TRY what returns Error. TRY_SET is more than one statement, so
// it needs a block around it, as any declaration.
#pragma once

#include <utility>

#include <tl/expected.hpp>

#define TRY(...)                                                                                             \
    do {                                                                                                     \
        if (auto try_result = (__VA_ARGS__); !try_result)                                                    \
            return tl::unexpected(std::move(try_result).error());                                            \
    } while (false)

#define TRY_SET(target, ...) TRY_SET_AT_(__LINE__, target, __VA_ARGS__)
#define TRY_SET_AT_(line, target, ...) TRY_SET_BY_(line, target, __VA_ARGS__)
#define TRY_SET_BY_(line, target, ...)                                                                       \
    auto try_result_##line = (__VA_ARGS__);                                                                  \
    if (!try_result_##line) return tl::unexpected(std::move(try_result_##line).error());                     \
    target = *std::move(try_result_##line)
