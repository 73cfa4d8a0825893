// SPDX-License-Identifier: MIT
//
// The runner against an engine that keeps books: nothing is faked about what
// the runner does, only the transfers themselves do not happen.
#include "bench/run/run.hpp"
#include "bench/stats/comparison.hpp"
#include "engine/runner.hpp"
#include "engine/syscall_counter.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kxfer::bench;
using kxfer::Error;

namespace {

// Copies between the local memory and its own remote memory at completion, and completes as
// many operations as the caller waits for.
class LedgerEngine : public SteppedEngine {
  public:
    explicit LedgerEngine(const Memory& local) : local_(local), remote_(local.length()) {}

    std::string name() const override { return "ledger"; }
    Parameters parameters(const Workload&) const override { return {}; }
    bool remote_writable() const override { return writable; }
    tl::expected<void, Error> supports(Operation operation) const override {
        return does_all ? tl::expected<void, Error>() : Engine::supports(operation);
    }
    tl::expected<void, Error> make_ready(const Workload& workload) override {
        if (workload.operation > Operation::write) std::fill(remote_.begin(), remote_.end(), std::byte{0});
        return supports(workload.operation);
    }
    tl::expected<void, Error> settle() override {
        nr_settled++;
        return {};
    }
    bool completes_in_order() const override { return in_order; }
    tl::expected<void, Error> load() override {
        staged_.assign(local_.data(), local_.data() + (staging ? local_.length() : 0));
        return {};
    }
    tl::expected<void, Error> store() override {
        std::copy(staged_.begin(), staged_.end(), local_.data());
        return {};
    }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override {
        nr_steps++;
        max_batch = std::max(max_batch, transfers.size());
        queue_.insert(queue_.end(), transfers.begin(), transfers.end());
        max_in_flight = std::max(max_in_flight, queue_.size());
        if (nr_steps == fail_at) return tl::unexpected(Error("gone", "peer", ECONNRESET));
        if (wait > queue_.size()) return tl::unexpected(Error("waits for what never comes", "", EINVAL));
        for (unsigned i = 0; i < wait; i++) move(queue_[i]);
        queue_.erase(queue_.begin(), queue_.begin() + wait);
        nr_done += wait;
        return wait;
    }

    bool writable = true;
    bool does_all = false;
    size_t nr_settled = 0;
    size_t nr_steps = 0, max_batch = 0, max_in_flight = 0, nr_done = 0, fail_at = 0;
    size_t damage_at = 0; // number of transfers from now until one moves a wrong byte
    bool in_order = true;
    bool staging = false; // operations use a separate memory, like that of a device
    // READs from number idle_from to idle_to bring no data; only those of idle_offset, if it is
    // set.
    uint64_t idle_from = UINT64_MAX, idle_to = UINT64_MAX;
    std::optional<uint64_t> idle_offset;
    uint64_t nr_reads = 0;

  protected:
    std::vector<std::byte>& remote() { return remote_; }

  private:
    bool is_idle(const Transfer& transfer) {
        const uint64_t number = nr_reads++;
        return number >= idle_from && number < idle_to &&
               idle_offset.value_or(transfer.offset) == transfer.offset;
    }

    void move(const Transfer& transfer) {
        std::byte* local = (staging ? staged_.data() : local_.data()) + transfer.offset;
        std::byte* remote = remote_.data() + transfer.offset;
        const bool read = transfer.operation == Operation::read;
        if (read && is_idle(transfer)) return;
        if (is_atomic(transfer.operation)) return count(local, remote);
        memcpy(read ? local : remote, read ? remote : local, transfer.length);
        if (damage_at && --damage_at == 0) *(read ? local : remote) ^= std::byte{1};
    }

    void count(std::byte* local, std::byte* remote) {
        uint64_t value = 0;
        memcpy(local, remote, sizeof(value));
        memcpy(&value, remote, sizeof(value));
        value += damage_at && --damage_at == 0 ? 2 : 1;
        memcpy(remote, &value, sizeof(value));
    }

    const Memory& local_;
    std::vector<std::byte> remote_, staged_;
    std::vector<Transfer> queue_;
};

const Limits unhurried{100, std::chrono::hours(1)};

} // namespace

TEST(Runner, one_at_a_time_means_one_in_flight) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);

    auto block = engine.run_block({Operation::read, 64, 4, 2}, Mode::single, unhurried);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->operations, 100U);
    EXPECT_EQ(block->latencies.count(), 100U);
    EXPECT_EQ(engine.max_in_flight, 1U);
    EXPECT_EQ(engine.nr_steps, 100U);
}

TEST(Runner, the_median_of_a_block_is_exact) {
    std::vector<uint32_t> odd = {1005, 3, 1000}, even = {1003, 1000, 9, 1002000}, missing = {1, 2, 3}, none;

    EXPECT_EQ(median_of(odd, 3), 1000);
    EXPECT_EQ(median_of(even, 4), 1001.5);
    EXPECT_EQ(median_of(missing, 4), std::nullopt);
    EXPECT_EQ(median_of(none, 0), std::nullopt);

    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    const auto block = engine.run_block({Operation::read, 64, 1, 1}, Mode::single, unhurried);
    ASSERT_TRUE(block && block->median_ns);
    EXPECT_GE(*block->median_ns, static_cast<double>(block->latencies.min()));
    EXPECT_LE(*block->median_ns, static_cast<double>(block->latencies.max()));
}

