// SPDX-License-Identifier: MIT
//
// An earlier result of `kxfer bench` for comparison with a new one: its parameters,
// which have to be the same, and the figures that are compared: rate, bw, p50, p99.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bench/stats/figure.hpp"
#include "bench/stats/verdict.hpp"

namespace kxfer::bench {

struct Baseline {
    // The values of `result` and `format` in the JSON of a result.
    static constexpr char result[] = "kxfer bench";
    static constexpr unsigned format = 1;

    std::map<std::string, std::string> parameters; // values as JSON has them
    std::map<std::string, std::optional<double>> figures;
    bool interrupted = false; // its run was ended early
};

// Parses one JSON object; the error says what is wrong with it.
tl::expected<Baseline, std::string> parse_baseline(const std::string& json);

// "depth: 1 in the baseline, 16 now" for each parameter that differs.
std::vector<std::string> find_differences(const Baseline& baseline, const Baseline& now);

// Gives one verdict for each figure. tolerance: share by which a figure may be worse, 0.05 for
// 5 %; a better figure always passes.
std::vector<Verdict> judge(const Baseline& baseline, const Baseline& now, double tolerance,
                           const std::string& obstacle);

// "5%" or "5": a share from 0 to 10.
std::optional<double> parse_tolerance(const std::string& text);

} // namespace kxfer::bench
