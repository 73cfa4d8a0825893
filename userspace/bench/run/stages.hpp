// SPDX-License-Identifier: MIT
//
// The stages of a job's time: from when its caller handed it in, past each of the module's
// tracepoints, to when the caller had it back.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/histogram.hpp"

namespace kxfer::bench {

// Names of the tracepoints, in the order in which a job passes them (kmod/job/trace.h).
inline constexpr std::array stage_points = {"kxfer_submit",      "kxfer_job_checked", "kxfer_job_planned",
                                            "kxfer_handed_over", "kxfer_job_found",   "kxfer_job_completed",
                                            "kxfer_waited"};

// The stages: from the caller to the first tracepoint, from each to the next, from the last
// to the caller.
struct StageName {
    const char* name;
    const char* meaning;
};
inline constexpr std::array<StageName, stage_points.size() + 1> stage_names = {{
    {"call", "into the kernel, with the arguments"},
    {"check", "copied, checked, objects looked up"},
    {"plan", "cut into work requests"},
    {"post", "queued, built, ib_post_send()"},
    {"wire", "network, peer and device, until its completion is found"},
    {"completion", "work requests and job are ended"},
    {"wake_up", "until the waiting thread runs again"},
    {"return", "completion copied, back to the caller"},
}};

// Times in ns, all of one clock, in order.
using StageEvents = std::array<std::vector<uint64_t>, stage_points.size()>;

// Begin and end of a job as its caller saw them.
struct JobSpan {
    uint64_t begin = 0;
    uint64_t end = 0;
};

struct Stages {
    std::array<Histogram, stage_names.size()> stages; // as stage_names
    Histogram total;                                  // sum of each job's stages
    uint64_t left_out = 0;                            // jobs with a missing event
};

// Jobs run one at a time: an event belongs to the job in whose span it lies. An event later than
// its successor, because another CPU was faster, counts as simultaneous with it.
Stages find_stages(const std::vector<JobSpan>& jobs, const StageEvents& events);

} // namespace kxfer::bench
