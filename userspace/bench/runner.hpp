// SPDX-License-Identifier: MIT
//
// Runs blocks of a workload on an engine: for what they measure, for the system
// calls they make, for the bytes they move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"

namespace kxfer::bench {

// System calls an operation of the calling thread in such a block, at that rate if it is not 0, which
// is run for this alone; `operations`, if given, is set to how many it had.
tl::expected<double, Error> count_syscalls(Engine& engine, const Workload& workload, Mode mode,
                                           uint64_t* operations = nullptr, double rate = 0);

// Of the latencies of so many operations, which are put out of order; empty: some are missing.
std::optional<double> median_of(std::vector<uint32_t>& samples, uint64_t operations);

// Moves every slot once.
tl::expected<void, Error> sweep(Engine& engine, const Workload& workload, Operation operation);

} // namespace kxfer::bench
