// SPDX-License-Identifier: MIT
#include "bench/stats/sweep_result.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kxfer::bench {

namespace {

// Significant bits that the begin of a kept bucket has.
constexpr unsigned kept_bits = 5;

uint64_t kept_first(uint64_t value) {
    const unsigned width = std::bit_width(value);
    const unsigned shift = width > kept_bits ? width - kept_bits : 0;
    return value >> shift << shift;
}

std::optional<double> told(const Histogram& histogram, double percent) {
    if (!histogram.supports(percent)) return std::nullopt;
    return static_cast<double>(histogram.percentile(percent));
}

// One figure from a round's two blocks, forward and back, so that a drift cancels out.
double round_figure(const SweepCell& cell, size_t round) {
    return std::sqrt(cell.blocks_ns[2 * round] * cell.blocks_ns[2 * round + 1]);
}

} // namespace

double SweepCell::mean_ns() const {
    double sum = 0;
    for (const double ns : blocks_ns) sum += std::log(ns);
    return blocks_ns.empty() ? 0 : std::exp(sum / static_cast<double>(blocks_ns.size()));
}

double SweepCell::operations_per_second() const {
    const double ns = ns_per_operation();
    return ns > 0 ? 1e9 / ns : 0;
}

const SweepCell* SweepRow::find(const Way& way) const {
    const auto found = std::ranges::find(cells, way, &SweepCell::way);
    return found == cells.end() ? nullptr : &*found;
}

const SweepRow* SweepResult::find(const Task& work) const {
    const auto found = std::ranges::find(rows, work, &SweepRow::work);
    return found == rows.end() ? nullptr : &*found;
}

std::vector<Task> SweepResult::missing() const {
    std::vector<Task> works = works_of(grid);
    std::erase_if(works, [this](const Task& work) { return find(work) != nullptr; });
    return works;
}

Latencies latencies_of(const Histogram& histogram) {
    Latencies latencies{histogram.count(),      static_cast<double>(histogram.min()),
                        histogram.mean(),       static_cast<double>(histogram.max()),
                        told(histogram, 50),    told(histogram, 90),
                        told(histogram, 99),    told(histogram, 99.9),
                        told(histogram, 99.99), {}};

    for (unsigned i = 0; i < Histogram::nr_buckets(); i++) {
        const uint64_t count = histogram.count_in(i);
        if (count == 0) continue;
        const uint64_t first = kept_first(Histogram::bucket_first(i));
        if (latencies.buckets.empty() || latencies.buckets.back().first != first)
            latencies.buckets.emplace_back(first, 0);
        latencies.buckets.back().second += count;
    }
    return latencies;
}

std::optional<Ratio> time_ratio(const SweepCell& first, const SweepCell& second) {
    std::vector<std::pair<double, double>> pairs;

    if (first.blocks_ns.size() != second.blocks_ns.size()) return std::nullopt;
    for (size_t round = 0; 2 * round + 1 < first.blocks_ns.size(); round++)
        pairs.emplace_back(round_figure(first, round), round_figure(second, round));
    return ratio_of(pairs);
}

} // namespace kxfer::bench
