// SPDX-License-Identifier: MIT
//
// One engine and one workload, measured for a time or for a number of operations,
// as `kxfer bench` does it.
//
// Latency of an operation: from before the call that handed it in to the return of
// the call that brought its completion, as its caller sees it. All operations of a batch have
// the same hand-in time, and latency includes the wait for a batch's worth of completions. The
// engines job and verbs are timed here; kverbs times its own operations in the kernel: one at a
// time from the end of one to the end of the next, many at once from the post to when the
// completion was found, and keeps its own schedule.
//
// At a rate (open loop) operations are due on a schedule, independent of others. Latency begins
// when an operation is due, so it includes the wait to be handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/run/conditions.hpp"
#include "bench/run/footprint.hpp"
#include "bench/run/stages.hpp"
#include "bench/run/thread_usage.hpp"
#include "engine/engine.hpp"
#include "engine/histogram.hpp"

namespace kxfer::bench {

// Part of a run. A percentile is empty if there are too few operations for it.
struct Interval {
    uint64_t index = 0;
    uint64_t begin_ns = 0; // since the begin of the run
    uint64_t elapsed_ns = 0;
    uint64_t operations = 0;
    std::optional<uint64_t> min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, max_ns;
    Usage usage; // if several end at once, because nothing completed meanwhile, the first has all

    double operations_per_second() const;
    double cpu_per_operation_ns() const; // NaN: no operations
};

// Figures of one of several processes that measure at the same time, see clients.hpp.
struct ClientFigures {
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    std::optional<uint64_t> p50_ns;
    std::optional<uint64_t> p99_ns;
    bool verified = false;

    double operations_per_second() const;
};

// Figures of one kind of operation in a mix.
struct ShareFigures {
    Operation operation = Operation::read;
    uint64_t operations = 0;
    Histogram latencies; // empty if a completion does not show which operation it ends
};

// Steps of several processes that measure at the same time; none is part of the measured time.
struct Together {
    using Step = std::function<tl::expected<void, Error>()>;
    Step gather = {}; // first: waits until all others have warmed up
    Step go = {};     // right before the measurement: lets all begin, or waits for that
    Step end = {};    // right after it: waits until all whose operations are added up have measured
    Step peer = {};   // after the footprint: waits for a peer that measures separately
};

struct RunPlan {
    std::chrono::nanoseconds duration = std::chrono::seconds(5);
    uint64_t count = 0;                  // not 0: so many operations, however long they take
    std::chrono::nanoseconds interval{}; // 0: the run is not divided
    uint64_t warm_up = 0;                // operations before the measurement
    double rate = 0;                     // operations a second, on schedule; 0: when others have ended
    int (*stopped)() = nullptr;          // not 0: end now, with the result so far
    std::function<void(const Interval&)> on_interval = {};
    Together together = {};
    Surroundings surroundings = {};
    bool stages = false;     // trace the stages of jobs, in a block of its own after the run
    bool count_calls = true; // count system calls, in a block of its own after the run
};

struct RunResult {
    Workload workload;
    std::string engine;
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    unsigned work_requests = 0; // of the longest operation; 0: the engine does not know
    Histogram latencies;
    std::string untimed;     // why there are no latencies; empty: there are
    Histogram uncorrected;   // at a rate: latencies from hand-in, not from when due
    uint64_t nr_overdue = 0; // at a rate: operations due when the time was over, but not handed in
    std::vector<Interval> intervals;
    std::vector<ShareFigures> shares;   // for a mix only
    std::vector<ClientFigures> clients; // for several clients only
    Usage usage;
    Footprint footprint;
    Conditions conditions;
    std::optional<double> syscalls; // per operation
    std::string uncounted;          // why system calls were not counted; empty: they were
    std::optional<Stages> stages;
    std::string no_stages;                // why there are no stages though they were asked for
    std::optional<Histogram> device_gaps; // between completions, by the device's clock
    std::optional<Losses> losses;         // lost messages, including the warm-up
    bool interrupted = false;             // the result is of a part of the run
    bool verified = false;                // false: nothing is moved, or the peer's memory cannot be written

    double operations_per_second() const;
    double bytes_per_second() const;
    // The slowest of the intervals that lasted at least half as long as the first, and the interval
    // with the greatest p99; null: none, or no interval has a p99.
    const Interval* slowest() const;
    const Interval* jitteriest() const;
};

// EINTR: the run was stopped before anything was measured. If it is stopped later, the result so far
// is verified, unless the engine's block was interrupted; nothing is counted or traced then.
//
// Depth 1 means one at a time, else so many operations are in flight. Verifies the data
// before and after. System calls are counted and stages traced afterwards, in blocks of
// their own.
tl::expected<RunResult, Error> run(Engine& engine, const Memory& memory, const Workload& workload,
                                   const RunPlan& plan);

} // namespace kxfer::bench