TEST(Runner, more_latencies_than_are_kept_are_all_counted) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    const uint64_t count = (1 << 20) + 100;

    const auto block =
        engine.run_block({Operation::read, 64, 1, 1}, Mode::single, {count, std::chrono::hours(1)});
    ASSERT_TRUE(block);
    EXPECT_EQ(block->operations, count);
    EXPECT_EQ(block->latencies.count(), count);
    EXPECT_EQ(block->median_ns, std::nullopt);
}

TEST(Runner, deep_reaches_its_depth_and_never_exceeds_it) {
    for (unsigned depth : {1, 2, 5, 16})
        for (unsigned batch : {1, 2, 3, 16}) {
            if (batch > depth) continue;
            auto memory = Memory::create(depth * 4096);
            LedgerEngine engine(*memory);

            auto block = engine.run_block({Operation::read, 64, depth, batch}, Mode::deep, unhurried);
            ASSERT_TRUE(block) << depth << " " << batch << block.error().text();
            EXPECT_EQ(block->operations, 100U);
            EXPECT_EQ(engine.nr_done, 100U);
            EXPECT_EQ(engine.max_in_flight, depth) << batch;
            EXPECT_EQ(engine.max_batch, batch);
        }
}

TEST(Runner, deep_hands_in_whole_batches) {
    auto memory = Memory::create(16 * 4096);
    LedgerEngine engine(*memory);

    ASSERT_TRUE(engine.run_block({Operation::read, 64, 16, 8}, Mode::deep, {160, std::chrono::hours(1)}));
    EXPECT_LE(engine.nr_steps, 160U / 8 + 1);
}

TEST(Runner, a_block_ends_when_its_time_is_up) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);

    auto block = engine.run_block({Operation::read, 64, 1, 1}, Mode::single,
                                  {UINT64_MAX, std::chrono::milliseconds(5)});
    ASSERT_TRUE(block);
    EXPECT_GE(block->elapsed_ns, 5000000U);
    block = engine.run_block({Operation::read, 64, 1, 1}, Mode::deep,
                             {UINT64_MAX / 2, std::chrono::milliseconds(5)});
    ASSERT_TRUE(block);
    EXPECT_EQ(engine.max_in_flight, 1U);
}

TEST(Runner, a_failed_step_ends_the_block) {
    auto memory = Memory::create(4 * 4096);

    for (Mode mode : {Mode::single, Mode::deep}) {
        LedgerEngine engine(*memory);
        engine.fail_at = 3;
        auto block = engine.run_block({Operation::read, 64, 4, 2}, mode, unhurried);
        ASSERT_FALSE(block);
        EXPECT_EQ(block.error().number, ECONNRESET);
        EXPECT_EQ(engine.nr_steps, 3U);
    }
}

TEST(Runner, a_block_that_is_told_to_stop_stops) {
    auto memory = Memory::create(4 * 4096);
    static int steps_left;

    for (Mode mode : {Mode::single, Mode::deep}) {
        LedgerEngine engine(*memory);
        steps_left = 3;
        const Limits limits{100, std::chrono::hours(1), [] { return static_cast<int>(--steps_left == 0); }};
        auto block = engine.run_block({Operation::read, 64, 4, 2}, mode, limits);
        ASSERT_FALSE(block);
        EXPECT_EQ(block.error().number, EINTR);
        EXPECT_EQ(engine.nr_steps, 3U);
    }
}

