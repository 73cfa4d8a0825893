// SPDX-License-Identifier: MIT
//
// What shows that an engine moved the data of a measurement: the sequence of the data
// (verification.hpp) and the number of operations on each slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "engine/engine.hpp"

namespace kxfer::bench {

struct Evidence {
    uint64_t sequence = 0;                 // sequence of the data; 0 with atomics
    std::vector<uint64_t> slot_operations; // operations done on each slot since the peer's memory was zero

    // Adds the operations of a block, which go to the slots in turn, from the first on.
    void count(unsigned slots, uint64_t operations);
};

// Verifies the engine's operations, WRITEs and READs with a new sequence. Also brings
// everything into caches and page tables before the measurement.
tl::expected<void, Error> prove(Engine& engine, const Memory& memory, const Workload& workload,
                                Evidence& evidence);
// Fills all engines' remote memory with the same data, which WRITEs and messages do themselves.
// Returns the data's sequence; 0 with atomics.
tl::expected<uint64_t, Error> fill_all(std::span<Engine* const> engines, const Memory& memory,
                                       const Workload& workload);

// The workload is of atomics, and their count can be read back.
bool counts(const Engine& engine, const Workload& workload);
// Engines may share the peer's words, so each block of atomics counts from zero. Before and after each
// block.
tl::expected<void, Error> begin_counting(Engine& engine, const Workload& workload, Evidence& evidence);
tl::expected<void, Error> end_counting(Engine& engine, const Memory& memory, const Workload& workload,
                                       Mode mode, uint64_t operations, Evidence& evidence);

// For a single engine: prove() and fill_all() before the measurement, and the check after it that all
// data was moved correctly. In between the caller counts all blocks in the evidence, and calls
// settle(). verify_data() returns false if it could not verify: the peer's memory may only be READ,
// nothing is moved, or nearly all is lost.
tl::expected<Evidence, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload);
tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Evidence& evidence);

} // namespace kxfer::bench
