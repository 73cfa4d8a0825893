// SPDX-License-Identifier: MIT
//
// Jobs, their completions, events.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

// Limit of completions of one REAP (struct kxfer_reap).
static constexpr uint32_t most_reaped = 4096;

uint64_t kxfer_clock_ns(void) {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
}

static kxfer_submit submission(const kxfer_job* jobs, uint32_t nr) {
    kxfer_submit submit = {};
    submit.size = sizeof(submit);
    submit.jobs = reinterpret_cast<uintptr_t>(jobs);
    submit.nr_jobs = nr;
    submit.stride = sizeof(*jobs);
    return submit;
}

// A SUBMIT takes at most max_jobs_per_submit. If it accepts a part, its error is that of the next job.
int kxfer_job_submit(kxfer_session* session, const kxfer_job* jobs, uint32_t nr, int* refused) {
    uint32_t accepted = 0;
    int error = 0;
    do {
        kxfer_submit submit =
            submission(jobs + accepted, std::min(nr - accepted, session->max_jobs_per_submit));
        error = kxfer::call(session, KXFER_SUBMIT, &submit);
        if (error < 0) break;
        accepted += submit.accepted;
        error = -static_cast<int>(submit.error);
    } while (error == 0 && accepted < nr);
    if (refused) *refused = error;
    return accepted > 0 ? static_cast<int>(accepted) : error;
}

int kxfer_job_submit_wait(kxfer_session* session, kxfer_submit* args) {
    const uint32_t flags = args->flags;
    args->size = sizeof(*args);
    args->stride = sizeof(kxfer_job);
    args->flags |= session->wait_flags.load(std::memory_order_relaxed);
    const int ret = kxfer::call(session, KXFER_SUBMIT, args);
    args->flags = flags;
    return ret < 0 ? ret : static_cast<int>(args->accepted);
}

int kxfer_completion_reap(kxfer_session* session, kxfer_completion* completions, uint32_t nr, uint32_t wait,
                          uint64_t deadline_ns) {
    // most_reaped is more than a session may have: the completions beyond could never come.
    if (wait <= nr) wait = std::min(wait, most_reaped);
    kxfer_reap reap = {};
    reap.size = sizeof(reap);
    reap.flags = session->wait_flags.load(std::memory_order_relaxed);
    reap.completions = reinterpret_cast<uintptr_t>(completions);
    reap.nr = std::min(nr, most_reaped);
    reap.wait = wait;
    reap.deadline_ns = deadline_ns;
    const int ret = kxfer::call(session, KXFER_REAP, &reap);
    return ret < 0 ? ret : static_cast<int>(reap.reaped);
}

int kxfer_job_run(kxfer_session* session, const kxfer_job* job, uint64_t deadline_ns,
                  kxfer_completion* completion) {
    kxfer_completion own = {};
    kxfer_submit submit = submission(job, 1);
    submit.flags = session->wait_flags.load(std::memory_order_relaxed);
    submit.completions = reinterpret_cast<uintptr_t>(&own);
    submit.nr_completions = 1;
    submit.wait = 1;
    submit.deadline_ns = deadline_ns;
    const int ret = kxfer::call(session, KXFER_SUBMIT, &submit);
    if (ret < 0) return ret;
    if (submit.reaped == 0) {
        // The deadline passed or a signal came. The device owns the memory until
        // the job completes, so wait for the completion.
        kxfer_job_cancel(session, job->user_data);
        int reaped = 0;
        do reaped = kxfer_completion_reap(session, &own, 1, 1, 0);
        while (reaped == -EINTR);
        if (reaped < 0) return reaped;
        if (reaped == 0) return -EIO; // another thread took it
    }
    if (completion) *completion = own;
    return own.status;
}

static int cancel(kxfer_session* session, uint64_t user_data, uint32_t flags) {
    kxfer_cancel argument = {};
    argument.size = sizeof(argument);
    argument.flags = flags;
    argument.user_data = user_data;
    const int ret = kxfer::call(session, KXFER_CANCEL, &argument);
    return ret < 0 ? ret : static_cast<int>(argument.cancelled);
}

int kxfer_job_cancel(kxfer_session* session, uint64_t user_data) { return cancel(session, user_data, 0); }

int kxfer_job_cancel_all(kxfer_session* session) { return cancel(session, 0, KXFER_CANCEL_F_ALL); }

// Jobs in flight and unread completions together never exceed the ring's entries. So when the
// ring is full nothing is in flight, and when nothing is in flight the wait ends.
static int drain_ring(kxfer_session* session, uint64_t deadline_ns) {
    std::array<kxfer_completion, 64> dropped = {};
    const int ret = kxfer_ring_wait(session, session->ring_entries, deadline_ns);
    while (kxfer_ring_take(session, dropped.data(), dropped.size()) > 0) continue;
    return ret;
}

// REAP waits as long as a job is in flight, and returns 0 when neither a job nor a
// completion is left.
int kxfer_job_drain(kxfer_session* session, uint64_t deadline_ns) {
    std::array<kxfer_completion, 64> dropped = {};
    int ret = kxfer_job_cancel_all(session);
    if (ret >= 0 && session->ring) return drain_ring(session, deadline_ns);
    while (ret >= 0) {
        ret = kxfer_completion_reap(session, dropped.data(), dropped.size(), 1, deadline_ns);
        if (ret == 0) return 0;
    }
    return ret;
}

int kxfer_event_take(kxfer_session* session, kxfer_event* events, uint32_t nr, uint32_t wait,
                     uint64_t deadline_ns) {
    kxfer_event_reap reap = {};
    reap.size = sizeof(reap);
    reap.events = reinterpret_cast<uintptr_t>(events);
    reap.nr = nr;
    reap.wait = wait;
    reap.deadline_ns = deadline_ns;
    const int ret = kxfer::call(session, KXFER_EVENT_REAP, &reap);
    return ret < 0 ? ret : static_cast<int>(reap.nr);
}