TEST(Comparison, a_cell_has_both_engines_and_verifies) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine first(*memory), second(*memory);
    Engine* engines[] = {&first, &second};

    for (Operation operation : {Operation::read, Operation::write}) {
        auto cell = run_cell(engines, *memory, {operation, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
        ASSERT_TRUE(cell) << cell.error().text();
        ASSERT_EQ(cell->engines.size(), 2U);
        for (const auto& engine : cell->engines) {
            EXPECT_TRUE(engine.verified);
            EXPECT_EQ(engine.single.blocks.size(), 4U);
            EXPECT_EQ(engine.single.operations, 80U);
            EXPECT_EQ(engine.latencies.count(), 80U);
            EXPECT_EQ(engine.deep.operations, 80U);
        }
        EXPECT_TRUE(cell->engines[0].single.last_to_this);
        EXPECT_TRUE(cell->engines[0].deep.last_to_this);
    }
}

namespace {

// One at a time every operation takes ns_, except a faster and a slower one.
class SteadyEngine : public Engine {
  public:
    SteadyEngine(const Memory& memory, uint64_t ns) : ledger_(memory), ns_(ns) {}
    std::string name() const override { return "steady"; }
    Parameters parameters(const Workload&) const override { return {}; }
    bool remote_writable() const override { return true; }
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override {
        auto block = ledger_.run_block(workload, mode, limits);
        if (mode == Mode::deep || !block) return block;
        block->latencies = Histogram();
        for (const uint64_t latency : {uint64_t{1}, ns_, uint64_t{9000}}) block->latencies.add(latency);
        block->median_ns = static_cast<double>(ns_);
        return block;
    }

  private:
    LedgerEngine ledger_;
    uint64_t ns_;
};

} // namespace

// The two times are on different sides of a bucket's edge.
TEST(Comparison, a_ratio_is_no_coarser_than_its_medians) {
    auto memory = Memory::create(4 * 4096);
    SteadyEngine faster(*memory, 1003), slower(*memory, 1004);
    Engine* engines[] = {&faster, &slower};

    ASSERT_NE(Histogram::bucket_of(1003), Histogram::bucket_of(1004));
    auto cell = run_cell(engines, *memory, {Operation::read, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
    ASSERT_TRUE(cell) << cell.error().text();
    EXPECT_EQ(cell->engines[0].single.ns_per_operation(), 1003);
    EXPECT_DOUBLE_EQ(cell->engines[0].single.last_to_this->value, 1004.0 / 1003);
}

TEST(Comparison, one_engine_alone_has_no_ratio) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    Engine* engines[] = {&engine};

    auto cell = run_cell(engines, *memory, {Operation::read, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
    ASSERT_TRUE(cell);
    EXPECT_FALSE(cell->engines[0].single.last_to_this);
    EXPECT_FALSE(cell->engines[0].deep.last_to_this);
}

TEST(Comparison, a_mode_that_is_not_wanted_is_not_run) {
    auto memory = Memory::create(4 * 4096);
    ASSERT_TRUE(memory);
    LedgerEngine engine(*memory);
    Engine* const engines[] = {&engine};
    Plan plan{3, 20, std::chrono::seconds(10)};

    plan.modes = {Mode::deep};
    const auto cell = run_cell(engines, *memory, {Operation::write, 64, 4, 2}, plan);
    ASSERT_TRUE(cell) << cell.error().text();
    EXPECT_EQ(cell->engines[0].deep.blocks.size(), 6U);
    EXPECT_EQ(cell->engines[0].deep.operations, 6U * 20);
    EXPECT_TRUE(cell->engines[0].single.blocks.empty());
    EXPECT_FALSE(cell->engines[0].single.syscalls);
    EXPECT_TRUE(cell->engines[0].verified);
}

TEST(Comparison, wrong_data_is_an_error) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    Engine* engines[] = {&engine};

    engine.damage_at = 2;
    auto cell = run_cell(engines, *memory, {Operation::write, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
    ASSERT_FALSE(cell);
    EXPECT_EQ(cell.error().number, EBADMSG);
}

namespace {

void burn(std::chrono::nanoseconds time) {
    const auto now = [] {
        timespec now = {};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    };
    const auto end = now() + time;
    while (now() < end) {
    }
}

// Each step takes CPU time and sleeps. The code around a block takes more than its steps
// together.
class CostlyEngine : public LedgerEngine {
  public:
    using LedgerEngine::LedgerEngine;
    tl::expected<void, Error> begin_block(const Workload&) override {
        burn(std::chrono::milliseconds(10));
        return {};
    }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override {
        burn(std::chrono::microseconds(100));
        usleep(1);
        return LedgerEngine::step(transfers, wait);
    }
};

} // namespace

TEST(Comparison, what_the_thread_used_is_told) {
    auto memory = Memory::create(2 * 4096);
    CostlyEngine engine(*memory);
    Engine* engines[] = {&engine};

    auto cell = run_cell(engines, *memory, {Operation::write, 100, 2, 1}, {2, 20, std::chrono::hours(1)});
    ASSERT_TRUE(cell) << cell.error().text();
    for (const auto* mode : {&cell->engines[0].single, &cell->engines[0].deep}) {
        EXPECT_GT(mode->cpu_ns_per_operation(), 90000);
        EXPECT_LT(mode->cpu_ns_per_operation(), 400000);
        EXPECT_GE(mode->switches_per_operation(), 0.9);
    }
}

// Two rounds of 20 operations, one at a time and deep; the READs around them do bring data.
TEST(Comparison, measured_reads_that_bring_nothing_are_an_error) {
    constexpr uint64_t depth = 4, measured = 2 * 2 * 2 * 20;
    auto memory = Memory::create(depth * 4096);

    for (bool staging : {false, true})
        for (const uint64_t from : {depth, depth + measured / 2}) {
            LedgerEngine engine(*memory);
            Engine* engines[] = {&engine};
            engine.staging = staging;
            engine.idle_from = from;
            engine.idle_to = depth + measured;
            auto cell =
                run_cell(engines, *memory, {Operation::read, 100, depth, 2}, {2, 20, std::chrono::hours(1)});
            ASSERT_FALSE(cell) << from;
            EXPECT_EQ(cell.error().number, EBADMSG);
            EXPECT_NE(cell.error().on.find("by READs that were measured of 100 bytes, operation 0, byte 0"),
                      std::string::npos)
                << cell.error().on;
            EXPECT_TRUE(cell.error().why.starts_with("short at byte 0")) << cell.error().why;
        }
}

TEST(Comparison, memory_of_a_device_is_verified) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine plain(*memory), staging(*memory);
    Engine* engines[] = {&plain, &staging};

    staging.staging = true;
    for (Operation operation : {Operation::read, Operation::write}) {
        auto cell = run_cell(engines, *memory, {operation, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
        ASSERT_TRUE(cell) << cell.error().text();
        for (const auto& engine : cell->engines) EXPECT_TRUE(engine.verified);
    }
}

TEST(Comparison, read_only_memory_is_not_called_verified) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    Engine* engines[] = {&engine};

    engine.writable = false;
    auto cell = run_cell(engines, *memory, {Operation::read, 100, 4, 2}, {2, 20, std::chrono::seconds(5)});
    ASSERT_TRUE(cell);
    EXPECT_FALSE(cell->engines[0].verified);
}

namespace {

// Like UC or UD: a loss or a damage right after the measurement.
class UnreliableEngine : public LedgerEngine {
  public:
    using LedgerEngine::LedgerEngine;
    bool is_reliable() const override { return false; }
    std::optional<Losses> losses() const override {
        return sends ? std::optional(Losses{1000, 0}) : std::nullopt;
    }
    // Before the measurement the peer holds the data that proved the engine's operations.
    tl::expected<void, Error> load() override {
        before_ = remote();
        return {};
    }
    tl::expected<void, Error> settle() override {
        std::copy_n(before_.begin(), stale_bytes, remote().begin());
        if (damaged_byte) remote()[damaged_byte] ^= std::byte{1};
        return {};
    }

    bool sends = false;
    size_t stale_bytes = 0, damaged_byte = 0;

  private:
    std::vector<std::byte> before_;
};

} // namespace

TEST(Comparison, what_is_lost_is_forgiven_and_what_is_damaged_is_not) {
    struct Case {
        Operation operation;
        size_t stale_bytes, damaged_byte;
        bool fine;
    };
    constexpr size_t second_slot = 4096;
    auto memory = Memory::create(4 * 4096);

    for (const Case& one : std::initializer_list<Case>{{Operation::write, 0, 0, true},
                                                       {Operation::write, 200, 0, true},
                                                       {Operation::write, 100, 0, true},
                                                       {Operation::write, 0, 5, false},
                                                       {Operation::write, 200, second_slot + 5, false},
                                                       {Operation::send, 0, 0, true},
                                                       {Operation::send, 0, 5, false},
                                                       {Operation::send, 200, 0, false}}) {
        UnreliableEngine engine(*memory);
        engine.does_all = true;
        engine.sends = one.operation == Operation::send;
        engine.stale_bytes = one.stale_bytes;
        engine.damaged_byte = one.damaged_byte;
        RunPlan plan;
        plan.count = 100;
        const auto result = run(engine, *memory, {one.operation, 200, 4, 2}, plan);
        EXPECT_EQ(result.has_value(), one.fine)
            << operation_name(one.operation) << ' ' << one.stale_bytes << ' ' << one.damaged_byte;
        if (!result) {
            EXPECT_EQ(result.error().number, EBADMSG) << result.error().text();
        }
    }
}

TEST(Comparison, an_engine_that_cannot_is_left_out_with_its_reason) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine able(*memory), unable(*memory);
    Engine* engines[] = {&unable, &able};

    able.does_all = true;
    for (Operation operation : {Operation::write_imm, Operation::send, Operation::fetch_add}) {
        auto cell = run_cell(engines, *memory, {operation, 8, 4, 2}, {2, 21, std::chrono::seconds(5)});
        ASSERT_TRUE(cell) << cell.error().text();
        ASSERT_EQ(cell->engines.size(), 1U);
        EXPECT_TRUE(cell->engines[0].verified);
        ASSERT_EQ(cell->refusals.size(), 1U);
        EXPECT_EQ(cell->refusals[0].error.number, EOPNOTSUPP);
        EXPECT_NE(cell->refusals[0].error.reason().find("READ and WRITE"), std::string::npos);
    }
    EXPECT_EQ(unable.nr_steps, 0U);
    EXPECT_EQ(able.nr_settled, 2U); // of messages
}

TEST(Comparison, nothing_is_run_if_no_engine_can) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    Engine* engines[] = {&engine};

    auto cell = run_cell(engines, *memory, {Operation::send, 8, 4, 2}, {2, 20, std::chrono::seconds(5)});
    ASSERT_TRUE(cell);
    EXPECT_TRUE(cell->engines.empty());
    EXPECT_EQ(cell->refusals.size(), 1U);
    EXPECT_FALSE(engine.run_block({Operation::send, 8, 4, 2}, Mode::deep, unhurried));
    EXPECT_EQ(engine.nr_steps, 0U);
}

TEST(Comparison, atomics_count_what_was_done) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    Engine* engines[] = {&engine};

    engine.does_all = true;
    for (Operation operation : {Operation::compare_swap, Operation::fetch_add, Operation::atomic_write}) {
        auto cell = run_cell(engines, *memory, {operation, 8, 4, 2}, {2, 21, std::chrono::seconds(5)});
        ASSERT_TRUE(cell) << cell.error().text();
        EXPECT_TRUE(cell->engines[0].verified);
    }
    engine.damage_at = 30; // adds 2
    auto cell = run_cell(engines, *memory, {Operation::fetch_add, 8, 4, 2}, {2, 21, std::chrono::seconds(5)});
    ASSERT_FALSE(cell);
    EXPECT_EQ(cell.error().number, EBADMSG);
}

TEST(SyscallCounter, counts_exactly_or_says_which_right_is_missing) {
    auto counter = SyscallCounter::open();

    if (!counter) {
        EXPECT_EQ(counter.error().what, SyscallCounter::cannot_count);
        EXPECT_NE(counter.error().hint.find("CAP_PERFMON"), std::string::npos);
        GTEST_SKIP() << counter.error().text();
    }
    counter->start();
    EXPECT_EQ(counter->stop(), 0U);
    counter->start();
    for (int i = 0; i < 10; i++) syscall(SYS_getppid);
    EXPECT_EQ(counter->stop(), 10U);
}

namespace {

class BookObserver : public Observer {
  public:
    void completed(Clock::time_point due, Clock::time_point handed_in, Clock::time_point seen) override {
        EXPECT_LE(due, handed_in);
        nr_late += handed_in - due > std::chrono::milliseconds(2);
        EXPECT_LE(handed_in, seen);
        EXPECT_GE(handed_in, last_handed_in);
        EXPECT_GE(seen, last_seen);
        last_handed_in = handed_in;
        last_seen = seen;
        nr++;
    }

    Clock::time_point last_handed_in, last_seen;
    uint64_t nr = 0, nr_late = 0;
};

// An engine like kverbs: a block is one call, about which nothing is known before its end.
class WholeEngine : public Engine {
  public:
    explicit WholeEngine(const Memory& memory) : ledger_(memory) {}
    std::string name() const override { return "whole"; }
    Parameters parameters(const Workload&) const override { return {}; }
    bool remote_writable() const override { return true; }
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override {
        EXPECT_EQ(limits.observer, nullptr);
        nr_blocks++;
        if (limits.bare) counted_rate = limits.rate;
        longest = std::max(longest, limits.budget < std::chrono::hours(1) ? limits.budget : longest);
        auto block = ledger_.run_block(workload, mode, limits);
        if (mode == Mode::deep && block) block->latencies = Histogram();
        return block;
    }

    unsigned nr_blocks = 0;
    double counted_rate = 0;
    std::chrono::nanoseconds longest{}; // time budget, except for operations that move each slot once

  private:
    LedgerEngine ledger_;
};

} // namespace

namespace {

class RefusingEngine : public LedgerEngine {
  public:
    using LedgerEngine::LedgerEngine;
    tl::expected<void, Error> make_ready(const Workload&) override {
        return tl::unexpected(Error("not this", "", EOPNOTSUPP));
    }
};

} // namespace

TEST(Comparison, a_block_takes_no_longer_because_another_way_is_refused) {
    auto memory = Memory::create(4096);
    WholeEngine able(*memory);
    RefusingEngine unable(*memory);
    Engine* engines[] = {&unable, &able};
    Plan plan{2, 20};

    plan.block = std::chrono::milliseconds(150);
    const auto cell = run_cell(engines, *memory, {Operation::read, 64, 1, 1}, plan);
    ASSERT_TRUE(cell) << cell.error().text();
    EXPECT_EQ(cell->refusals.size(), 1U);
    EXPECT_EQ(able.longest, std::chrono::milliseconds(150));
}

TEST(SyscallCounter, counts_at_the_rate_of_the_run) {
    auto memory = Memory::create(4096);
    WholeEngine engine(*memory);
    RunPlan plan;

    plan.count = 10;
    plan.rate = 1000;
    const auto result = run(engine, *memory, {Operation::write, 64, 1, 1}, plan);
    ASSERT_TRUE(result) << result.error().text();
    if (!result->syscalls) GTEST_SKIP() << result->uncounted;
    EXPECT_EQ(engine.counted_rate, 1000);
}

namespace {

// number of stop checks until the run is stopped
int looks_left;
int stops_after_some() { return --looks_left <= 0; }

RunPlan plan_that_stops(int looks) {
    RunPlan plan;
    looks_left = looks;
    plan.count = 1000000;
    plan.stopped = stops_after_some;
    return plan;
}

// Like a signal in the kernel's run: the block's results are lost.
class BreakingEngine : public WholeEngine {
  public:
    using WholeEngine::WholeEngine;
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override {
        EXPECT_FALSE(broken) << "an engine of no more use is used";
        broken = limits.stopped && nr_blocks > 0 && ++nr_pieces == 3;
        if (broken) looks_left = 0;
        if (broken) return tl::unexpected(Error("stopped", "", EINTR));
        Limits piece = limits;
        if (limits.stopped) piece.count = std::min<uint64_t>(piece.count, 10);
        return WholeEngine::run_block(workload, mode, piece);
    }

    bool broken = false;
    int nr_pieces = 0;
};

} // namespace

TEST(Run, an_interrupt_leaves_what_was_measured_and_that_is_verified) {
    auto memory = Memory::create(4 * 4096);
    for (const unsigned depth : {1U, 4U})
        for (const double rate : {0.0, 1e6}) {
            LedgerEngine engine(*memory);
            RunPlan plan = plan_that_stops(50);
            plan.warm_up = 4;
            plan.rate = rate;
            const auto result = run(engine, *memory, {Operation::write, 64, depth, depth / 2 + 1}, plan);
            ASSERT_TRUE(result) << result.error().text();
            EXPECT_TRUE(result->interrupted);
            EXPECT_TRUE(result->verified);
            EXPECT_GT(result->operations, 0U);
            EXPECT_LE(result->operations, 200U);
            EXPECT_EQ(result->latencies.count(), result->operations);
            EXPECT_FALSE(result->syscalls);
            EXPECT_NE(result->uncounted.find("interrupted"), std::string::npos);
            EXPECT_EQ(result->no_stages, "");
        }
}

TEST(Run, a_block_that_an_interrupt_broke_off_is_left_out_and_nothing_is_verified) {
    auto memory = Memory::create(4096);
    BreakingEngine engine(*memory);
    const auto result = run(engine, *memory, {Operation::write, 64, 1, 1}, plan_that_stops(1000000));
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_TRUE(engine.broken);
    EXPECT_TRUE(result->interrupted);
    EXPECT_FALSE(result->verified);
    EXPECT_EQ(result->operations, 20U);
}

TEST(Run, an_interrupt_before_anything_was_measured_is_an_error) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    RunPlan plan = plan_that_stops(1);
    plan.rate = 1;
    const auto result = run(engine, *memory, {Operation::write, 64, 1, 1}, plan);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().number, EINTR);
}

