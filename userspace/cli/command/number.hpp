// SPDX-License-Identifier: MIT
//
// Options that take a number: what is allowed is in the help, and in the message about a wrong one.
#pragma once

#include <string>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace kxfer::cli {

// A check for CLI::Option::check(): a number from `least` to `most` and nothing else, not nan either.
template <typename T> CLI::Validator from_to(T least, T most) {
    constexpr T no_limit = 1000000000; // that much is no limit to a reader
    const auto check = [least, most](std::string& text) {
        T number = {};
        if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most)
            return std::string();
        return fmt::format("'{}' is not a {}number from {} to {}", text,
                           std::is_floating_point_v<T> ? "" : "whole ", least, most);
    };
    return {check,
            most >= no_limit ? fmt::format("({} or more)", least) : fmt::format("({}-{})", least, most)};
}

} // namespace kxfer::cli
