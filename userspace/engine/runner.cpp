// SPDX-License-Identifier: MIT
#include "engine/runner.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/syscall_counter.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t counted_operations = 256;
// Limit of the latencies that a single block keeps.
constexpr uint64_t most_samples = 1 << 20;
// Longest sleep until stopped() is checked again.
constexpr auto longest_sleep = std::chrono::milliseconds(20);

uint64_t nanoseconds(Clock::duration duration) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

Transfer transfer_of(const Workload& workload, uint64_t index) {
    return {workload.operation_at(index), workload.slot_offset(index), workload.size};
}

bool is_stopped(const Limits& limits) { return limits.stopped && limits.stopped(); }

// Stopped, and the operations so far must not be kept.
bool is_given_up(const Limits& limits) { return !limits.keep && is_stopped(limits); }

// The time is over, or the block was stopped and has to end in the same way.
bool is_over(const Limits& limits, Clock::duration elapsed) {
    return elapsed >= limits.budget || (limits.keep && is_stopped(limits));
}

tl::unexpected<Error> stop_error() { return tl::unexpected(Error("stopped measuring", "", EINTR)); }

// Keeps each latency, and sorts them after the block, outside of the measured time.
tl::expected<Block, Error> run_single(SteppedEngine& engine, const Workload& workload, const Limits& limits) {
    // An observer gets the latencies itself.
    std::vector<uint32_t> samples(limits.observer ? 0 : std::min(limits.count, most_samples));
    size_t kept = 0;
    Block block;
    const auto start = Clock::now();
    auto last = start;

    while (block.operations < limits.count) {
        const Transfer transfer = transfer_of(workload, block.operations);

        TRY(engine.step({&transfer, 1}, 1));
        const auto now = Clock::now();
        const uint64_t latency = nanoseconds(now - last);
        if (kept < samples.size() && latency <= UINT32_MAX)
            samples[kept++] = static_cast<uint32_t>(latency);
        else
            block.latencies.add(latency);
        if (limits.observer) limits.observer->completed(last, last, now);
        last = now;
        block.operations++;
        if (is_given_up(limits)) return stop_error();
        if (is_over(limits, now - start)) break;
    }
    block.elapsed_ns = nanoseconds(last - start);
    samples.resize(kept);
    for (const uint32_t sample : samples) block.latencies.add(sample);
    block.median_ns = median_of(samples, block.operations);
    return block;
}

// Due times of operations at a rate, which do not wait for each other.
class Schedule {
  public:
    Schedule(Clock::time_point start, double rate) : start_(start), period_ns_(1e9 / rate) {}

    Clock::time_point due(uint64_t index) const {
        return start_ +
               std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(index) * period_ns_));
    }
    // Number of operations due by now.
    uint64_t count(Clock::time_point now) const {
        return static_cast<uint64_t>(static_cast<double>(nanoseconds(now - start_)) / period_ns_) + 1;
    }

  private:
    Clock::time_point start_;
    double period_ns_;
};

// Sleeps while that is exact enough, then polls the clock.
void wait_until(Clock::time_point when) {
    constexpr auto inexact = std::chrono::microseconds(200);

    if (when - Clock::now() > inexact) std::this_thread::sleep_until(when - inexact);
    while (Clock::now() < when) {
    }
}

// Hand-in times of the operations in flight, for an observer. Completions count as those of the
// oldest operations. That is right if they come in the order of posting; if not
// (Engine::completes_in_order()), only their number is known.
class HandIns {
  public:
    HandIns(Observer* observer, unsigned depth) : observer_(observer), at_(observer ? depth : 0) {}

    void add(uint64_t index, uint64_t count) {
        if (!observer_) return;
        const auto now = Clock::now();
        for (uint64_t i = 0; i < count; i++) at_[(index + i) % at_.size()] = now;
    }

    void completed(uint64_t index, uint64_t count) {
        if (!observer_ || count == 0) return;
        const auto now = Clock::now();
        for (uint64_t i = 0; i < count; i++) {
            const auto at = at_[(index + i) % at_.size()];
            observer_->completed(at, at, now);
        }
    }

    // For operations at a rate.
    void completed(uint64_t index, uint64_t count, const Schedule& schedule) {
        if (!observer_ || count == 0) return;
        const auto now = Clock::now();
        for (uint64_t i = 0; i < count; i++)
            observer_->completed(schedule.due(index + i), at_[(index + i) % at_.size()], now);
    }

  private:
    Observer* observer_;
    std::vector<Clock::time_point> at_;
};

// Hands in batches while there is room, then waits for a batch's worth of
// completions; at the end waits for all that are left.
tl::expected<Block, Error> run_deep(SteppedEngine& engine, const Workload& workload, const Limits& limits) {
    std::vector<Transfer> batch(workload.batch);
    HandIns hand_ins(limits.observer, workload.depth);
    uint64_t wanted = std::max<uint64_t>(limits.count, workload.depth);
    const auto start = Clock::now();
    uint64_t submitted = 0, completed = 0;

    while (completed < wanted) {
        const uint64_t in_flight = submitted - completed;
        const uint64_t count =
            std::min<uint64_t>({workload.batch, workload.depth - in_flight, wanted - submitted});
        for (uint64_t i = 0; i < count; i++) batch[i] = transfer_of(workload, submitted + i);
        hand_ins.add(submitted, count);
        submitted += count;

        const uint64_t room = workload.depth - (submitted - completed);
        const uint64_t wait = submitted == wanted ? submitted - completed
                              : room >= workload.batch
                                  ? 0
                                  : std::min<uint64_t>(workload.batch - room, submitted - completed);
        TRY_SET(auto done, engine.step({batch.data(), count}, static_cast<unsigned>(wait)));
        hand_ins.completed(completed, done);
        completed += done;
        if (is_given_up(limits)) return stop_error();
        if (submitted >= workload.depth && submitted < wanted && is_over(limits, Clock::now() - start))
            wanted = submitted;
    }
    Block block;
    block.operations = completed;
    block.elapsed_ns = nanoseconds(Clock::now() - start);
    return block;
}