// The waiting after the measurement is in none of its figures; other clients are.
TEST(Run, what_is_waited_for_behind_it_is_not_looked_at) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    RunPlan plan;
    std::string order;
    const auto note = [&order](char step) {
        return [&order, step]() -> tl::expected<void, Error> {
            order += step;
            return {};
        };
    };

    plan.count = 10;
    plan.together = {note('1'), note('2'), note('3'), note('4')};
    plan.surroundings.ask_peer = [&order]() -> std::optional<ProcessUsage> {
        order += '?';
        return ProcessUsage{};
    };
    ASSERT_TRUE(run(engine, *memory, {Operation::read, 64, 1, 1}, plan));
    EXPECT_EQ(order, "1?23?4");
}

TEST(Runner, an_observer_is_told_of_each_operation_in_order) {
    auto memory = Memory::create(5 * 4096);

    for (Mode mode : {Mode::single, Mode::deep}) {
        LedgerEngine engine(*memory);
        BookObserver observer;
        Limits limits = unhurried;
        limits.observer = &observer;
        ASSERT_TRUE(engine.run_block({Operation::read, 64, 5, 3}, mode, limits));
        EXPECT_EQ(observer.nr, 100U);
    }
}

TEST(Run, a_count_is_kept_and_each_operation_timed) {
    auto memory = Memory::create(4 * 4096);

    for (unsigned depth : {1U, 4U})
        for (Operation operation : {Operation::read, Operation::write}) {
            LedgerEngine engine(*memory);
            RunPlan plan;
            plan.count = 1000;
            plan.warm_up = 7;
            const auto result = run(engine, *memory, {operation, 100, depth, 1}, plan);
            ASSERT_TRUE(result) << result.error().text();
            EXPECT_EQ(result->operations, 1000U);
            EXPECT_EQ(result->latencies.count(), 1000U);
            EXPECT_GT(result->elapsed_ns, 0U);
            EXPECT_TRUE(result->intervals.empty());
            EXPECT_TRUE(result->verified);
        }
}

