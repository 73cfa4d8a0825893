// SPDX-License-Identifier: MIT
//
// A sweep's result as text: JSON lines. The first says where and how it was measured,
// each other one holds a row. It only grows, by whole lines, so that what was
// measured survives whatever ends the sweep.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bench/sweep_result.hpp"

namespace kxfer::bench {

struct ParsedSweep {
    SweepResult result;
    size_t length = 0; // bytes that hold it; behind them may be a line that was torn
};

// facts: a JSON object.
std::string head_line(const std::string& facts, const Grid& grid, const SweepPlan& plan);
std::string row_line(const SweepRow& row);

// A last line that is no whole JSON object is left out: its writer was killed. The error
// says what is wrong with the others.
tl::expected<ParsedSweep, std::string> parse_sweep(const std::string& text);

// "kernel: 6.1 in the file, 6.12 now" for all for which rows must not be mixed.
std::vector<std::string> find_differences(const SweepResult& file, const SweepResult& now);

// A line for each cell, measured or refused, below a line of names; RFC 4180.
std::string csv_text(const SweepResult& result);
// Quoted if that is needed.
std::string csv_field(const std::string& text);

} // namespace kxfer::bench
