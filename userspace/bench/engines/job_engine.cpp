// SPDX-License-Identifier: MIT
#include "bench/engines/job_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/mix.hpp"
#include "engine/runner.hpp"

namespace kxfer::bench {

namespace {

// Completions that one SUBMIT returns at most; others wait for the next.
constexpr unsigned max_completions = 4096;
// user_data of the WRITE of a WRITE with immediate; like Outbox::status_mark, no valid offset.
constexpr uint64_t write_mark = UINT64_MAX - 1;

// A WRITE with immediate is a WRITE followed by a message.
unsigned jobs_of(Operation operation) { return operation == Operation::write_imm ? 2 : 1; }

// For a mix: its messages alone.
Workload messages_of(Workload workload) {
    if (workload.is_mix()) workload.operation = Operation::send;
    workload.turns.clear();
    return workload;
}

std::chrono::steady_clock::time_point completed_at(const Completion& completion) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(completion.completed_ns));
}

tl::expected<void, Error> open_rings(KernelPath& path) {
    TRY(path.session().open_ring(max_completions));
    return path.session().open_sq(path.max_submit());
}

} // namespace

JobEngine::JobEngine(KernelPath path, const Memory& memory)
    : path_(std::move(path)), memory_(memory), completions_(max_completions) {}

tl::expected<std::unique_ptr<JobEngine>, Error> JobEngine::connect(const PathOptions& options,
                                                                   const Memory& memory) {
    TRY_SET(auto path, KernelPath::open(options, memory));
    if (options.ring) TRY(open_rings(path));
    std::unique_ptr<JobEngine> engine(new JobEngine(std::move(path), memory));
    TRY(engine->check_stored());
    if (options.messages) engine->open_mailbox();
    return engine;
}

tl::expected<void, Error> JobEngine::check_stored() const {
    if (!path_.options().stored || path_.features() & KXFER_FEATURE_EAGER) return {};
    return tl::unexpected(Error("engine job cannot do --stored", "", EOPNOTSUPP, "leave it out",
                                "this module has no KXFER_JOB_F_STORED: all its messages are answered"));
}

// Without a mailbox there are no messages; supports() gives the reason.
void JobEngine::open_mailbox() {
    auto outbox = Outbox::open(path_);
    if (outbox)
        outbox_ = std::move(*outbox);
    else if (outbox.error().number == ENOENT)
        no_messages_ =
            fmt::format("{} has no mailbox beside it: kxfer serve --mailbox offers one", path_.on());
    else
        no_messages_ = outbox.error().text();
}

// Messages differ in registration, meaning of success, and limit.
Parameters JobEngine::parameters(const Workload& workload) const {
    Parameters parameters = path_.parameters(workload);

    if (!has_messages(workload)) return parameters;
    const auto operation = messages_of(workload).operation;
    const std::string promise =
        Outbox::promise(operation, workload.size, path_.options().stored, path_.eager());
    // A message that is placed leaves from the region, as a WRITE does.
    if (operation != Operation::write_imm && !workload.is_mix() && promise != message_placed)
        parameters.local_registration = promise == message_taken ? local_each : local_copied;
    parameters.message_success = promise;
    parameters.max_depth = std::min(
        {parameters.max_depth, mailbox_capacity, path_.max_jobs() / jobs_of(workload.operation) - 1});
    return parameters;
}

tl::expected<void, Error> JobEngine::supports(Operation operation) const {
    const auto cannot = [&](const std::string& why) {
        return tl::unexpected(Error(fmt::format("engine job cannot do {}", operation_name(operation)), "",
                                    EOPNOTSUPP, {}, why));
    };

    if (operation == Operation::read || operation == Operation::write) return {};
    if (is_beyond_kernel(operation)) return cannot(why_beyond_kernel(operation));
    if (is_message(operation) && !outbox_) return cannot(no_messages_);
    if (is_message(operation) && path_.options().signal_batch())
        return cannot("each message has a completion of its own, a batch of them has none for all");
    if (const auto why = path_.no_atomics(); is_atomic(operation) && !why.empty()) return cannot(why);
    return {};
}

// Atomics count up from zero.
tl::expected<void, Error> JobEngine::make_ready(const Workload& workload) {
    TRY(supports(workload.operation));
    workload_ = workload;
    messages_ = has_messages(workload) ? messages_of(workload) : Workload();
    TRY(supports(messages_.operation));
    if (is_message(messages_.operation) && messages_.operation != Operation::write_imm &&
        workload.size > outbox_->max_bytes())
        return tl::unexpected(
            Error(fmt::format("engine job cannot do {} of {} bytes", workload.name(), workload.size), "",
                  EOPNOTSUPP, "", fmt::format("a message has at most {} bytes", outbox_->max_bytes())));
    if (!is_atomic(workload.operation)) return {};
    swaps_.assign(workload.depth, 0);
    memset(memory_.data(), 0, workload.bytes());
    return sweep(*this, workload, Operation::write);
}

tl::expected<void, Error> JobEngine::carry_out(const Job& job) {
    TRY(submit({&job, 1}, 0));
    while (in_flight_ > 0) TRY(reap(in_flight_));
    return {};
}