TEST(Run, intervals_add_up_to_the_whole) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine driven(*memory);
    WholeEngine whole(*memory);

    for (Engine* engine : std::initializer_list<Engine*>{&driven, &whole})
        for (unsigned depth : {1U, 4U}) {
            RunPlan plan;
            unsigned nr_told = 0;
            plan.duration = std::chrono::milliseconds(50);
            plan.interval = std::chrono::milliseconds(20);
            plan.on_interval = [&](const Interval& interval) { EXPECT_EQ(interval.index, nr_told++); };
            const auto result = run(*engine, *memory, {Operation::read, 64, depth, 1}, plan);
            ASSERT_TRUE(result) << result.error().text();
            // On a busy machine a block may outlast its time, and so the next interval.
            EXPECT_LE(result->intervals.size(), 3U) << engine->name() << depth;
            if (engine == &driven) {
                EXPECT_EQ(result->intervals.size(), 3U) << depth;
            }
            EXPECT_EQ(nr_told, result->intervals.size());
            uint64_t operations = 0, end = 0;
            double cpu_ns = 0;
            for (const auto& interval : result->intervals) {
                EXPECT_EQ(interval.begin_ns, end);
                end += interval.elapsed_ns;
                operations += interval.operations;
                cpu_ns += interval.usage.cpu_ns();
                EXPECT_GE(interval.usage.cpu_ns(), 0);
            }
            EXPECT_EQ(operations, result->operations);
            EXPECT_GT(cpu_ns, 0);
            EXPECT_LE(cpu_ns, result->usage.cpu_ns());
            EXPECT_EQ(end, result->elapsed_ns);
            EXPECT_NE(result->slowest(), nullptr);
        }
}

