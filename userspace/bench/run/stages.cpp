// SPDX-License-Identifier: MIT
#include "bench/run/stages.hpp"

#include <algorithm>
#include <optional>

namespace kxfer::bench {

namespace {

constexpr size_t nr_points = stage_points.size();
// A job of several chains passes kxfer_job_found several times; the last one counts.
constexpr size_t found = 4;

using Passing = std::array<uint64_t, nr_points + 2>; // begin, all points, end

std::optional<Passing> passing_of(const JobSpan& job, const StageEvents& events) {
    Passing at{};

    at.front() = job.begin;
    at.back() = job.end;
    for (size_t i = 0; i < nr_points; i++) {
        const auto& all = events[i];
        const auto first = std::lower_bound(all.begin(), all.end(), job.begin);
        const auto last = std::upper_bound(first, all.end(), job.end);
        if (first == last) return std::nullopt;
        at[i + 1] = i < found ? *first : *(last - 1);
    }
    for (size_t i = nr_points; i > 0; i--) at[i] = std::min(at[i], at[i + 1]);
    return at;
}

} // namespace

Stages find_stages(const std::vector<JobSpan>& jobs, const StageEvents& events) {
    Stages stages;

    for (const JobSpan& job : jobs) {
        const auto at = passing_of(job, events);
        if (!at) {
            stages.left_out++;
            continue;
        }
        for (size_t i = 0; i < stages.stages.size(); i++) stages.stages[i].add((*at)[i + 1] - (*at)[i]);
        stages.total.add(job.end - job.begin);
    }
    return stages;
}

} // namespace kxfer::bench
