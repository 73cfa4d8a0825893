// SPDX-License-Identifier: MIT
//
// Processes that do something at the same time: they meet, and what they found comes back.
#include "bench/run/clients.hpp"
#include "bench/stats/figure.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kxfer;
using namespace kxfer::bench;

namespace {

// counters shared by all processes
struct Shared {
    int before = 0; // at the first meeting
    int after = 0;
};

class ClientsOf : public testing::Test {
  protected:
    ClientsOf()
        : shared_(static_cast<Shared*>(
              mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
    ~ClientsOf() override { munmap(shared_, sizeof(Shared)); }

    static void count(int& counter) { __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST); }
    static int read(const int& counter) { return __atomic_load_n(&counter, __ATOMIC_SEQ_CST); }

    Shared* shared_;
};

RunResult result_of(uint64_t operations, uint64_t elapsed_ns) {
    RunResult result;
    result.operations = operations;
    result.elapsed_ns = elapsed_ns;
    result.verified = true;
    result.usage.user_ns = 10;
    for (uint64_t i = 0; i < operations; i++) result.latencies.add(100);
    return result;
}

bool has_no_child() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

} // namespace

TEST_F(ClientsOf, three_meet_twice_and_their_results_come_back) {
    {
        auto clients = Clients::start(3, [&](unsigned index, const Clients::Meet& meet) {
            count(shared_->before);
            auto met = meet();
            count(shared_->after);
            if (met) met = meet();
            return met ? tl::expected<RunResult, Error>(result_of(100 * index, 1000 * index))
                       : tl::unexpected(met.error());
        });
        ASSERT_TRUE(clients);
        for (int waited = 0; read(shared_->before) < 2 && waited < 10000; waited++) usleep(1000);
        EXPECT_EQ(read(shared_->before), 2);
        ASSERT_TRUE((*clients)->gather(nullptr));
        usleep(20000);
        EXPECT_EQ(read(shared_->after), 0) << "one went on alone";
        ASSERT_TRUE((*clients)->release());
        ASSERT_TRUE((*clients)->meet(nullptr));
        EXPECT_EQ(read(shared_->after), 2);
        const auto others = (*clients)->collect(nullptr);
        ASSERT_TRUE(others);
        const RunResult all = join_clients(result_of(50, 500), *others);
        EXPECT_EQ(all.operations, 350U);
        EXPECT_EQ(all.elapsed_ns, 2000U);
        EXPECT_EQ(all.latencies.count(), 350U);
        EXPECT_EQ(all.usage.user_ns, 30);
        EXPECT_TRUE(all.verified);
        ASSERT_EQ(all.clients.size(), 3U);
        EXPECT_EQ(all.clients[2].operations, 200U);
        // All clients did 100 operations a microsecond.
        EXPECT_EQ(figures_of(all).back().name, "fairness");
        EXPECT_DOUBLE_EQ(figures_of(all).back().value.value_or(0), 1);
    }
    EXPECT_TRUE(has_no_child());
}

TEST_F(ClientsOf, the_error_of_one_is_told_and_the_others_end) {
    {
        auto clients = Clients::start(4, [&](unsigned index, const Clients::Meet& meet) {
            if (index == 2)
                return tl::expected<RunResult, Error>(
                    tl::unexpected(Error("cannot do it", "there", ENOENT, "try this", "because")));
            if (auto met = meet(); !met) return tl::expected<RunResult, Error>(tl::unexpected(met.error()));
            return tl::expected<RunResult, Error>(result_of(1, 1));
        });
        ASSERT_TRUE(clients);
        const auto met = (*clients)->meet(nullptr);
        ASSERT_FALSE(met);
        EXPECT_EQ(met.error().text(), "cannot do it there: because (ENOENT)");
        EXPECT_EQ(met.error().hint, "try this");
    }
    EXPECT_TRUE(has_no_child());
}

TEST_F(ClientsOf, one_that_dies_is_told) {
    auto clients = Clients::start(2, [&](unsigned, const Clients::Meet&) -> tl::expected<RunResult, Error> {
        raise(SIGKILL);
        return RunResult();
    });
    ASSERT_TRUE(clients);
    const auto met = (*clients)->meet(nullptr);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().number, ECHILD);
}

TEST_F(ClientsOf, who_stops_does_not_wait_for_them) {
    {
        auto clients =
            Clients::start(2, [&](unsigned, const Clients::Meet&) -> tl::expected<RunResult, Error> {
                for (;;) pause();
            });
        ASSERT_TRUE(clients);
        const auto met = (*clients)->meet([] { return 1; });
        ASSERT_FALSE(met);
        EXPECT_EQ(met.error().number, EINTR);
    }
    EXPECT_TRUE(has_no_child());
}

TEST_F(ClientsOf, who_is_interrupted_has_what_the_others_measured) {
    static volatile sig_atomic_t signalled;
    auto clients =
        Clients::start(3, [&](unsigned, const Clients::Meet& meet) -> tl::expected<RunResult, Error> {
            signal(SIGINT, [](int) { signalled = 1; });
            auto met = meet();
            while (!signalled) usleep(1000);
            if (met) met = meet();
            if (!met) return tl::unexpected(met.error());
            return result_of(7, 1000);
        });
    ASSERT_TRUE(clients);
    ASSERT_TRUE((*clients)->meet(nullptr));
    const auto met = (*clients)->finish([] { return 1; });
    ASSERT_TRUE(met) << met.error().text();
    const auto others = (*clients)->collect(nullptr);
    ASSERT_TRUE(others) << others.error().text();
    ASSERT_EQ(others->size(), 2U);
    EXPECT_EQ(others->back().operations, 7U);
}

TEST_F(ClientsOf, what_one_did_not_verify_is_not_verified) {
    RunResult other = result_of(1, 1);
    other.verified = false;
    EXPECT_FALSE(join_clients(result_of(1, 1), {other}).verified);
}

TEST_F(ClientsOf, losses_gaps_and_conditions_of_all_are_told) {
    auto clients = Clients::start(2, [&](unsigned, const Clients::Meet&) -> tl::expected<RunResult, Error> {
        RunResult result = result_of(1, 1);
        result.losses = Losses{100, 7};
        result.device_gaps.emplace().add(500);
        result.conditions.steal = 0.2;
        result.conditions.min_khz = 1000;
        result.conditions.max_khz = 3000;
        return result;
    });
    ASSERT_TRUE(clients);
    const auto others = (*clients)->collect(nullptr);
    ASSERT_TRUE(others);
    RunResult first = result_of(1, 1);
    first.losses = Losses{50, 1};
    first.device_gaps.emplace().add(100);
    first.conditions.steal = 0.01;
    first.conditions.min_khz = first.conditions.max_khz = 2000;
    const RunResult all = join_clients(first, *others);
    ASSERT_TRUE(all.losses);
    EXPECT_EQ(all.losses->sent, 150U);
    EXPECT_EQ(all.losses->lost, 8U);
    ASSERT_TRUE(all.device_gaps);
    EXPECT_EQ(all.device_gaps->count(), 2U);
    EXPECT_EQ(all.device_gaps->max(), 500U);
    EXPECT_EQ(all.conditions.steal.value_or(0), 0.2);
    EXPECT_EQ(all.conditions.min_khz, 1000U);
    EXPECT_EQ(all.conditions.max_khz, 3000U);
    EXPECT_FALSE(all.conditions.obstacle().empty());
}