// Operations are due at 0 and 50 ms only.
TEST(Run, intervals_in_which_nothing_is_due_are_there) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    RunPlan plan;

    plan.duration = std::chrono::milliseconds(100);
    plan.interval = std::chrono::milliseconds(20);
    plan.rate = 20;
    const auto result = run(engine, *memory, {Operation::read, 64, 1, 1}, plan);
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_EQ(result->intervals.size(), 5U);
    for (size_t i = 0; i < 4; i++) EXPECT_EQ(result->intervals[i].elapsed_ns, 20000000U) << i;
}

TEST(Run, an_interval_tells_the_percentiles_that_its_operations_can) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    RunPlan plan;

    plan.duration = std::chrono::milliseconds(50);
    plan.interval = std::chrono::milliseconds(25);
    const auto result = run(engine, *memory, {Operation::read, 64, 1, 1}, plan);
    ASSERT_TRUE(result) << result.error().text();
    for (const auto& one : result->intervals) {
        EXPECT_EQ(one.min_ns.has_value(), one.operations >= 1);
        EXPECT_EQ(one.p50_ns.has_value(), one.operations >= Histogram::needed(50));
        EXPECT_EQ(one.p90_ns.has_value(), one.operations >= Histogram::needed(90));
        EXPECT_EQ(one.p99_9_ns.has_value(), one.operations >= Histogram::needed(99.9));
        EXPECT_EQ(one.p99_99_ns.has_value(), one.operations >= Histogram::needed(99.99));
        if (one.p90_ns) {
            EXPECT_LE(*one.min_ns, *one.p50_ns);
            EXPECT_LE(*one.p50_ns, *one.p90_ns);
        }
        if (one.p99_9_ns) {
            EXPECT_LE(*one.p99_ns, *one.p99_9_ns);
            EXPECT_LE(*one.p99_9_ns, *one.max_ns);
        }
    }
}

