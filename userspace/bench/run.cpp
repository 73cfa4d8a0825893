// SPDX-License-Identifier: MIT
//
// An engine that the runner drives runs one block, whose operations the meter is
// told one by one. kverbs, whose block is one call, runs a block for each piece of
// the time; what passes between two of them does not count.

#include "bench/run.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>

#include "bench/comparison.hpp"
#include "bench/runner.hpp"
#include "bench/syscall_counter.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// A block of an engine that tells nothing before its end: so many are timed, and so
// long may it take.
constexpr uint64_t piece_operations = 1 << 20;
constexpr nanoseconds piece_time = std::chrono::seconds(1);
// The least that such a block can be told.
constexpr nanoseconds shortest_piece = std::chrono::milliseconds(1);

uint64_t count_of(nanoseconds duration) {
    return static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
}

double per_second(uint64_t operations, uint64_t elapsed_ns) {
    return elapsed_ns ? static_cast<double>(operations) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

double timeval_ns(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
}

Usage usage_now() {
    rusage usage = {};

    getrusage(RUSAGE_THREAD, &usage);
    return {timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime), static_cast<uint64_t>(usage.ru_nvcsw),
            static_cast<uint64_t>(usage.ru_nivcsw)};
}

Usage operator-(const Usage& after, const Usage& before) {
    return {after.user_ns - before.user_ns, after.system_ns - before.system_ns,
            after.voluntary_switches - before.voluntary_switches,
            after.involuntary_switches - before.involuntary_switches};
}

std::optional<uint64_t> told(const Histogram& histogram, double percent) {
    if (!histogram.supports(percent)) return std::nullopt;
    return histogram.percentile(percent);
}

// Sorts what completes into intervals.
class Meter : public Observer {
  public:
    Meter(const RunPlan& plan, RunResult& result)
        : plan_(plan), result_(result), interval_ns_(plan.count ? 0 : count_of(plan.interval)) {
        const uint64_t duration = count_of(plan.duration);
        if (interval_ns_) nr_intervals_ = (duration + interval_ns_ - 1) / interval_ns_;
    }

    void begin() { start_ = Clock::now(); }

    void completed(Clock::time_point due, Clock::time_point handed_in, Clock::time_point seen) override {
        pass(count_of(seen - start_));
        latencies_.add(count_of(seen - due));
        if (plan_.rate > 0) result_.uncorrected.add(count_of(seen - handed_in));
        operations_++;
    }

    // Of an engine that tells nothing before; pieces follow each other without a gap.
    void add(const Block& block) {
        latencies_.add(block.latencies);
        operations_ += block.operations;
        elapsed_ns_ += block.elapsed_ns;
        const uint64_t length = elapsed_ns_ - begin_ns_;
        // What a thousandth is missing to is whole: the kernel counts milliseconds.
        if (interval_ns_ && !is_last() && length >= interval_ns_ - interval_ns_ / 1000) close(length);
    }

    // What is left of the interval, of pieces.
    nanoseconds room() const {
        return interval_ns_ && !is_last() ? nanoseconds(begin_ns_ + interval_ns_ - elapsed_ns_)
                                          : nanoseconds::max();
    }
    // Total time so far, of pieces.
    nanoseconds elapsed() const { return nanoseconds(elapsed_ns_); }
    uint64_t operations() const { return result_.operations + operations_; }

    void end(uint64_t elapsed_ns) {
        if (!interval_ns_)
            add_up();
        else if (operations_ > 0 || elapsed_ns > begin_ns_)
            close(std::max(elapsed_ns, begin_ns_ + 1) - begin_ns_);
        result_.elapsed_ns = elapsed_ns;
    }

    Conditions conditions() { return watch_.finish(); }

  private:
    // Closes the intervals that ended before now, empty ones too. The last one takes
    // what was in flight when the time was over.
    void pass(uint64_t now) {
        while (interval_ns_ && !is_last() && now >= begin_ns_ + interval_ns_) close(interval_ns_);
    }

    void add_up() {
        result_.latencies.add(latencies_);
        result_.operations += operations_;
    }

