// SPDX-License-Identifier: MIT
//
// The grid of a sweep: axes, and the cells that they span. Words:
//   work   what is done: operation, size, depth, signalling
//   way    how it is done: engine, completion context, registration of local memory,
//          how the caller of a job waits
//   cell   a work done in a way. All cells of a work are measured in the same rounds, so
//          any two of them can be compared
// Parts of a way that an engine does not have are empty: verbs has no context, only kverbs has
// a choice of registration, and only a job in context polled has a choice of waiting. So no cell
// is measured twice under two names.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/stats/comparison.hpp"
#include "engine/workload.hpp"

namespace kxfer::bench {

struct Grid {
    std::vector<std::string> engines, operations;
    std::vector<uint64_t> sizes;
    std::vector<unsigned> depths;
    std::vector<std::string> contexts, memories, signals, polls;

    bool operator==(const Grid&) const = default;
};

struct Task {
    Operation operation = Operation::read;
    uint64_t size = 64;
    unsigned depth = 1;
    std::string signal = "each";

    bool operator==(const Task&) const = default;
    Mode mode() const { return depth == 1 ? Mode::single : Mode::deep; }
    // "READ, 32 deep, a completion a batch": everything except the size.
    std::string kind() const;
    uint64_t bytes() const { return Workload{operation, size, depth}.bytes(); }
};

struct Way {
    std::string engine, context, memory, poll;

    bool operator==(const Way&) const = default;
    std::string name() const; // "kverbs softirq mr"
};

// Extent of a sweep's measurements.
struct SweepPlan {
    unsigned rounds = 5;
    uint64_t count = 1000; // operations of a block, at most
    std::chrono::milliseconds block{25};

    // The plan of one work.
    Plan plan_of(Mode mode) const;
    // Time of one work if blocks take their full time. Deep blocks may take longer.
    double seconds_of(size_t ways) const;
};

// Ordered by signalling, because engines are connected anew for each. At depth 1 a batch is one
// operation, so there is only the first signalling; atomics have one size.
std::vector<Task> works_of(const Grid& grid);
std::vector<Way> ways_of(const Grid& grid);
// Leaves out the parts that the engine does not have.
Way way_of(const std::string& engine, const std::string& context, const std::string& memory,
           const std::string& poll);
// The way of the engine with the first value of each axis: the one in which engines are compared.
Way usual_way(const Grid& grid, const std::string& engine);

} // namespace kxfer::bench
