// SPDX-License-Identifier: MIT
//
// One engine and one workload, measured for a time or for a number of operations,
// as `kxfer bench` does it.
//
// Latency of an operation: from before the call that handed it in to the return of
// the call that brought its completion, as its caller sees it. Of a batch all have
// the same hand-in, and the wait for a batch's worth of completions is in it. The
// engines through /dev/kxfer and verbs are timed here; kverbs times its own
// operations in the kernel: one at a time from the end of one to the end of the next,
// many at once from the post to when the completion was found, and keeps its own schedule.
//
// At a rate (open loop) operations are due on a schedule, whatever became of others, and
// latency begins when one was due: what it waited for to be handed in at all is in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/conditions.hpp"
#include "bench/engine.hpp"
#include "bench/footprint.hpp"
#include "bench/histogram.hpp"
#include "bench/stages.hpp"
#include "bench/thread_usage.hpp"

namespace kxfer::bench {

// Part of a run. What too few operations can tell is empty.
struct Interval {
    uint64_t index = 0;
    uint64_t begin_ns = 0; // since the begin of the run
    uint64_t elapsed_ns = 0;
    uint64_t operations = 0;
    std::optional<uint64_t> min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, max_ns;
    Usage usage; // of several that end at once, because nothing came meanwhile, the first has all

    double operations_per_second() const;
    double cpu_per_operation_ns() const; // NaN: there was none
};

// Of one of several processes that measure at the same time, see clients.hpp.
struct ClientFigures {
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    std::optional<uint64_t> p50_ns;
    std::optional<uint64_t> p99_ns;
    bool verified = false;

    double operations_per_second() const;
};

// Of the operations of a kind in a mix.
struct ShareFigures {
    Operation operation = Operation::read;
    uint64_t operations = 0;
    Histogram latencies; // none if it is not known whose completion came
};

// What several that measure at the same time do; none of it is in the time that counts.
struct Together {
    using Step = std::function<tl::expected<void, Error>()>;
    Step gather = {}; // first: waits until all others have warmed up
    Step go = {};     // right before what is measured: lets all begin, or waits for that
    Step end = {};    // right behind it: waits until all whose operations are added up have measured
    Step peer = {};   // behind the footprint: likewise of a peer that measures for itself
};

struct RunPlan {
    std::chrono::nanoseconds duration = std::chrono::seconds(5);
    uint64_t count = 0;                  // not 0: so many operations, however long they take
    std::chrono::nanoseconds interval{}; // 0: the run is not divided
    uint64_t warm_up = 0;                // operations before what counts
    double rate = 0;                     // operations a second, on schedule; 0: when others have ended
    int (*stopped)() = nullptr;          // not 0: what was measured so far is the result
    std::function<void(const Interval&)> on_interval = {};
    Together together = {};
    Surroundings surroundings = {};
    bool stages = false;     // of a job, in a block of its own behind the run
    bool count_calls = true; // likewise: system calls
};

struct RunResult {
    Workload workload;
    std::string engine;
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    unsigned work_requests = 0; // of the longest operation; 0: the engine does not know
    Histogram latencies;
    std::string untimed;     // why there are no latencies; empty: there are
    Histogram uncorrected;   // at a rate: from hand-in, not from when it was due
    uint64_t nr_overdue = 0; // at a rate: due when the time was over, and not handed in
    std::vector<Interval> intervals;
    std::vector<ShareFigures> shares;   // of a mix, else none
    std::vector<ClientFigures> clients; // more than one, else none
    Usage usage;
    Footprint footprint;
    Conditions conditions;
    std::optional<double> syscalls; // an operation
    std::string uncounted;          // why there are none; empty: there are
    std::optional<Stages> stages;
    std::string no_stages;                // why there are none though they were asked for
    std::optional<Histogram> device_gaps; // between completions, by the device's clock
    std::optional<Losses> losses;         // of messages, warm-up and all
    bool interrupted = false;             // what there is is of a part of the run
    bool verified = false;                // else nothing is moved, or the peer's memory cannot be written

    double operations_per_second() const;
    double bytes_per_second() const;
    // Slowest, and that with the greatest p99, of the intervals that lasted at least half as
    // long as the first; null: none, or none tells.
    const Interval* slowest() const;
    const Interval* jitteriest() const;
};

// EINTR: it was stopped before anything was measured. Where it is stopped later, what there is is
// verified, but for an engine whose block broke off; nothing is counted or traced after it.
//
// Depth 1 is one at a time, else as many as that are in flight. Verifies the data
// before and behind. System calls are counted and stages traced behind it, in blocks of
// their own.
tl::expected<RunResult, Error> run(Engine& engine, const Memory& memory, const Workload& workload,
                                   const RunPlan& plan);

} // namespace kxfer::bench
