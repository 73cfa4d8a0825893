// SPDX-License-Identifier: MIT
//
// One cell of a comparison: one operation and size on each engine, in rounds of
// A B B A (A B C C B A), so that a drift of the machine hits all alike. Every cell verifies
// the data that it moved.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"
#include "bench/histogram.hpp"
#include "bench/runner.hpp"
#include "bench/statistics.hpp"
#include "bench/thread_usage.hpp"

namespace kxfer::bench {

struct Plan {
    unsigned rounds = 5;
    uint64_t count = 1000;                       // operations of a block
    std::chrono::nanoseconds budget{1000000000}; // of a cell's timed blocks
    int (*stopped)() = nullptr;                  // see Limits
    std::vector<Mode> modes = {Mode::single, Mode::deep};
    // Most time of a block; empty: its share of the budget.
    std::optional<std::chrono::nanoseconds> block = {};
};

struct ModeResult {
    std::vector<double> blocks; // ns an operation: median (single), mean (deep)
    uint64_t operations = 0;
    Usage usage;                    // of the thread, in all blocks
    std::optional<double> syscalls; // an operation
    // Of the last engine's time to this one's; empty in the last.
    std::optional<Ratio> last_to_this;

    double ns_per_operation() const { return median(blocks); }
    double operations_per_second() const;
    double cpu_ns_per_operation() const;
    double switches_per_operation() const;
};

// By what data is verified that was brought to the peer.
struct Evidence {
    uint64_t sequence = 0;                 // of the data; of atomics none
    std::vector<uint64_t> slot_operations; // done on each slot since the peer's memory was zero

    // A block's, which go to so many slots in turn, from the first on.
    void count(unsigned slots, uint64_t operations);
};

struct EngineResult {
    std::string engine;
    std::string local_registration; // how work requests name local memory
    Connection connection;          // that it was measured on
    std::string message_success;    // what a completed message proves; of other operations empty
    ModeResult single;
    ModeResult deep;
    Histogram latencies;          // of all blocks one at a time
    bool verified = false;        // else the peer's memory cannot be written, or too much was lost
    std::optional<Losses> losses; // of messages, those that were not measured too
    Evidence evidence;
};

// Why an engine does not do the workload: its device, its provider, or it itself cannot.
struct Refusal {
    std::string engine;
    Error error;
};

struct Cell {
    Workload workload;
    std::vector<EngineResult> engines; // that can, in the order given
    std::vector<Refusal> refusals;     // of the others
    std::string uncounted;             // why there are no system calls; empty: there are

    std::vector<Connection> connections() const; // of the engines
};

// The engines share the local memory. They have been found to match. An engine that
// cannot do the operation is left out.
tl::expected<Cell, Error> run_cell(std::span<Engine* const> engines, const Memory& memory,
                                   const Workload& workload, const Plan& plan);

// What of the engines' connections differs; empty: nothing that is known.
std::string find_difference(const Cell& cell);

// What run_cell() does to an engine before and after its blocks, for who measures one by
// itself: brings data to both ends, and finds whether all of it was moved right. Between
// the two all blocks have to be counted in the evidence, and the engine settles. verify_data()
// tells whether it could: the peer's memory may be READ only, nothing is moved, or nearly all is lost.
tl::expected<Evidence, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload);
tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Evidence& evidence);

} // namespace kxfer::bench
