// SPDX-License-Identifier: MIT
#include "bench/job_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "bench/runner.hpp"

namespace kxfer::bench {

namespace {

// As many as one SUBMIT hands back; more wait for the next.
constexpr unsigned max_completions = 4096;

} // namespace

JobEngine::JobEngine(KernelPath path, const Memory& memory)
    : path_(std::move(path)), memory_(memory), completions_(max_completions) {}

tl::expected<std::unique_ptr<JobEngine>, Error> JobEngine::connect(const PathOptions& options,
                                                                   const Memory& memory) {
    auto path = KernelPath::open(options, memory);
    if (!path) return tl::unexpected(path.error());
    if (options.ring)
        if (auto opened = path->session().open_ring(max_completions); !opened)
            return tl::unexpected(opened.error());
    return std::unique_ptr<JobEngine>(new JobEngine(std::move(*path), memory));
}

tl::expected<void, Error> JobEngine::supports(Operation operation) const {
    const auto cannot = [&](const std::string& why) {
        return tl::unexpected(Error(fmt::format("engine job cannot do {}", operation_name(operation)), "",
                                    EOPNOTSUPP, {}, why));
    };

    if (operation == Operation::read || operation == Operation::write) return {};
    if (!is_atomic(operation)) return cannot("jobs are READ, WRITE and atomics");
    if (const auto why = path_.no_atomics(); !why.empty()) return cannot(why);
    return {};
}

// Atomics count up from zero.
tl::expected<void, Error> JobEngine::make_ready(const Workload& workload) {
    if (auto able = supports(workload.operation); !able) return able;
    workload_ = workload;
    if (!is_atomic(workload.operation)) return {};
    swaps_.assign(workload.depth, 0);
    memset(memory_.data(), 0, workload.bytes());
    return sweep(*this, workload, Operation::write);
}

tl::expected<unsigned, Error> JobEngine::step(std::span<const Transfer> transfers, unsigned wait) {
    unsigned reaped = 0;
    if (!transfers.empty()) {
        auto submitted = submit(transfers, wait);
        if (!submitted) return submitted;
        reaped = *submitted;
    }
    while (reaped < wait) {
        auto more = reap(wait - reaped);
        if (!more) return more;
        reaped += *more;
    }
    return reaped;
}

Job JobEngine::job_of(const Transfer& transfer) {
    const Region& region = path_.region();
    const Target& target = path_.target();
    const uint64_t at = transfer.offset;

    if (transfer.operation == Operation::read) return Job::read(region, at, target, at, transfer.length, at);
    if (transfer.operation == Operation::fetch_add) return Job::fetch_add(region, at, target, at, 1, at);
    if (transfer.operation != Operation::compare_swap)
        return Job::write(region, at, target, at, transfer.length, at);
    const uint64_t swaps = swaps_[at / workload_.stride()]++;
    return Job::compare_swap(region, at, target, at, swaps, swaps + 1, at);
}

tl::expected<unsigned, Error> JobEngine::submit(std::span<const Transfer> transfers, unsigned wait) {
    kxfer_submit args = {};

    jobs_.clear();
    for (const Transfer& transfer : transfers) {
        jobs_.push_back(job_of(transfer));
        if (path_.iwarp() && transfer.operation == Operation::write)
            jobs_.back().flags = KXFER_JOB_F_LOCAL_ONLY;
        if (path_.options().signal_batch) jobs_.back().flags |= KXFER_JOB_F_BATCH;
    }
    args.jobs = reinterpret_cast<uintptr_t>(jobs_.data());
    args.nr_jobs = static_cast<uint32_t>(jobs_.size());
    in_flight_ += args.nr_jobs;
    if (!path_.options().ring) {
        args.completions = reinterpret_cast<uintptr_t>(completions_.data());
        // No more room than can be filled: the kernel looks at all of it.
        args.nr_completions = std::min(in_flight_, max_completions);
    }
    args.wait = wait;
    args.deadline_ns = wait ? Deadline(path_.options().timeout).ns() : 0;
    const int ret = kxfer_job_submit_wait(path_.session().get(), &args);
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", path_.peer(), -ret));
    if (args.error != 0)
        return tl::unexpected(
            Error(fmt::format("only {} of {} jobs were accepted for", args.accepted, jobs_.size()),
                  path_.peer(), static_cast<int>(args.error)));
    const auto taken =
        path_.options().ring ? static_cast<unsigned>(path_.session().take(completions_).size()) : args.reaped;
    if (auto fine = check(taken); !fine) return tl::unexpected(fine.error());
    in_flight_ -= taken;
    return taken;
}

// What a REAP gives, or what is in the ring after one that waited.
tl::expected<std::span<const Completion>, Error> JobEngine::take(unsigned wait) {
    auto& session = path_.session();
    if (!path_.options().ring) return session.reap(completions_, wait, path_.options().timeout);
    if (auto waited = session.wait(wait, path_.options().timeout); !waited)
        return tl::unexpected(waited.error());
    return session.take(completions_);
}

tl::expected<unsigned, Error> JobEngine::reap(unsigned wait) {
    const auto reaped = take(wait);

    if (!reaped && reaped.error().number == EINTR) return 0;
    if (!reaped)
        return tl::unexpected(Error("no completion from", path_.peer(), reaped.error().number,
                                    "is it still there? try: kxfer link list, or a longer --timeout"));
    if (reaped->empty()) return tl::unexpected(Error("completions are missing from", path_.peer(), EPROTO));
    const auto count = static_cast<unsigned>(reaped->size());
    if (auto fine = check(count); !fine) return tl::unexpected(fine.error());
    in_flight_ -= count;
    return count;
}

tl::expected<void, Error> JobEngine::check(unsigned count) const {
    for (unsigned i = 0; i < count; i++)
        if (completions_[i].status != 0)
            return tl::unexpected(
                Error("a job failed on", path_.on(), -completions_[i].status, "see: kxfer link list, dmesg"));
    return {};
}

} // namespace kxfer::bench