TEST(Run, an_engine_that_does_not_time_what_is_deep_is_said_to) {
    auto memory = Memory::create(4 * 4096);
    WholeEngine engine(*memory);
    RunPlan plan;

    plan.count = 100;
    const auto result = run(engine, *memory, {Operation::read, 64, 4, 2}, plan);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->latencies.count(), 0U);
    EXPECT_NE(result->untimed.find("--depth 1"), std::string::npos);
}

TEST(Run, atomics_are_counted_through_all_blocks) {
    auto memory = Memory::create(4 * 4096);

    for (unsigned depth : {1U, 4U}) {
        LedgerEngine engine(*memory);
        RunPlan plan;
        engine.does_all = true;
        plan.count = 101;
        plan.warm_up = 7;
        const auto result = run(engine, *memory, {Operation::fetch_add, 8, depth, 1}, plan);
        ASSERT_TRUE(result) << result.error().text();
        EXPECT_TRUE(result->verified);
        engine.damage_at = 60; // adds 2
        const auto wrong = run(engine, *memory, {Operation::fetch_add, 8, depth, 1}, plan);
        ASSERT_FALSE(wrong);
        EXPECT_EQ(wrong.error().number, EBADMSG);
    }
}

TEST(Run, messages_are_waited_for_before_they_are_verified) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    RunPlan plan;

    engine.does_all = true;
    plan.count = 101;
    const auto result = run(engine, *memory, {Operation::send, 100, 4, 2}, plan);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_TRUE(result->verified);
    EXPECT_EQ(engine.nr_settled, 1U);
}

TEST(Run, an_engine_that_is_driven_does_not_register_alone) {
    auto memory = Memory::create(4096);
    LedgerEngine engine(*memory);
    RunPlan plan;

    plan.count = 10;
    const auto result = run(engine, *memory, {Operation::read, 64, 1, 1, Work::registration}, plan);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().number, EOPNOTSUPP);
    EXPECT_EQ(engine.nr_steps, 0U);
}

TEST(Run, wrong_data_is_an_error) {
    auto memory = Memory::create(4 * 4096);
    LedgerEngine engine(*memory);
    RunPlan plan;

    plan.count = 100;
    engine.damage_at = 2;
    const auto result = run(engine, *memory, {Operation::write, 100, 4, 2}, plan);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().number, EBADMSG);
}

