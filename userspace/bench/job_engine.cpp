// SPDX-License-Identifier: MIT
#include "bench/job_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "bench/mix.hpp"
#include "bench/runner.hpp"

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
    std::unique_ptr<JobEngine> engine(new JobEngine(std::move(*path), memory));
    if (options.messages) engine->open_mailbox();
    return engine;
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
    const bool is_long = workload.operation != Operation::write_imm && workload.size > KXFER_MESSAGE_MAX;
    if (workload.operation != Operation::write_imm && !workload.is_mix())
        parameters.local_registration = is_long ? local_each : local_copied;
    parameters.message_success = is_long ? message_taken : message_answered;
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
        return cannot("each message is answered, a batch of them has no completion for all");
    if (const auto why = path_.no_atomics(); is_atomic(operation) && !why.empty()) return cannot(why);
    return {};
}

// Atomics count up from zero.
tl::expected<void, Error> JobEngine::make_ready(const Workload& workload) {
    if (auto able = supports(workload.operation); !able) return able;
    workload_ = workload;
    messages_ = has_messages(workload) ? messages_of(workload) : Workload();
    if (auto able = supports(messages_.operation); !able) return able;
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
    if (auto submitted = submit({&job, 1}, 0); !submitted) return tl::unexpected(submitted.error());
    while (in_flight_ > 0)
        if (auto more = reap(in_flight_); !more) return tl::unexpected(more.error());
    return {};
}

