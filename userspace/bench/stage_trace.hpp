// SPDX-License-Identifier: MIT
//
// Records when the module's tracepoints are passed on behalf of this process, on all
// CPUs, by perf_event_open(2), with the times of CLOCK_MONOTONIC. Each event takes part
// of a microsecond, so what is traced is slower than what is not.
#pragma once

#include <memory>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"
#include "bench/stages.hpp"

namespace kxfer::bench {

class StageTrace {
  public:
    // Error::what of whatever open() returns.
    static constexpr char cannot_trace[] = "cannot trace the stages of jobs";
    // Events of a tracepoint on a CPU that are kept; more are lost.
    static constexpr size_t max_events = 1024;

    // ENOENT: no module with trace points, or no tracefs; EACCES, EPERM: the caller may not. The
    // error says what to try.
    static tl::expected<StageTrace, Error> open();
    StageTrace(StageTrace&&) noexcept;
    StageTrace& operator=(StageTrace&&) = delete;
    ~StageTrace();

    void start();
    // Ends it and tells what was seen since start().
    StageEvents stop();

  private:
    class Ring;

    StageTrace();
    tl::expected<void, Error> add(size_t point);

    std::array<std::vector<Ring>, stage_points.size()> rings_; // of each CPU
};

// Runs a block of jobs for this alone, one at a time; `operations` is set to how many.
tl::expected<Stages, Error> trace_stages(Engine& engine, const Workload& workload, uint64_t* operations);

} // namespace kxfer::bench
