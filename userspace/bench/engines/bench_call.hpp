// SPDX-License-Identifier: MIT
//
// What all engines that call KXFER_BENCH have in common: its time limit, and the block of its results.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <linux/kxfer_bench.h>

#include "engine/engine.hpp"

namespace kxfer::bench {

// The module's unit is a millisecond: at least one, and at most what it allows.
uint32_t time_limit_ms(std::chrono::nanoseconds budget);
// samples: as many as the call had room for; only those that it stored stay.
Block block_of(const kxfer_bench& bench, std::vector<uint32_t>& samples);

} // namespace kxfer::bench