// Each block is a series of messages of its own, so engines may share a mailbox.
tl::expected<void, Error> JobEngine::begin_block(const Workload& workload) {
    if (!has_messages(workload)) return {};
    if (auto opened = carry_out(outbox_->open_series(messages_)); !opened) return opened;
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
        if (auto read = carry_out(outbox_->read_status()); !read) return read;
        if (done()) return {};
        if (deadline.passed())
            return tl::unexpected(Error("the peer " + otherwise, path_.on(), ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        std::this_thread::yield();
    }
}

// A READ of the status may be in flight already.
tl::expected<unsigned, Error> JobEngine::wait_for_room(uint64_t messages) {
    unsigned done = 0;

    if (outbox_->available() >= messages) return done;
    const Deadline deadline(path_.options().timeout);
    while (outbox_->available() < messages) {
        if (!outbox_->is_reading()) {
            const Job read = outbox_->read_status();
            if (auto submitted = submit({&read, 1}, 0); submitted)
                done += *submitted;
            else
                return submitted;
        }
        const auto more = outbox_->is_reading() ? reap(1) : tl::expected<unsigned, Error>(0U);
        if (!more) return more;
        done += *more;
        if (deadline.passed() && outbox_->available() < messages)
            return tl::unexpected(Error("the peer receives no messages", path_.on(), ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        if (outbox_->available() < messages) std::this_thread::yield();
    }
    return done;
}

tl::expected<unsigned, Error> JobEngine::step(std::span<const Transfer> transfers, unsigned wait) {
    unsigned done = 0;

    if (!transfers.empty()) {
        const auto messages = std::count_if(transfers.begin(), transfers.end(),
                                            [](const Transfer& one) { return is_message(one.operation); });
        if (messages > 0) {
            const auto early = wait_for_room(static_cast<uint64_t>(messages));
            if (!early) return early;
            done = *early;
        }
        jobs_each_ = jobs_of(transfers.front().operation);
        jobs_.clear();
        for (const Transfer& transfer : transfers) add_jobs(transfer);
        if (messages > 0 && outbox_->low() && !outbox_->is_reading()) jobs_.push_back(outbox_->read_status());
        const auto submitted = submit_all(wait - std::min(wait, done));
        if (!submitted) return submitted;
        done += *submitted;
    }
    while (done < wait) {
        const auto more = reap(wait - done);
        if (!more) return more;
        done += *more;
    }
    return done;
}

Job JobEngine::job_of(const Transfer& transfer) {
    const Region& region = path_.region();
    const Target& target = path_.target();
    const uint64_t at = transfer.offset;

    if (transfer.operation == Operation::read) return Job::read(region, at, target, at, transfer.length, at);
    if (transfer.operation == Operation::fetch_add) return Job::fetch_add(region, at, target, at, 1, at);
    if (transfer.operation == Operation::compare_swap) {
        const uint64_t swaps = swaps_[at / workload_.stride()]++;
        return Job::compare_swap(region, at, target, at, swaps, swaps + 1, at);
    }
    Job write = Job::write(region, at, target, at, transfer.length, at);
    if (path_.iwarp()) write.flags = KXFER_JOB_F_LOCAL_ONLY;
    return write;
}

void JobEngine::add_jobs(const Transfer& transfer) {
    const bool message = is_message(transfer.operation);

    if (!message || transfer.operation == Operation::write_imm) jobs_.push_back(job_of(transfer));
    if (!message) {
        if (path_.options().signal_batch()) jobs_.back().flags |= KXFER_JOB_F_BATCH;
        return;
    }
    if (transfer.operation == Operation::write_imm) jobs_.back().user_data = write_mark;
    jobs_.push_back(outbox_->next(messages_, path_.region()));
}

// Submits the prepared jobs. A SUBMIT takes at most max_submit(); only the last one waits.
tl::expected<unsigned, Error> JobEngine::submit_all(unsigned wait) {
    std::span<const Job> left(jobs_);
    unsigned done = 0;

    for (;;) {
        const auto some = left.first(std::min<size_t>(left.size(), path_.max_submit()));
        left = left.subspan(some.size());
        const auto submitted = submit(some, left.empty() ? wait : 0);
        if (!submitted) return submitted;
        done += *submitted;
        if (left.empty()) return done;
    }
}

// Hands in jobs, and waits for so many operations' worth of completions.
tl::expected<unsigned, Error> JobEngine::submit(std::span<const Job> jobs, unsigned wait) {
    kxfer_submit args = {};

    args.jobs = reinterpret_cast<uintptr_t>(jobs.data());
    args.nr_jobs = static_cast<uint32_t>(jobs.size());
    in_flight_ += args.nr_jobs;
    if (!path_.options().ring) {
        args.completions = reinterpret_cast<uintptr_t>(completions_.data());
        // No more room than can be filled: the kernel checks access to all of it.
        args.nr_completions = std::min(in_flight_, max_completions);
    }
    args.wait = std::min(wait * jobs_each_, in_flight_);
    args.deadline_ns = wait ? Deadline(path_.options().timeout).ns() : 0;
    const int ret = kxfer_job_submit_wait(path_.session().get(), &args);
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", path_.peer(), -ret));
    if (args.error != 0)
        return tl::unexpected(
            Error(fmt::format("only {} of {} jobs were accepted for", args.accepted, jobs.size()),
                  path_.peer(), static_cast<int>(args.error)));
    const auto taken =
        path_.options().ring ? static_cast<unsigned>(path_.session().take(completions_).size()) : args.reaped;
    return count(taken);
}

// The completions of a REAP; with a ring, REAP only waits and they are in the ring.
tl::expected<std::span<const Completion>, Error> JobEngine::take(unsigned wait) {
    auto& session = path_.session();
    if (!path_.options().ring) return session.reap(completions_, wait, path_.options().timeout);
    if (auto waited = session.wait(wait, path_.options().timeout); !waited)
        return tl::unexpected(waited.error());
    return session.take(completions_);
}

tl::expected<unsigned, Error> JobEngine::reap(unsigned wait) {
    const auto reaped = take(std::min(wait * jobs_each_, in_flight_));

    if (!reaped && reaped.error().number == EINTR) return 0;
    if (!reaped)
        return tl::unexpected(Error("no completion from", path_.peer(), reaped.error().number,
                                    "is it still there? try: kxfer link list, or a longer --timeout"));
    if (reaped->empty()) return tl::unexpected(Error("completions are missing from", path_.peer(), EPROTO));
    return count(static_cast<unsigned>(reaped->size()));
}

// Counts the operations that the taken completions end.
tl::expected<unsigned, Error> JobEngine::count(unsigned taken) {
    unsigned operations = 0;

    in_flight_ -= taken;
    for (unsigned i = 0; i < taken; i++) {
        const Completion& completion = completions_[i];

        if (completion.status != 0) return tl::unexpected(failure(completion));
        if (completion.user_data == Outbox::status_mark) {
            if (auto learned = outbox_->learn(); !learned) return tl::unexpected(learned.error());
        } else if (completion.user_data != write_mark) {
            operations++;
        }
    }
    return operations;
}

Error JobEngine::failure(const Completion& completion) const {
    Error error("a job failed on", path_.on(), -completion.status, "see: kxfer link list, dmesg");

    switch (error.number) {
    case EAGAIN:
        if (completion.op != KXFER_OP_SEND) break;
        error.why = "its mailbox is full";
        error.hint = "does anybody else send there?";
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
    return error;
}

} // namespace kxfer::bench
