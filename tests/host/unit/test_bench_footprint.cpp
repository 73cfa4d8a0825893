// SPDX-License-Identifier: MIT
//
// What is told of the node and of the process at the other end, and the figures of it.
#include "bench/run/footprint.hpp"
#include "bench/stats/figure.hpp"

#include <cmath>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kxfer::bench;

namespace {

// A process that works for a given time and then sleeps.
class Worker {
  public:
    explicit Worker(double seconds) : pid_(fork()) {
        if (pid_ != 0) return;
        while (static_cast<double>(clock()) < seconds * CLOCKS_PER_SEC) {
        }
        for (;;) pause();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() { end(); }

    pid_t pid() const { return pid_; }
    void end() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    // Waits until the process has worked for that time, or a limit is over.
    bool wait_for(double cpu_ns) const {
        for (int i = 0; i < 20000; i++, usleep(1000))
            if (const auto usage = usage_of(pid_); usage && usage->cpu_ns >= cpu_ns) return true;
        return false;
    }

  private:
    pid_t pid_;
};

const Figure& figure_of(const std::vector<Figure>& figures, const std::string& name) {
    for (const auto& figure : figures)
        if (figure.name == name) return figure;
    static const Figure none;
    ADD_FAILURE() << "no figure " << name;
    return none;
}

} // namespace

TEST(Footprint, the_node_is_busy_with_all_but_idling_and_waiting) {
    const auto usage = parse_node_usage("cpu  1 2 4 1000 2000 8 16 4000 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n", 10);
    ASSERT_TRUE(usage);
    EXPECT_DOUBLE_EQ(usage->busy_ns, 310);
    EXPECT_DOUBLE_EQ(usage->softirq_ns, 160);
    for (const char* text : {"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"})
        EXPECT_FALSE(parse_node_usage(text, 10)) << text;
}

TEST(Footprint, another_process_is_told_what_it_took) {
    const Worker worker(0.05);
    ASSERT_TRUE(worker.wait_for(50e6));
    EXPECT_LT(usage_of(worker.pid())->cpu_ns, 10e9);
}

TEST(Footprint, the_peer_is_told_what_it_took_meanwhile) {
    const Worker idle(0);
    ASSERT_TRUE(idle.wait_for(1));
    Surroundings where;
    where.peer = idle.pid();
    const auto footprint = FootprintWatch(where).finish();
    ASSERT_TRUE(footprint.peer);
    EXPECT_LT(footprint.peer->cpu_ns, usage_of(idle.pid())->cpu_ns);
    EXPECT_TRUE(footprint.node);
}

TEST(Footprint, a_peer_that_is_gone_or_elsewhere_is_not_known_and_why) {
    Worker worker(0);
    Surroundings where;
    where.peer = worker.pid();
    const FootprintWatch watch(where);
    worker.end();
    auto footprint = watch.finish();
    EXPECT_FALSE(footprint.peer);
    EXPECT_EQ(footprint.no_peer, "the process of the peer has ended");

    where = {};
    where.no_peer = "far away";
    footprint = FootprintWatch(where).finish();
    EXPECT_FALSE(footprint.peer);
    EXPECT_EQ(footprint.no_peer, "far away");
    EXPECT_FALSE(footprint.no_counters.empty());
}

TEST(Footprint, what_a_peer_says_is_bounded) {
    const std::vector<std::pair<double, bool>> words = {
        {0, true}, {1000, true}, {-1, false}, {1e18, false}, {NAN, false}};
    for (const auto& [cpu_ns, possible] : words) {
        Surroundings where;
        bool asked = false;
        where.ask_peer = [&asked, cpu_ns = cpu_ns]() -> std::optional<ProcessUsage> {
            return ProcessUsage{std::exchange(asked, true) ? 5000 + cpu_ns : 5000, 7};
        };
        const FootprintWatch watch(where);
        usleep(1000);
        const auto footprint = watch.finish();
        EXPECT_EQ(footprint.peer.has_value(), possible) << cpu_ns;
        EXPECT_EQ(footprint.no_peer.empty(), possible) << cpu_ns;
    }
}

TEST(Figures, of_both_ends_and_the_node_are_an_operation) {
    RunResult result;
    result.operations = 10;
    result.footprint.peer = ProcessUsage{1000, 5};
    result.footprint.node = NodeUsage{4000, 2000};
    auto figures = figures_of(result);
    EXPECT_EQ(figure_of(figures, "peer_cpu").value, 100);
    EXPECT_EQ(figure_of(figures, "peer_switches").value, 0.5);
    EXPECT_EQ(figure_of(figures, "node_cpu").value, 400);
    EXPECT_EQ(figure_of(figures, "node_softirq").value, 200);

    result.footprint = {};
    result.footprint.no_peer = "far away";
    figures = figures_of(result);
    EXPECT_FALSE(figure_of(figures, "peer_cpu").value);
    EXPECT_EQ(figure_of(figures, "peer_cpu").missing, "far away");
    EXPECT_FALSE(figure_of(figures, "node_cpu").value);
    EXPECT_FALSE(figure_of(figures, "node_cpu").missing.empty());
}
