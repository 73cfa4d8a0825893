// SPDX-License-Identifier: MIT
//
// Runs one block of a workload on one engine. `single`: one operation at a
// time, each timed from the end of the one before. `deep`: `depth` operations
// in flight, topped up by batches. A block ends at its count or its budget of
// time, whichever comes first, and not before each slot was used once in deep.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"
#include "bench/histogram.hpp"

namespace kxfer::bench {

enum class Mode { single, deep };

struct Limits {
    uint64_t count = 1000;
    std::chrono::nanoseconds budget = std::chrono::milliseconds(25);
    int (*stopped)() = nullptr; // not 0: the block ends with EINTR, operations may be in flight
};

struct Block {
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    Histogram latencies; // single only
};

tl::expected<Block, Error> run_block(Engine& engine, const Workload& workload, Mode mode,
                                     const Limits& limits);

// System calls an operation of the calling thread in such a block, which is run
// for this alone.
tl::expected<double, Error> count_syscalls(Engine& engine, const Workload& workload, Mode mode);

// Moves every slot once.
tl::expected<void, Error> sweep(Engine& engine, const Workload& workload, Operation operation);

} // namespace kxfer::bench
