// SPDX-License-Identifier: MIT
//
// Round n is notified with cookie n; the partner answers the same. Round 0 is no round: by
// it the two ends meet. Of WRITEs the last byte is n modulo 256, so that it always changes.

#include "bench/ping_pong.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sched.h>

#include "bench/stamp.hpp"

namespace kxfer::bench {

namespace {

// Then whoever stops it is looked for again.
constexpr std::chrono::milliseconds longest_wait{100};
// Looks at memory before others may have the CPU.
constexpr int looks = 1000;
constexpr std::byte wiped{0};
constexpr uint64_t seed = 1;

std::span<std::byte> going_out(const Memory& memory, const Workload& workload) {
    return memory.bytes().first(workload.size);
}

std::span<std::byte> coming_in(const Memory& memory, const Workload& workload) {
    return memory.bytes().subspan(workload.bytes(), workload.size);
}

// Jobs of one call, at most two, and all their completions.
tl::expected<void, Error> carry_out(KernelPath& path, std::span<const Job> jobs) {
    const Deadline deadline(path.options().timeout);
    std::array<Completion, 2> completions;
    kxfer_submit args = {};

    args.jobs = reinterpret_cast<uintptr_t>(jobs.data());
    args.nr_jobs = args.nr_completions = args.wait = static_cast<uint32_t>(jobs.size());
    args.completions = reinterpret_cast<uintptr_t>(completions.data());
    args.deadline_ns = deadline.ns();
    const int ret = kxfer_job_submit_wait(path.session().get(), &args);
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", path.peer(), -ret));
    if (args.error != 0)
        return tl::unexpected(Error("a job was not accepted for", path.peer(), static_cast<int>(args.error)));
    for (uint32_t done = args.reaped; done < jobs.size();) {
        auto more = path.session().reap(std::span(completions).subspan(done), 1, deadline);
        if (!more && more.error().number == EINTR) continue;
        if (!more) return tl::unexpected(more.error());
        done += static_cast<uint32_t>(more->size());
    }
    for (size_t i = 0; i < jobs.size(); i++)
        if (completions[i].status != 0)
            return tl::unexpected(
                Error("a job failed on", path.on(), -completions[i].status, "see: kxfer link list, dmesg"));
    return {};
}

// From what goes out, or from what came in, to what comes in there.
Job write_job(KernelPath& path, const Workload& workload, bool back) {
    return Job::write(path.region(), back ? workload.bytes() : 0, path.target(), workload.bytes(),
                      workload.size, 0);
}

// A WRITE that the other end waits for by looking: it sees itself when it is placed.
tl::expected<void, Error> write_round(KernelPath& path, const Memory& memory, const Workload& workload,
                                      uint64_t round) {
    Job job = write_job(path, workload, false);

    going_out(memory, workload).back() = static_cast<std::byte>(round);
    if (path.iwarp()) job.flags = KXFER_JOB_F_LOCAL_ONLY;
    return carry_out(path, {&job, 1});
}

// Until the other's WRITE of that round is there, or it is over.
template <typename Over>
bool wait_for_byte(const Memory& memory, const Workload& workload, uint64_t round, Over over) {
    auto& byte = reinterpret_cast<unsigned char&>(coming_in(memory, workload).back());
    const std::atomic_ref<unsigned char> last(byte);

    while (!over()) {
        for (int i = 0; i < looks; i++)
            if (last.load(std::memory_order_acquire) == static_cast<unsigned char>(round)) return true;
        sched_yield();
    }
    return false;
}

} // namespace

Partner::Partner(const PartnerOptions& options, Session& events, const Memory& memory)
    : options_(options), events_(events), memory_(memory), thread_(&Partner::run, this) {}

Partner::~Partner() {
    stopped_ = true;
    thread_.join();
}

// False: it is over.
bool Partner::next_event(uint64_t& cookie) {
    std::array<kxfer_event, 1> room = {};

    while (!stopped_) {
        const auto events = events_.take_events(room, true, Deadline(longest_wait));
        if (!events && events.error().number != ETIMEDOUT && events.error().number != EINTR) return false;
        if (!events || events->empty()) continue;
        cookie = events->front().cookie;
        return true;
    }
    return false;
}

// Who makes the round trips tells it if this ends early: nobody answers.
void Partner::run() {
    uint64_t cookie = 0;
    if (!next_event(cookie)) return;
    auto path = KernelPath::open(options_.path, memory_);
    if (!path) return;
    const Job met = Job::notify(path->target(), cookie, 0);
    if (!carry_out(*path, {&met, 1})) return;
    if (options_.workload.work == Work::ping_pong)
        answer_pings(*path);
    else
        answer_writes(*path);
}

void Partner::answer_pings(KernelPath& path) {
    const Workload& workload = options_.workload;
    uint64_t cookie = 0;

    while (next_event(cookie)) {
        const Job read = Job::read(path.region(), workload.bytes(), path.target(), 0, workload.size, cookie);
        const std::array back = {write_job(path, workload, true), Job::notify(path.target(), cookie, 0)};
        if (!carry_out(path, {&read, 1}) || !carry_out(path, back)) return;
    }
}

void Partner::answer_writes(KernelPath& path) {
    const Workload& workload = options_.workload;

    for (uint64_t round = 1;; round++) {
        if (!wait_for_byte(memory_, workload, round, [this] { return stopped_.load(); })) return;
        if (!write_round(path, memory_, workload, round)) return;
    }
}

PingPongEngine::PingPongEngine(KernelPath path, const Memory& memory, const Workload& workload)
    : path_(std::move(path)), memory_(memory), workload_(workload) {}

tl::expected<std::unique_ptr<PingPongEngine>, Error>
PingPongEngine::connect(const PathOptions& options, const Memory& memory, const Workload& workload) {
    auto path = KernelPath::open(options, memory);
    if (!path) return tl::unexpected(path.error());
    std::unique_ptr<PingPongEngine> engine(new PingPongEngine(std::move(*path), memory, workload));
    if (auto met = engine->meet(); !met) return tl::unexpected(met.error());
    return engine;
}

tl::expected<void, Error> PingPongEngine::meet() {
    auto exported = path_.session().add_export(path_.region(), back_name(path_.options().export_name),
                                               memory_.length(), KXFER_RIGHT_READ | KXFER_RIGHT_WRITE);
    if (!exported) return tl::unexpected(exported.error());
    export_ = std::move(*exported);
    const Job hello = Job::notify(path_.target(), 0, 0);
    if (auto told = carry_out(path_, {&hello, 1}); !told) return told;
    return wait_for_event(0);
}

Parameters PingPongEngine::parameters(const Workload& workload) const {
    Parameters parameters = path_.parameters(workload);

    parameters.max_depth = 1;
    return parameters;
}

tl::expected<void, Error> PingPongEngine::wait_for_event(uint64_t cookie) {
    const Deadline deadline(path_.options().timeout);
    std::array<kxfer_event, 1> room = {};

    for (;;) {
        const auto events = path_.session().take_events(room, true, deadline);
        if (!events && events.error().number == EINTR && !deadline.passed()) continue;
        if (!events)
            return tl::unexpected(Error("no answer from the partner on", path_.peer(), events.error().number,
                                        "a longer --timeout; see: kxfer link list, dmesg"));
        if (events->empty()) continue;
        if (events->front().cookie == cookie) return {};
        return tl::unexpected(Error("the partner answered what was not asked, on", path_.peer(), EPROTO));
    }
}

// Filling and comparing are in it, as they are in krping's.
tl::expected<void, Error> PingPongEngine::ping() {
    const Stamp stamp{seed, 0, ++rounds_, 0};
    const Job offer = Job::notify(path_.target(), rounds_, 0);
    const auto back = coming_in(memory_, workload_);

    fill_stamped(going_out(memory_, workload_), stamp);
    memset(back.data(), std::to_integer<int>(wiped), back.size());
    if (auto offered = carry_out(path_, {&offer, 1}); !offered) return offered;
    if (auto answered = wait_for_event(rounds_); !answered) return answered;
    const auto finding = check_stamped(back, stamp, wiped);
    if (!finding) return {};
    return tl::unexpected(Error("wrong data came back from", path_.on(), EBADMSG,
                                "keep this result: it is a defect of engine or stack",
                                fmt::format("round trip {}: {}", rounds_, finding->text())));
}

tl::expected<void, Error> PingPongEngine::write() {
    const Deadline deadline(path_.options().timeout);

    if (auto written = write_round(path_, memory_, workload_, ++rounds_); !written) return written;
    if (wait_for_byte(memory_, workload_, rounds_, [&] { return deadline.passed(); })) return {};
    return tl::unexpected(Error("no WRITE from the partner on", path_.peer(), ETIMEDOUT,
                                "a longer --timeout; see: kxfer link list, dmesg"));
}

tl::expected<unsigned, Error> PingPongEngine::step(std::span<const Transfer> transfers, unsigned) {
    if (transfers.empty()) return 0U;
    auto done = workload_.work == Work::ping_pong ? ping() : write();
    if (!done) return tl::unexpected(done.error());
    return 1U;
}

} // namespace kxfer::bench
