// SPDX-License-Identifier: MIT
//
// An engine that the runner drives runs one block, and the meter gets its operations one by
// one. kverbs, whose block is one call, runs a block for each piece of the time. Time between
// two pieces does not count, except at a rate: then one schedule runs from the first piece on,
// operations that became due between pieces are late, and the time is part of the run.

#include "bench/run/run.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/run/stage_trace.hpp"
#include "engine/evidence.hpp"
#include "engine/read_check.hpp"
#include "engine/runner.hpp"
#include "engine/syscall_counter.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// Limits of a piece, a block of an engine that reports nothing before its end: operations and
// time.
constexpr uint64_t piece_operations = 1 << 20;
constexpr nanoseconds piece_time = std::chrono::seconds(1);
// Time limit of the first piece if the run has too few operations to be divided: the piece uses
// each slot, even if that takes longer than piece_time, and must not be begun anew.
constexpr nanoseconds short_piece_time = std::chrono::minutes(1);
// The shortest time limit of a piece.
constexpr nanoseconds shortest_piece = std::chrono::milliseconds(1);

uint64_t count_of(nanoseconds duration) {
    return static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
}

double per_second(uint64_t operations, uint64_t elapsed_ns) {
    return elapsed_ns ? static_cast<double>(operations) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

std::optional<uint64_t> told(const Histogram& histogram, double percent) {
    if (!histogram.supports(percent)) return std::nullopt;
    return histogram.percentile(percent);
}

// Sorts completed operations into intervals.
class Meter : public Observer {
  public:
    // in_order: completions are always those of the oldest operations in flight.
    Meter(const RunPlan& plan, RunResult& result, bool in_order)
        : plan_(plan), result_(result), in_order_(in_order),
          interval_ns_(plan.count ? 0 : count_of(plan.interval)) {
        const uint64_t duration = count_of(plan.duration);
        if (interval_ns_) nr_intervals_ = (duration + interval_ns_ - 1) / interval_ns_;
    }

    // usage: of the thread, right before the begin.
    void begin(const Usage& usage) {
        usage_ = usage;
        start_ = Clock::now();
    }

    void completed(Clock::time_point due, Clock::time_point handed_in, Clock::time_point seen) override {
        pass(count_of(seen - start_));
        latencies_.add(count_of(seen - due));
        if (plan_.rate > 0) result_.uncorrected.add(count_of(seen - handed_in));
        operations_++;
        if (result_.workload.is_mix()) count_share(count_of(seen - due));
    }

    // Adds a piece of an engine that reports only at its end; pieces have no gap between them.
    void add(const Block& block) {
        latencies_.add(block.latencies);
        result_.uncorrected.add(block.uncorrected);
        operations_ += block.operations;
        elapsed_ns_ += block.elapsed_ns;
        const uint64_t length = elapsed_ns_ - begin_ns_;
        // An interval that lacks a thousandth or less is complete: the kernel counts milliseconds.
        if (interval_ns_ && !is_last() && length >= interval_ns_ - interval_ns_ / 1000) close(length);
    }

    // With pieces: the time left in the interval.
    nanoseconds room() const {
        return interval_ns_ && !is_last() ? nanoseconds(begin_ns_ + interval_ns_ - elapsed_ns_)
                                          : nanoseconds::max();
    }
    // With pieces: total time so far.
    nanoseconds elapsed() const { return nanoseconds(elapsed_ns_); }
    uint64_t operations() const { return result_.operations + operations_; }

    // Closes the intervals that ended before now, empty ones too. The last interval gets
    // the operations that were in flight when the time was over.
    void pass(uint64_t now) {
        while (interval_ns_ && !is_last() && now >= begin_ns_ + interval_ns_) close(interval_ns_);
    }

    void end(uint64_t elapsed_ns) {
        if (!interval_ns_)
            add_up();
        else if (operations_ > 0 || elapsed_ns > begin_ns_)
            close(std::max(elapsed_ns, begin_ns_ + 1) - begin_ns_);
        result_.elapsed_ns = elapsed_ns;
    }

    Conditions conditions() { return watch_.finish(); }

  private:
    void count_share(uint64_t latency_ns) {
        const Operation operation = result_.workload.operation_at(nr_completed_++);
        auto& shares = result_.shares;
        auto share = std::find_if(shares.begin(), shares.end(),
                                  [&](const auto& one) { return one.operation == operation; });
        if (share == shares.end()) share = shares.insert(shares.end(), ShareFigures{operation, 0, {}});
        share->operations++;
        if (in_order_) share->latencies.add(latency_ns);
    }

    void tell_latencies(Interval& interval) const {
        if (latencies_.count() == 0) return;
        interval.min_ns = latencies_.min();
        interval.p50_ns = told(latencies_, 50);
        interval.p90_ns = told(latencies_, 90);
        interval.p99_ns = told(latencies_, 99);
        interval.p99_9_ns = told(latencies_, 99.9);
        interval.p99_99_ns = told(latencies_, 99.99);
        interval.max_ns = latencies_.max();
    }

    void add_up() {
        result_.latencies.add(latencies_);
        result_.operations += operations_;
    }

    void close(uint64_t length) {
        const Usage usage = usage_now();
        Interval interval;

        interval.index = result_.intervals.size();
        interval.begin_ns = begin_ns_;
        interval.elapsed_ns = length;
        interval.operations = operations_;
        interval.usage = usage - usage_;
        usage_ = usage;
        tell_latencies(interval);
        add_up();
        latencies_ = Histogram();
        operations_ = 0;
        begin_ns_ += length;
        result_.intervals.push_back(interval);
        watch_.sample();
        if (plan_.on_interval) plan_.on_interval(interval);
    }

    bool is_last() const { return result_.intervals.size() + 1 >= nr_intervals_; }

    const RunPlan& plan_;
    RunResult& result_;
    bool in_order_;
    uint64_t nr_completed_ = 0; // with a mix
    uint64_t interval_ns_;
    uint64_t nr_intervals_ = 0;
    ConditionsWatch watch_;
    Clock::time_point start_;
    Usage usage_;         // usage of the thread when the interval began
    Histogram latencies_; // latencies in the interval
    uint64_t operations_ = 0;
    uint64_t begin_ns_ = 0;
    uint64_t elapsed_ns_ = 0;
};

bool is_stopped(const RunPlan& plan) { return plan.stopped && plan.stopped(); }

tl::unexpected<Error> stop_error() { return tl::unexpected(Error("stopped measuring", "", EINTR)); }

// broken: set if an operation did not end because the run was stopped; the result has those before.
tl::expected<void, Error> run_driven(Engine& engine, Mode mode, const RunPlan& plan, Meter& meter,
                                     RunResult& result, Evidence& evidence, bool& broken) {
    Limits limits{plan.count ? plan.count : UINT64_MAX / 2,
                  plan.count ? nanoseconds::max() : plan.duration,
                  plan.stopped,
                  false,
                  &meter,
                  plan.rate};

    limits.keep = true;
    const auto begun = Clock::now();
    auto block = engine.run_block(result.workload, mode, limits);
    broken = !block && is_stopped(plan) && block.error().number != EBADMSG;
    if (broken) {
        meter.end(count_of(Clock::now() - begun));
        return {};
    }
    if (!block) return tl::unexpected(block.error());
    evidence.count(engine.slots(result.workload, mode), block->operations);
    result.nr_overdue = block->nr_overdue;
    meter.pass(block->elapsed_ns);
    meter.end(block->elapsed_ns);
    return {};
}

// Time from the first operation until `operations` others are due.
nanoseconds due_after(uint64_t operations, double rate) {
    return nanoseconds(std::llround(static_cast<double>(operations) * 1e9 / rate));
}

// broken: set if a piece was stopped: it is not in the result, and the engine must not be used.
tl::expected<void, Error> run_pieces(Engine& engine, Mode mode, const RunPlan& plan, Meter& meter,
                                     RunResult& result, Evidence& evidence, bool& broken) {
    const Workload& workload = result.workload;
    Clock::time_point first_begun, ended; // begin of the first piece, end of the previous one

    const auto goes_on = [&] {
        if (is_stopped(plan)) return false;
        if (plan.count) return meter.operations() < plan.count;
        return plan.duration - meter.elapsed() >= shortest_piece || meter.operations() == 0;
    };

    while (goes_on()) {
        const auto begun = Clock::now();
        const bool first = ended == Clock::time_point();
        if (first) first_begun = begun;
        const nanoseconds gap = plan.rate > 0 && !first ? begun - ended : nanoseconds{};
        const uint64_t left = plan.count ? plan.count - meter.operations() : UINT64_MAX;
        const nanoseconds longest = first && left < 2ULL * workload.depth ? short_piece_time : piece_time;
        Limits limits{std::min(left, piece_operations),
                      plan.count ? longest
                                 : std::min({piece_time, meter.room(), plan.duration - meter.elapsed()}),
                      plan.stopped,
                      true,
                      nullptr,
                      plan.rate};
        if (plan.rate > 0) limits.late = begun - first_begun - due_after(meter.operations(), plan.rate);
        limits.rest = !first;
        limits.keep = true;
        auto block = engine.run_block(workload, mode, limits);
        broken = !block && is_stopped(plan);
        if (broken) break;
        if (!block) return tl::unexpected(block.error());
        evidence.count(engine.slots(workload, mode), block->operations);
        ended = begun + nanoseconds(block->elapsed_ns);
        block->elapsed_ns += count_of(gap);
        result.work_requests = std::max(result.work_requests, block->work_requests);
        meter.add(*block);
        result.nr_overdue = plan.count ? 0 : block->nr_overdue;
    }
    meter.end(count_of(meter.elapsed()));
    return {};
}

// At a rate each slot is used once even without a warm-up: verification needs that.
tl::expected<void, Error> warm_up(Engine& engine, Mode mode, const Workload& workload, const RunPlan& plan,
                                  Evidence& evidence) {
    const uint64_t count = plan.rate > 0 && plan.warm_up == 0 ? workload.depth : plan.warm_up;
    if (count == 0) return {};
    const Limits limits{count, nanoseconds::max(), plan.stopped};
    TRY_SET(auto block, engine.run_block(workload, mode, limits));
    evidence.count(engine.slots(workload, mode), block.operations);
    return {};
}

tl::expected<void, Error> count_calls(Engine& engine, Mode mode, double rate, RunResult& result,
                                      Evidence& evidence) {
    uint64_t operations = 0;
    auto calls = count_syscalls(engine, result.workload, mode, &operations, rate);

    evidence.count(engine.slots(result.workload, mode), operations);
    if (calls) {
        result.syscalls = *calls;
        return {};
    }
    if (calls.error().what != SyscallCounter::cannot_count) return tl::unexpected(calls.error());
    result.uncounted = fmt::format("{}; {}", calls.error().text(), calls.error().hint);
    return {};
}

tl::expected<void, Error> find_stages(Engine& engine, RunResult& result, Evidence& evidence) {
    uint64_t operations = 0;
    auto stages = trace_stages(engine, result.workload, &operations);

    evidence.count(engine.slots(result.workload, Mode::single), operations);
    if (stages) {
        result.stages = std::move(*stages);
        return {};
    }
    if (stages.error().what != StageTrace::cannot_trace) return tl::unexpected(stages.error());
    result.no_stages = stages.error().text();
    if (!stages.error().hint.empty()) result.no_stages += "; " + stages.error().hint;
    return {};
}

tl::expected<void, Error> do_step(const Together::Step& step) {
    return step ? step() : tl::expected<void, Error>();
}

// A step of the peer's part of the run; its failure after an interrupt is no error.
tl::expected<void, Error> do_unless_stopped(const Together::Step& step, const RunPlan& plan) {
    auto done = do_step(step);
    if (!done && is_stopped(plan)) return {};
    return done;
}

// The footprint begins after all have warmed up and before any begins to measure, because reading
// it takes milliseconds.
tl::expected<void, Error> measure(Engine& engine, Mode mode, const RunPlan& plan, RunResult& result,
                                  Evidence& evidence, bool& broken) {
    const bool driven = dynamic_cast<SteppedEngine*>(&engine) != nullptr;
    TRY(do_step(plan.together.gather));
    Meter meter(plan, result, mode == Mode::single || engine.completes_in_order());
    const FootprintWatch footprint(plan.surroundings);
    engine.take_device_gaps(); // drop those from before
    TRY(do_step(plan.together.go));
    const Usage before = usage_now();
    meter.begin(before);
    TRY(driven ? run_driven(engine, mode, plan, meter, result, evidence, broken)
               : run_pieces(engine, mode, plan, meter, result, evidence, broken));
    result.interrupted = is_stopped(plan);
    if (result.operations == 0 && result.interrupted) return stop_error();
    result.usage = usage_now() - before;
    result.conditions = meter.conditions();
    TRY(do_step(plan.together.end));
    result.footprint = footprint.finish();
    TRY(do_unless_stopped(plan.together.peer, plan));
    result.device_gaps = engine.take_device_gaps();
    if (result.latencies.count() == 0)
        result.untimed =
            fmt::format("engine {} times operations only one at a time: --depth 1", engine.name());
    return {};
}

// What an interrupted run lacks.
void leave_out(const RunPlan& plan, RunResult& result) {
    result.uncounted = "interrupted before system calls were counted";
    if (plan.stages) result.no_stages = "interrupted before jobs were traced";
}

// In blocks of their own, after the measurement.
tl::expected<void, Error> look_closer(Engine& engine, Mode mode, const RunPlan& plan, RunResult& result,
                                      Evidence& evidence) {
    if (result.interrupted) return {};
    if (plan.count_calls) TRY(count_calls(engine, mode, plan.rate, result, evidence));
    return plan.stages ? find_stages(engine, result, evidence) : tl::expected<void, Error>();
}

} // namespace

