// SPDX-License-Identifier: MIT
// Events of tracepoints become the stages of jobs.
#include "bench/run/stages.hpp"

#include <numeric>

#include <gtest/gtest.h>

using namespace kxfer::bench;

namespace {

constexpr size_t found = 4;

// A job that begins at `begin` and passes every point `step` after the one before.
JobSpan add_job(StageEvents& events, uint64_t begin, uint64_t step) {
    for (size_t i = 0; i < events.size(); i++) events[i].push_back(begin + (i + 1) * step);
    return {begin, begin + (events.size() + 1) * step};
}

double sum_of_means(const Stages& stages) {
    return std::accumulate(stages.stages.begin(), stages.stages.end(), 0.0,
                           [](double sum, const Histogram& stage) { return sum + stage.mean(); });
}

} // namespace

TEST(Stages, are_what_lies_between_the_points_and_add_up) {
    StageEvents events;
    const std::vector<JobSpan> jobs = {add_job(events, 1000, 10), add_job(events, 2000, 30)};
    const Stages stages = find_stages(jobs, events);
    EXPECT_EQ(stages.left_out, 0U);
    EXPECT_EQ(stages.total.count(), 2U);
    for (const auto& stage : stages.stages) {
        EXPECT_EQ(stage.min(), 10U);
        EXPECT_EQ(stage.max(), 30U);
    }
    EXPECT_DOUBLE_EQ(sum_of_means(stages), stages.total.mean());
}

TEST(Stages, a_job_without_one_of_the_events_is_left_out) {
    for (size_t missing = 0; missing < stage_points.size(); missing++) {
        StageEvents events;
        const std::vector<JobSpan> jobs = {add_job(events, 1000, 10), add_job(events, 2000, 10)};
        events[missing].pop_back();
        const Stages stages = find_stages(jobs, events);
        EXPECT_EQ(stages.left_out, 1U);
        EXPECT_EQ(stages.total.count(), 1U);
    }
    EXPECT_EQ(find_stages({{1, 2}}, {}).left_out, 1U);
}

TEST(Stages, a_job_of_two_chains_is_on_the_wire_until_the_second_is_found) {
    StageEvents events;
    const JobSpan job = add_job(events, 1000, 100);
    events[found] = {1450, 1520};
    const Stages stages = find_stages({job}, events);
    EXPECT_EQ(stages.stages[found].max(), 120U);    // after the hand-over at 1400
    EXPECT_EQ(stages.stages[found + 1].max(), 80U); // completed at 1600
    EXPECT_DOUBLE_EQ(sum_of_means(stages), stages.total.mean());
}

TEST(Stages, what_another_cpu_finds_before_the_post_returns_took_no_time) {
    StageEvents events;
    const JobSpan job = add_job(events, 1000, 100);
    events[found] = {1350}; // handed over at 1400
    const Stages stages = find_stages({job}, events);
    EXPECT_EQ(stages.stages[found].max(), 0U);
    EXPECT_EQ(stages.stages[found - 1].max(), 50U);
    EXPECT_DOUBLE_EQ(sum_of_means(stages), stages.total.mean());
}