// Each block is a series of messages of its own, so engines may share a mailbox.
tl::expected<void, Error> JobEngine::begin_block(const Workload& workload) {
    last_completion_ = std::chrono::steady_clock::now();
    if (!has_messages(workload)) return {};
    TRY(carry_out(outbox_->open_series(messages_)));
    return read_status_until([this] { return outbox_->is_open(); }, "takes no messages");
}

tl::expected<void, Error> JobEngine::end_block(const Workload& workload) {
    if (!has_messages(workload)) return {};
    return read_status_until([this] { return outbox_->all_received(); }, "has not received all messages");
}

template <typename Done>
tl::expected<void, Error> JobEngine::read_status_until(Done done, const std::string& otherwise) {
    const Deadline deadline(path_.options().timeout);

    for (;;) {
        TRY(carry_out(outbox_->read_status()));
        if (done()) return {};
        if (deadline.passed())
            return tl::unexpected(Error("the peer " + otherwise, path_.on(), ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        std::this_thread::yield();
    }
}

// A READ of the status may be in flight already.
tl::expected<void, Error> JobEngine::wait_for_room(uint64_t messages) {
    if (outbox_->available() >= messages) return {};
    const Deadline deadline(path_.options().timeout);
    while (outbox_->available() < messages) {
        if (!outbox_->is_reading()) {
            const Job read = outbox_->read_status();
            TRY(submit({&read, 1}, 0));
        }
        if (outbox_->is_reading()) TRY(reap(1));
        if (deadline.passed() && outbox_->available() < messages)
            return tl::unexpected(Error("the peer receives no messages", path_.on(), ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        if (outbox_->available() < messages) std::this_thread::yield();
    }
    return {};
}

tl::expected<unsigned, Error> JobEngine::step(std::span<const Transfer> transfers, unsigned wait) {
    ended_ = 0;
    if (!transfers.empty()) {
        const uint64_t messages = count_messages(transfers);
        if (messages > 0) TRY(wait_for_room(messages));
        const auto jobs = prepare(transfers, messages);
        jobs_each_ = jobs_of(transfers.front().operation);
        if (jobs.size() > path_.max_submit())
            TRY(submit_in_parts(jobs, wait));
        else
            TRY(submit(jobs, wait - std::min(wait, ended_)));
    }
    while (ended_ < wait) TRY(reap(wait - ended_));
    return ended_;
}

uint64_t JobEngine::count_messages(std::span<const Transfer> transfers) const {
    if (!is_message(messages_.operation)) return 0;
    return static_cast<uint64_t>(
        std::count_if(transfers.begin(), transfers.end(),
                      [](const Transfer& transfer) { return is_message(transfer.operation); }));
}

// The jobs of these operations, of which so many are messages. If messages begin to run out of
// room, a READ of the status follows.
std::span<const Job> JobEngine::prepare(std::span<const Transfer> transfers, uint64_t messages) {
    if (const size_t most = 2 * transfers.size() + 1; jobs_.size() < most) jobs_.resize(most);
    Job* next = jobs_.data();

    for (const Transfer& transfer : transfers) {
        if (is_message(transfer.operation))
            next = fill_message(next, transfer);
        else
            fill(*next++, transfer);
    }
    if (messages > 0 && outbox_->low() && !outbox_->is_reading()) *next++ = outbox_->read_status();
    return {jobs_.data(), next};
}

// Returns the place after the one or two jobs.
Job* JobEngine::fill_message(Job* next, const Transfer& transfer) {
    if (transfer.operation == Operation::write_imm) {
        fill(*next, transfer);
        next++->user_data = write_mark;
    }
    *next++ = outbox_->next(messages_, path_.region());
    return next;
}

// The job of an operation on the export; of a WRITE with immediate, its WRITE.
void JobEngine::fill(Job& job, const Transfer& transfer) {
    job = Job();
    job.op = op_of(transfer.operation);
    if (path_.options().signal_batch()) job.flags = KXFER_JOB_F_BATCH;
    if (job.op == KXFER_OP_WRITE && path_.iwarp()) job.flags |= KXFER_JOB_F_LOCAL_ONLY;
    job.region = path_.region().id();
    job.target = path_.target().id();
    job.region_offset = transfer.offset;
    job.target_offset = transfer.offset;
    job.length = transfer.length;
    job.user_data = transfer.offset;
    if (is_fetch(transfer.operation)) set_operands(job);
}

// Atomics count up.
void JobEngine::set_operands(Job& job) {
    job.length = atomic_bytes;
    job.compare_add = 1;
    if (job.op != KXFER_OP_COMPARE_SWAP) return;
    job.compare_add = swaps_[job.target_offset / workload_.stride()]++;
    job.swap = job.compare_add + 1;
}

// For more jobs than one SUBMIT takes; only the last one waits.
tl::expected<unsigned, Error> JobEngine::submit_in_parts(std::span<const Job> jobs, unsigned wait) {
    const size_t most = path_.max_submit();

    for (; jobs.size() > most; jobs = jobs.subspan(most)) TRY(submit(jobs.first(most), 0));
    return submit(jobs, wait - std::min(wait, ended_));
}

// Hands in jobs, and waits for so many operations' worth of completions.
tl::expected<unsigned, Error> JobEngine::submit(std::span<const Job> jobs, unsigned wait) {
    in_flight_ += static_cast<unsigned>(jobs.size());
    wait = std::min(wait * jobs_each_, in_flight_);
    const Deadline deadline(last_completion_ + path_.options().timeout);
    return path_.options().ring ? enter(jobs, wait, deadline) : submit_once(jobs, wait, deadline);
}

tl::expected<unsigned, Error> JobEngine::submit_once(std::span<const Job> jobs, unsigned wait,
                                                     Deadline deadline) {
    kxfer_submit args = {};

    args.jobs = reinterpret_cast<uintptr_t>(jobs.data());
    args.nr_jobs = static_cast<uint32_t>(jobs.size());
    args.completions = reinterpret_cast<uintptr_t>(completions_.data());
    // No more room than can be filled: the kernel checks access to all of it.
    args.nr_completions = std::min(in_flight_, max_completions);
    args.wait = wait;
    args.deadline_ns = deadline.ns();
    const int ret = kxfer_job_submit_wait(path_.session().get(), &args);
    if (ret < 0 || args.error != 0) return refused(jobs, ret, -static_cast<int>(args.error));
    return count(std::span<const Completion>(completions_).first(args.reaped));
}

// As submit_once(), by both rings. There is room: each call empties the submission ring.
tl::expected<unsigned, Error> JobEngine::enter(std::span<const Job> jobs, unsigned wait, Deadline deadline) {
    auto& session = path_.session();
    int error = 0;

    for (const Job& job : jobs) *session.next_job() = job;
    const int ret = kxfer_sq_enter(session.get(), wait, deadline.ns(), &error);
    if (ret < 0 || error < 0) return refused(jobs, ret, error);
    return count(session.take(completions_));
}

// ret: number of jobs that were accepted, or a negative errno. error: that of the next job.
tl::expected<unsigned, Error> JobEngine::refused(std::span<const Job> jobs, int ret, int error) const {
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", path_.peer(), -ret));
    return tl::unexpected(
        Error(fmt::format("only {} of {} jobs were accepted for", ret, jobs.size()), path_.peer(), -error));
}

// The completions of a REAP; with a ring, REAP only waits and they are in the ring.
tl::expected<std::span<const Completion>, Error> JobEngine::take(unsigned wait) {
    auto& session = path_.session();
    if (!path_.options().ring) return session.reap(completions_, wait, path_.options().timeout);
    TRY(session.wait(wait, path_.options().timeout));
    return session.take(completions_);
}

tl::expected<unsigned, Error> JobEngine::reap(unsigned wait) {
    const auto reaped = take(std::min(wait * jobs_each_, in_flight_));

    if (!reaped && reaped.error().number == EINTR) return ended_;
    if (!reaped)
        return tl::unexpected(Error("no completion from", path_.peer(), reaped.error().number,
                                    "is it still there? try: kxfer link list, or a longer --timeout"));
    if (reaped->empty()) return tl::unexpected(Error("completions are missing from", path_.peer(), EPROTO));
    return count(*reaped);
}

// Adds the operations that these completions end to those of the step, and returns their number.
tl::expected<unsigned, Error> JobEngine::count(std::span<const Completion> completions) {
    bool has_status = false;

    in_flight_ -= static_cast<unsigned>(completions.size());
    for (const Completion& completion : completions) {
        if (completion.status != 0) return failed(completion);
        if (completion.user_data == Outbox::status_mark)
            has_status = true;
        else if (completion.user_data != write_mark)
            ended_++;
    }
    if (!completions.empty()) last_completion_ = completed_at(completions.back());
    if (has_status) return learn_status();
    return ended_;
}

tl::expected<unsigned, Error> JobEngine::learn_status() {
    TRY(outbox_->learn());
    return ended_;
}

tl::expected<unsigned, Error> JobEngine::failed(const Completion& completion) const {
    Error error("a job failed on", path_.on(), -completion.status, "see: kxfer link list, dmesg");

    switch (error.number) {
    case EAGAIN:
        if (completion.op != KXFER_OP_SEND) break;
        error.why = "its mailbox is full";
        error.hint = "does another program send there?";
        break;
    case ECONNRESET:
        error.why = "the link to the peer broke";
        error.hint = fmt::format("is it still up? See: kxfer ping {}, kxfer link list", path_.peer());
        break;
    case EKEYREVOKED:
        error.why = "the peer has withdrawn the export";
        error.hint = "see: kxfer ls " + path_.peer();
        break;
    case EREMOTEIO:
        error.why = "the peer's device refused the access";
        break;
    case ETIMEDOUT:
        error.hint = fmt::format("see: kxfer ping {}; --timeout gives it longer", path_.peer());
        break;
    default:
        break;
    }
    return tl::unexpected(std::move(error));
}

} // namespace kxfer::bench