namespace {

// Alternately a WRITE and a READ, so the first operation of an odd slot is a READ.
Workload mix_of(unsigned depth) {
    Workload workload{Operation::write, 100, depth, 1};
    workload.turns = {Operation::write, Operation::read};
    return workload;
}

} // namespace

TEST(Run, measured_reads_that_bring_nothing_are_an_error) {
    auto memory = Memory::create(4 * 4096);
    RunPlan plan;
    plan.count = 100;
    plan.warm_up = 7;

    for (unsigned depth : {1U, 4U}) {
        // After those of the preparation and the warm-up: in all slots, and in the last slot.
        for (uint64_t slot : {0U, depth - 1}) {
            LedgerEngine engine(*memory);
            engine.idle_from = depth + plan.warm_up;
            engine.idle_to = engine.idle_from + plan.count;
            if (slot) engine.idle_offset = slot * page_bytes;
            const auto result = run(engine, *memory, {Operation::read, 100, depth, 1}, plan);
            ASSERT_FALSE(result);
            EXPECT_EQ(result.error().number, EBADMSG);
            const std::string which = "operation " + std::to_string(slot) + ", byte 0";
            EXPECT_TRUE(result.error().on.ends_with(which)) << result.error().on;
        }
    }
}

TEST(Run, reads_of_a_mix_that_bring_nothing_are_an_error) {
    auto memory = Memory::create(4 * 4096);
    RunPlan plan;
    plan.count = 101;

    for (bool in_order : {true, false}) {
        LedgerEngine engine(*memory);
        engine.in_order = in_order;
        const auto fine = run(engine, *memory, mix_of(4), plan);
        ASSERT_TRUE(fine) << fine.error().text();
        EXPECT_TRUE(fine->verified);
        engine.nr_reads = 0;
        engine.idle_from = 4;
        engine.idle_to = 4 + 50;
        const auto idle = run(engine, *memory, mix_of(4), plan);
        // Without order, an operation in flight could send wiped data.
        ASSERT_EQ(idle.has_value(), !in_order);
        if (in_order) {
            EXPECT_EQ(idle.error().number, EBADMSG);
        }
    }
}

// Slots that the measured part does not use are not checked, and have their old data again.
TEST(Run, fewer_operations_than_slots_are_verified) {
    auto memory = Memory::create(4 * 4096);
    const auto is_wiped = [&](unsigned slot) {
        const auto bytes = memory->bytes().subspan(slot * page_bytes, 100);
        return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
    };
    RunPlan plan;
    plan.count = 2;
    plan.rate = 1e6;
    plan.count_calls = false;

    for (const Workload& workload : {mix_of(4), Workload{Operation::read, 100, 4, 1}}) {
        LedgerEngine engine(*memory);
        plan.together.end = [&]() -> tl::expected<void, Error> {
            EXPECT_FALSE(is_wiped(1));
            EXPECT_TRUE(is_wiped(3));
            return {};
        };
        const auto result = run(engine, *memory, workload, plan);
        ASSERT_TRUE(result) << result.error().text();
        EXPECT_EQ(result->operations, 2U);
        EXPECT_TRUE(result->verified);
    }
}

TEST(Run, at_a_rate_operations_begin_on_schedule) {
    auto memory = Memory::create(4 * 4096);

    for (unsigned depth : {1U, 4U}) {
        LedgerEngine engine(*memory);
        RunPlan plan;
        plan.count = 100;
        plan.rate = 2000;
        const auto result = run(engine, *memory, {Operation::write, 64, depth, 1}, plan);
        ASSERT_TRUE(result) << result.error().text();
        EXPECT_EQ(result->operations, 100U);
        // The last operation is due after 99 periods.
        EXPECT_GE(result->elapsed_ns, 49500000U);
        EXPECT_EQ(result->uncorrected.count(), 100U);
        EXPECT_TRUE(result->verified);
        plan.count = 0;
        plan.duration = std::chrono::milliseconds(20);
        const auto timed = run(engine, *memory, {Operation::read, 64, depth, 1}, plan);
        ASSERT_TRUE(timed) << timed.error().text();
        EXPECT_LE(timed->operations, 41U);
    }
}

namespace {

// stalls once
class StallingEngine : public LedgerEngine {
  public:
    using LedgerEngine::LedgerEngine;
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override {
        if (nr_steps == 50) usleep(50000);
        return LedgerEngine::step(transfers, wait);
    }
};

} // namespace

// Coordinated omission: 50 ms are 100 operations of the schedule, although only one stalled.
TEST(Run, a_stall_is_counted_for_all_that_were_due_in_it) {
    auto memory = Memory::create(4096);
    StallingEngine engine(*memory);
    RunPlan plan;

    plan.count = 400;
    plan.rate = 2000;
    const auto result = run(engine, *memory, {Operation::read, 64, 1, 1}, plan);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_GT(result->latencies.percentile(90), 5000000U);
    EXPECT_LT(result->uncorrected.percentile(90), result->latencies.percentile(90));
    EXPECT_GE(result->uncorrected.max(), 50000000U);
}
