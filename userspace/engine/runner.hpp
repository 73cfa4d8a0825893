// SPDX-License-Identifier: MIT
//
// Runs blocks of a workload on an engine: to measure, to count system calls, or to
// move data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "engine/engine.hpp"

namespace kxfer::bench {

// System calls per operation of the calling thread. Runs a block for this alone, at that rate if it
// is not 0; sets `operations`, if given, to the block's number of operations.
tl::expected<double, Error> count_syscalls(Engine& engine, const Workload& workload, Mode mode,
                                           uint64_t* operations = nullptr, double rate = 0);

// Median of the latencies of so many operations; reorders `samples`. Empty: some are missing.
std::optional<double> median_of(std::vector<uint32_t>& samples, uint64_t operations);

// Does the operation once on every slot.
tl::expected<void, Error> sweep(Engine& engine, const Workload& workload, Operation operation);

} // namespace kxfer::bench
