// SPDX-License-Identifier: MIT
//
// Records when jobs of this process pass the module's tracepoints, on all CPUs, by
// perf_event_open(2), with times of CLOCK_MONOTONIC. Each event costs part of a
// microsecond, so traced jobs are slower than others.
#pragma once

#include <memory>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/run/stages.hpp"
#include "engine/engine.hpp"

namespace kxfer::bench {

class StageTrace {
  public:
    // Error::what of all errors of open().
    static constexpr char cannot_trace[] = "cannot trace the stages of jobs";
    // Events kept for each tracepoint and CPU; more are lost.
    static constexpr size_t max_events = 1024;

    // ENOENT: no module with trace points, or no tracefs; EACCES, EPERM: the caller lacks the right.
    // The error says what to try.
    static tl::expected<StageTrace, Error> open();
    StageTrace(StageTrace&&) noexcept;
    StageTrace& operator=(StageTrace&&) = delete;
    ~StageTrace();

    void start();
    // Ends the recording and returns the events since start().
    StageEvents stop();

  private:
    class Ring;

    StageTrace();
    tl::expected<void, Error> add(size_t point);

    std::array<std::vector<Ring>, stage_points.size()> rings_; // one for each CPU
};

// Runs a block of jobs for this alone, one at a time; sets `operations` to their number.
tl::expected<Stages, Error> trace_stages(Engine& engine, const Workload& workload, uint64_t* operations);

} // namespace kxfer::bench
