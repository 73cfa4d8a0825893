// SPDX-License-Identifier: MIT
#include "bench/engines/bench_call.hpp"

#include <algorithm>

#include "engine/runner.hpp"

namespace kxfer::bench {

using std::chrono::milliseconds;

uint32_t time_limit_ms(std::chrono::nanoseconds budget) {
    const auto limit = std::chrono::ceil<milliseconds>(
        std::min<std::chrono::nanoseconds>(budget, milliseconds(KXFER_BENCH_MAX_TIME_MS)));
    return static_cast<uint32_t>(std::max<milliseconds::rep>(limit.count(), 1));
}

Block block_of(const kxfer_bench& bench, std::vector<uint32_t>& samples) {
    Block block;

    block.operations = bench.operations;
    block.elapsed_ns = bench.total_ns;
    block.work_requests = bench.nr_wr;
    samples.resize(bench.nr_samples);
    for (const uint32_t sample : samples) block.latencies.add(sample);
    block.median_ns = median_of(samples, block.operations);
    return block;
}

} // namespace kxfer::bench