double Interval::operations_per_second() const { return per_second(operations, elapsed_ns); }

double Interval::cpu_per_operation_ns() const {
    return operations ? usage.cpu_ns() / static_cast<double>(operations) : NAN;
}

double ClientFigures::operations_per_second() const { return per_second(operations, elapsed_ns); }

double RunResult::operations_per_second() const { return per_second(operations, elapsed_ns); }

double RunResult::bytes_per_second() const {
    return operations_per_second() * static_cast<double>(workload.size);
}

const Interval* RunResult::slowest() const {
    const Interval* worst = nullptr;

    for (const auto& one : intervals) {
        if (one.elapsed_ns < intervals.front().elapsed_ns / 2) continue;
        if (!worst || one.operations_per_second() < worst->operations_per_second()) worst = &one;
    }
    return worst;
}

const Interval* RunResult::jitteriest() const {
    const Interval* worst = nullptr;

    for (const auto& one : intervals)
        if (one.p99_ns && (!worst || *one.p99_ns > *worst->p99_ns)) worst = &one;
    return worst;
}

tl::expected<RunResult, Error> run(Engine& engine, const Memory& memory, const Workload& workload,
                                   const RunPlan& plan) {
    const Mode mode = workload.depth == 1 ? Mode::single : Mode::deep;
    bool broken = false;
    RunResult result;

    result.workload = workload;
    result.engine = engine.name();
    TRY_SET(auto evidence, prepare_data(engine, memory, workload));
    TRY(warm_up(engine, mode, workload, plan, evidence));
    ReadCheck reads(engine, memory, workload, mode);
    TRY(reads.begin(evidence));
    TRY(measure(engine, mode, plan, result, evidence, broken));
    if (result.interrupted) leave_out(plan, result);
    if (broken) return result;
    TRY(reads.end(evidence));
    TRY(look_closer(engine, mode, plan, result, evidence));
    TRY(engine.settle());
    result.losses = engine.losses();
    TRY_SET(result.verified, verify_data(engine, memory, workload, evidence));
    return result;
}

} // namespace kxfer::bench