// Hands in operations that are due, while there is room; waits for completions only if
// none is due or there is no room.
tl::expected<Block, Error> run_at_rate(SteppedEngine& engine, const Workload& workload,
                                       const Limits& limits) {
    std::vector<Transfer> batch(workload.batch);
    HandIns hand_ins(limits.observer, workload.depth);
    Block block;
    const auto start = Clock::now();
    const Schedule schedule(start, limits.rate);
    uint64_t wanted = limits.count;
    uint64_t submitted = 0, completed = 0;

    while (completed < wanted) {
        const auto now = Clock::now();
        const uint64_t due = std::min(schedule.count(now), wanted);
        if (submitted < wanted && is_over(limits, now - start)) {
            block.nr_overdue = due - std::min(due, submitted);
            wanted = submitted;
            continue;
        }
        const uint64_t in_flight = submitted - completed;
        const uint64_t late = due - std::min(due, submitted);
        const uint64_t count = std::min<uint64_t>({workload.batch, workload.depth - in_flight, late});
        if (count == 0 && in_flight == 0) {
            wait_until(std::min(schedule.due(submitted), now + longest_sleep));
            if (is_given_up(limits)) return stop_error();
            continue;
        }
        for (uint64_t i = 0; i < count; i++) batch[i] = transfer_of(workload, submitted + i);
        hand_ins.add(submitted, count);
        submitted += count;
        // Does not wait while more operations are due and have room.
        const bool more = late > count && submitted - completed < workload.depth;
        TRY_SET(auto done, engine.step({batch.data(), count}, more ? 0 : 1));
        hand_ins.completed(completed, done, schedule);
        completed += done;
        if (is_given_up(limits)) return stop_error();
    }
    block.operations = completed;
    block.elapsed_ns = nanoseconds(Clock::now() - start);
    return block;
}

// At a rate, ten periods, within 100 ms and 1 s.
std::chrono::nanoseconds time_to_count(double rate) {
    constexpr std::chrono::milliseconds least{100}, most{1000};
    if (rate <= 0) return least;
    return std::clamp<std::chrono::nanoseconds>(
        std::chrono::nanoseconds(static_cast<int64_t>(10 * 1e9 / rate)), least, most);
}

tl::expected<Block, Error> run_steps(SteppedEngine& engine, const Workload& workload, Mode mode,
                                     const Limits& limits) {
    if (limits.rate > 0) return run_at_rate(engine, workload, limits);
    return mode == Mode::single ? run_single(engine, workload, limits) : run_deep(engine, workload, limits);
}

} // namespace

tl::expected<void, Error> Engine::supports(Operation operation) const {
    if (operation == Operation::read || operation == Operation::write) return {};
    return tl::unexpected(Error(fmt::format("engine {} cannot do {}", name(), operation_name(operation)), "",
                                EOPNOTSUPP, {}, "this engine has READ and WRITE only"));
}

unsigned Engine::slots(const Workload& workload, Mode) const { return workload.depth; }

tl::expected<void, Error> Engine::make_ready(const Workload& workload) {
    return supports(workload.operation);
}

tl::expected<void, Error> Engine::begin_block(const Workload&) { return {}; }

tl::expected<void, Error> Engine::end_block(const Workload&) { return {}; }

tl::expected<Block, Error> SteppedEngine::run_block(const Workload& workload, Mode mode,
                                                    const Limits& limits) {
    TRY(supports(workload.operation));
    if (!workload.moves())
        return tl::unexpected(Error(fmt::format("engine {} has no operation register", name()), "",
                                    EOPNOTSUPP, "use --engine kverbs"));
    if (limits.bare) return run_steps(*this, workload, mode, limits);
    TRY(begin_block(workload));
    auto block = run_steps(*this, workload, mode, limits);
    if (!block) return block;
    TRY(end_block(workload));
    return block;
}

tl::expected<double, Error> count_syscalls(Engine& engine, const Workload& workload, Mode mode,
                                           uint64_t* operations, double rate) {
    Limits limits{std::max<uint64_t>(counted_operations, 2ULL * workload.depth), time_to_count(rate)};
    limits.bare = true;
    limits.rate = rate;

    TRY_SET(auto counter, SyscallCounter::open());
    TRY(engine.begin_block(workload));
    counter.start();
    auto block = engine.run_block(workload, mode, limits);
    const uint64_t calls = counter.stop();
    if (!block) return tl::unexpected(block.error());
    TRY(engine.end_block(workload));
    if (operations) *operations = block->operations;
    return static_cast<double>(calls) / static_cast<double>(block->operations);
}

std::optional<double> median_of(std::vector<uint32_t>& samples, uint64_t operations) {
    if (samples.empty() || samples.size() != operations) return std::nullopt;
    const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    if (samples.size() % 2) return *middle;
    return (static_cast<double>(*middle) + *std::max_element(samples.begin(), middle)) / 2;
}

tl::expected<void, Error> sweep(Engine& engine, const Workload& workload, Operation operation) {
    const Limits once{workload.depth, std::chrono::hours(1)};
    Workload all = workload;

    all.operation = operation;
    all.turns.clear();
    TRY(engine.load());
    TRY(engine.run_block(all, Mode::deep, once));
    return engine.store();
}

} // namespace kxfer::bench