    void close(uint64_t length) {
        Interval interval{result_.intervals.size(), begin_ns_, length, operations_, told(latencies_, 50),
                          told(latencies_, 99),     {}};

        if (latencies_.count()) interval.max_ns = latencies_.max();
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
    uint64_t interval_ns_;
    uint64_t nr_intervals_ = 0;
    ConditionsWatch watch_;
    Clock::time_point start_;
    Histogram latencies_; // of the interval
    uint64_t operations_ = 0;
    uint64_t begin_ns_ = 0;
    uint64_t elapsed_ns_ = 0;
};

tl::expected<void, Error> run_driven(Engine& engine, Mode mode, const RunPlan& plan, Meter& meter,
                                     RunResult& result, Evidence& evidence) {
    const Limits limits{plan.count ? plan.count : UINT64_MAX / 2,
                        plan.count ? nanoseconds::max() : plan.duration,
                        plan.stopped,
                        false,
                        &meter,
                        plan.rate};

    meter.begin();
    auto block = engine.run_block(result.workload, mode, limits);
    if (!block) return tl::unexpected(block.error());
    evidence.count(engine.slots(result.workload, mode), block->operations);
    result.nr_overdue = block->nr_overdue;
    meter.end(block->elapsed_ns);
    return {};
}

tl::expected<void, Error> run_pieces(Engine& engine, Mode mode, const RunPlan& plan, Meter& meter,
                                     const Workload& workload, Evidence& evidence) {
    while (plan.count ? meter.operations() < plan.count
                      : plan.duration - meter.elapsed() >= shortest_piece || meter.operations() == 0) {
        const uint64_t left = plan.count ? plan.count - meter.operations() : UINT64_MAX;
        const Limits limits{
            std::min(left, piece_operations),
            plan.count ? piece_time : std::min({piece_time, meter.room(), plan.duration - meter.elapsed()}),
            plan.stopped, true};
        auto block = engine.run_block(workload, mode, limits);
        if (!block) return tl::unexpected(block.error());
        evidence.count(engine.slots(workload, mode), block->operations);
        meter.add(*block);
    }
    meter.end(count_of(meter.elapsed()));
    return {};
}

tl::expected<void, Error> warm_up(Engine& engine, Mode mode, const Workload& workload, const RunPlan& plan,
                                  Evidence& evidence) {
    if (plan.warm_up == 0) return {};
    const Limits limits{plan.warm_up, nanoseconds::max(), plan.stopped};
    auto block = engine.run_block(workload, mode, limits);
    if (!block) return tl::unexpected(block.error());
    evidence.count(engine.slots(workload, mode), block->operations);
    return {};
}

tl::expected<void, Error> count_calls(Engine& engine, Mode mode, RunResult& result, Evidence& evidence) {
    uint64_t operations = 0;
    auto calls = count_syscalls(engine, result.workload, mode, &operations);

    evidence.count(engine.slots(result.workload, mode), operations);
    if (calls) {
        result.syscalls = *calls;
        return {};
    }
    if (calls.error().what != SyscallCounter::cannot_count) return tl::unexpected(calls.error());
    result.uncounted = fmt::format("{}; {}", calls.error().text(), calls.error().hint);
    return {};
}

tl::expected<void, Error> measure(Engine& engine, Mode mode, const RunPlan& plan, RunResult& result,
                                  Evidence& evidence) {
    const bool driven = dynamic_cast<SteppedEngine*>(&engine) != nullptr;
    Meter meter(plan, result);
    const Usage before = usage_now();
    auto done = driven ? run_driven(engine, mode, plan, meter, result, evidence)
                       : run_pieces(engine, mode, plan, meter, result.workload, evidence);
    if (!done) return done;
    result.usage = usage_now() - before;
    result.conditions = meter.conditions();
    if (result.latencies.count() == 0)
        result.untimed =
            fmt::format("engine {} times operations only one at a time: --depth 1", engine.name());
    return {};
}

} // namespace

double Interval::operations_per_second() const { return per_second(operations, elapsed_ns); }

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
    RunResult result;

    result.workload = workload;
    result.engine = engine.name();
    auto evidence = prepare_data(engine, memory, workload);
    if (!evidence) return tl::unexpected(evidence.error());
    if (auto warm = warm_up(engine, mode, workload, plan, *evidence); !warm)
        return tl::unexpected(warm.error());
    if (auto done = measure(engine, mode, plan, result, *evidence); !done)
        return tl::unexpected(done.error());
    if (auto counted = count_calls(engine, mode, result, *evidence); !counted)
        return tl::unexpected(counted.error());
    auto verified = verify_data(engine, memory, workload, *evidence);
    if (!verified) return tl::unexpected(verified.error());
    result.verified = *verified;
    return result;
}

} // namespace kxfer::bench
