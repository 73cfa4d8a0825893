// SPDX-License-Identifier: MIT
//
// Percentiles of values that are all kept, by the rule of engine/histogram.hpp: too few
// values do not support high percentiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cli/output/record.hpp"
#include "engine/histogram.hpp"

namespace kxfer::cli {

// The smallest value such that at least `percent` of all values are not greater (nearest
// rank); NaN: too few values. `sorted`: in ascending order.
template <typename Number> double quantile_ns(const std::vector<Number>& sorted, double percent) {
    if (sorted.empty() || sorted.size() < bench::Histogram::needed(percent)) return NAN;
    const auto rank = static_cast<size_t>(std::ceil(static_cast<double>(sorted.size()) * percent / 100));
    return static_cast<double>(sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1]);
}

// The key has its unit even if the value is unknown; text shows "-" then.
inline void add_quantile(Record& record, const std::string& key, double ns) {
    record.add(key, Nanoseconds{ns}, Show::json_only)
        .add(key, std::isnan(ns) ? Value(None{}) : Value(Nanoseconds{ns}), Show::text_only);
}

} // namespace kxfer::cli
