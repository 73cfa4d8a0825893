// SPDX-License-Identifier: MIT
//
// A sweep's result as text: JSON lines. The first line says where and how it was measured,
// each other line holds a row. The text only grows, by whole lines, so that measured rows
// survive whatever ends the sweep.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bench/stats/sweep_result.hpp"

namespace kxfer::bench {

struct ParsedSweep {
    SweepResult result;
    size_t length = 0; // bytes of complete lines; a torn line may follow
};

// facts: a JSON object.
std::string head_line(const std::string& facts, const Grid& grid, const SweepPlan& plan);
std::string row_line(const SweepRow& row);

// A last line that is no whole JSON object is left out: its writer was killed. The error
// says what is wrong with another line.
tl::expected<ParsedSweep, std::string> parse_sweep(const std::string& text);

// "kernel: 6.1 in the file, 6.12 now" for each difference that forbids mixing rows.
std::vector<std::string> find_differences(const SweepResult& file, const SweepResult& now);

// A line of names, then a line for each cell, measured or refused; RFC 4180.
std::string csv_text(const SweepResult& result);
std::string csv_field(const std::string& text);

} // namespace kxfer::bench
