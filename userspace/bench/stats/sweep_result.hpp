// SPDX-License-Identifier: MIT
//
// The result of a sweep. A row is a work with its cells; it is measured, stored and
// reported as one, see bench/stats/grid.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/stats/grid.hpp"
#include "bench/stats/statistics.hpp"

namespace kxfer::bench {

// The part of a histogram that a result keeps. Percentiles with too few operations are empty.
struct Latencies {
    uint64_t count = 0;
    double min_ns = 0, mean_ns = 0, max_ns = 0;
    std::optional<double> p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns;
    // Begin of each bucket in ns, and the number of values in it; 16 buckets for each power of two.
    std::vector<std::pair<uint64_t, uint64_t>> buckets;
};

struct SweepCell {
    Way way;
    bool verified = false;
    uint64_t operations = 0;
    std::vector<double> blocks_ns; // ns per operation; two blocks per round
    std::optional<double> syscalls;
    Latencies latencies; // one at a time only
    // The engine's properties, see Parameters.
    std::string local_registration = {}, remote_registration = {}, write_success = {};
    // Per operation, of the thread that measured; empty: from an older file.
    std::optional<double> cpu_ns = {}, switches = {};

    double ns_per_operation() const { return median(blocks_ns); }
    // Geometric mean: the cell with the least has no ratio to another above 1.
    double mean_ns() const;
    double operations_per_second() const;
};

struct SweepRefusal {
    Way way;
    std::string reason;
};

struct SweepRow {
    Task work;
    unsigned batch = 1;
    double seconds = 0;    // duration of the measurement
    std::string obstacle;  // why nothing must be concluded from it; empty: it can be used
    std::string uncounted; // why system calls were not counted; empty: they were
    std::vector<SweepCell> cells;
    std::vector<SweepRefusal> refusals;

    const SweepCell* find(const Way& way) const;
};

struct SweepResult {
    // Where and how it was measured: these have to be the same for a row to be added; in the
    // order of the file.
    std::vector<std::pair<std::string, std::string>> facts;
    Grid grid;
    SweepPlan plan;
    std::vector<SweepRow> rows;

    const SweepRow* find(const Task& work) const;
    // Works that have no row yet.
    std::vector<Task> missing() const;
};

Latencies latencies_of(const Histogram& histogram);

// Ratio of the first cell's time to the second's, round by round; empty: their numbers of rounds differ.
std::optional<Ratio> time_ratio(const SweepCell& first, const SweepCell& second);

} // namespace kxfer::bench
