// SPDX-License-Identifier: MIT
//
// One cell of a comparison: one operation and size on each engine, in rounds of
// A B B A (A B C C B A), so that a drift of the machine affects all engines alike. Every cell
// verifies the data that it moved.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/run/thread_usage.hpp"
#include "bench/stats/statistics.hpp"
#include "engine/engine.hpp"
#include "engine/evidence.hpp"
#include "engine/histogram.hpp"
#include "engine/runner.hpp"

namespace kxfer::bench {

struct Plan {
    unsigned rounds = 5;
    uint64_t count = 1000;                       // operations of a block
    std::chrono::nanoseconds budget{1000000000}; // time of all timed blocks of a cell
    int (*stopped)() = nullptr;                  // see Limits
    std::vector<Mode> modes = {Mode::single, Mode::deep};
    // Time limit of a block; empty: its share of the budget.
    std::optional<std::chrono::nanoseconds> block = {};
};

struct ModeResult {
    std::vector<double> blocks; // ns per operation: median (single), mean (deep)
    uint64_t operations = 0;
    Usage usage;                    // of the thread, in all blocks
    std::optional<double> syscalls; // per operation
    // Ratio of the last engine's time to this one's; empty in the last.
    std::optional<Ratio> last_to_this;

    double ns_per_operation() const { return median(blocks); }
    double operations_per_second() const;
    double cpu_ns_per_operation() const;
    double switches_per_operation() const;
};

struct EngineResult {
    std::string engine;
    std::string local_registration; // how work requests name local memory
    Connection connection;          // the connection that was measured
    std::string message_success;    // what a completed message proves; empty for other operations
    ModeResult single;
    ModeResult deep;
    Histogram latencies;          // all single blocks
    bool verified = false;        // false: the peer's memory cannot be written, or too much was lost
    std::optional<Losses> losses; // all messages, including those not measured
    Evidence evidence;
};

// Why an engine does not do the workload: the engine, its device or its provider cannot.
struct Refusal {
    std::string engine;
    Error error;
};

struct Cell {
    Workload workload;
    std::vector<EngineResult> engines; // engines that can do it, in the order given
    std::vector<Refusal> refusals;     // the other engines
    std::string uncounted;             // why system calls were not counted; empty: they were

    std::vector<Connection> connections() const; // one for each engine
};

// The engines share the local memory, and find_mismatch() has passed. An engine that cannot do
// the operation is left out.
tl::expected<Cell, Error> run_cell(std::span<Engine* const> engines, const Memory& memory,
                                   const Workload& workload, const Plan& plan);

// A difference between the engines' connections; empty: no known one.
std::string find_difference(const Cell& cell);

} // namespace kxfer::bench
