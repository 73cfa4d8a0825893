// SPDX-License-Identifier: MIT
//
// Round trip n begins with a NOTIFY with cookie n, or with a WRITE that brings it; the partner answers
// with the same cookie. Round 0 is no round trip: with it the two ends meet. With WRITEs alone the last
// byte is n modulo 256, so that it always changes.

#include "bench/engines/ping_pong.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sched.h>

#include "base/try.hpp"
#include "bench/engines/echo.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Longest wait until the stop flag is checked again.
constexpr std::chrono::milliseconds longest_wait{100};
// While nothing arrives: time between two checks that the other end is there.
constexpr std::chrono::seconds between_looks{1};
// After that time without a round trip the partner ends, so that others can have one.
constexpr std::chrono::seconds longest_silence{60};
// Polls of memory before the thread yields the CPU.
constexpr int looks = 1000;
constexpr std::byte wiped{0};
// user_data of a READ that checks that the other end is there; not the number of a message.
constexpr uint64_t look_mark = UINT64_MAX;
constexpr uint64_t seed = 1;

tl::unexpected<Error> stop_error() { return tl::unexpected(Error("stopped", "", ECANCELED)); }

// since: the time of the last round trip, or the begin.
tl::expected<void, Error> check_silence(Clock::time_point since, const std::string& name) {
    if (Clock::now() - since <= longest_silence) return {};
    return tl::unexpected(Error("the other end asks for no round trip of", name, ETIMEDOUT, "",
                                fmt::format("nothing came for {} s", longest_silence.count())));
}

std::span<std::byte> going_out(const Memory& memory, const Workload& workload) {
    return memory.bytes().first(workload.size);
}

std::span<std::byte> coming_in(const Memory& memory, const Workload& workload) {
    return memory.bytes().subspan(workload.bytes(), workload.size);
}

Error job_error(const KernelPath& path, int number) {
    Error error("a job failed on", path.on(), number, "see: kxfer link list, dmesg");

    if (number == EKEYREVOKED) {
        error.why = "the other end has withdrawn its memory";
        error.hint = "did its process end? See: kxfer ls " + path.peer();
    } else if (number == ECONNRESET) {
        error.why = "the link to the peer broke";
        error.hint = fmt::format("is it still up? See: kxfer ping {}, kxfer link list", path.peer());
    } else if (number == ETIMEDOUT) {
        error.hint = fmt::format("see: kxfer ping {}; --timeout gives it longer", path.peer());
    }
    return error;
}

// Submits at most two jobs in one call and waits for all their completions.
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
        if (completions[i].status != 0) return tl::unexpected(job_error(path, -completions[i].status));
    return {};
}

// Submits jobs and returns how many have ended. wait: waits for them up to longest_wait; the caller
// reaps the rest.
tl::expected<unsigned, Error> hand_in(KernelPath& path, std::span<const Job> jobs, bool wait = true) {
    std::array<Completion, 2> completions;
    kxfer_submit args = {};

    args.jobs = reinterpret_cast<uintptr_t>(jobs.data());
    args.nr_jobs = static_cast<uint32_t>(jobs.size());
    args.nr_completions = args.wait = wait ? args.nr_jobs : 0;
    args.completions = reinterpret_cast<uintptr_t>(completions.data());
    args.deadline_ns = Deadline(longest_wait).ns();
    const int ret = kxfer_job_submit_wait(path.session().get(), &args);
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", path.peer(), -ret));
    if (args.error != 0)
        return tl::unexpected(Error("a job was not accepted for", path.peer(), static_cast<int>(args.error)));
    for (uint32_t i = 0; i < args.reaped; i++)
        if (completions[i].status != 0) return tl::unexpected(job_error(path, -completions[i].status));
    return args.reaped;
}

// From the outgoing memory, or with `back` from the incoming one, to the peer's incoming memory.
Job write_job(KernelPath& path, const Workload& workload, bool back) {
    return Job::write(path.region(), back ? workload.bytes() : 0, path.target(), workload.bytes(),
                      workload.size, 0);
}

// The NOTIFY arrives behind the data, so its event shows that the data is there.
Job notified_write(KernelPath& path, const Workload& workload, bool back, uint64_t round) {
    Job job = write_job(path, workload, back);

    job.flags = KXFER_JOB_F_NOTIFY;
    job.cookie = round;
    return job;
}

// The other end polls its memory for this WRITE, so on iWARP local completion is enough.
tl::expected<void, Error> write_round(KernelPath& path, const Memory& memory, const Workload& workload,
                                      uint64_t round) {
    Job job = write_job(path, workload, false);

    going_out(memory, workload).back() = static_cast<std::byte>(round);
    if (path.iwarp()) job.flags = KXFER_JOB_F_LOCAL_ONLY;
    return carry_out(path, {&job, 1});
}

// Polls until the other end's WRITE of that round is there, or until over() is true.
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

// Called while nothing arrives. Once per between_looks it READs a byte of the other end's export, which
// fails if that end has gone. The byte lands where the next WRITE begins, which is filled before that.
// ECANCELED: the partner is stopped.
Partner::Done Partner::look_after(KernelPath& path, Clock::time_point& looked) {
    const auto now = Clock::now();

    if (stopped_) return stop_error();
    if (now - looked < between_looks) return {};
    looked = now;
    const Job look = Job::read(path.region(), 0, path.target(), 0, 1, 0);
    return carry_out(path, {&look, 1});
}

// Returns the next event's cookie. path: null until one is open. ECANCELED: the partner is stopped.
tl::expected<uint64_t, Error> Partner::next_event(KernelPath* path) {
    std::array<kxfer_event, 1> room = {};
    const auto begun = Clock::now();
    auto looked = begun;

    for (;;) {
        const auto events = events_.take_events(room, true, Deadline(longest_wait));
        if (!events && events.error().number != ETIMEDOUT && events.error().number != EINTR)
            return tl::unexpected(events.error());
        // Check the flag first: while the initiator keeps asking there is always an event.
        if (stopped_) return stop_error();
        if (events && !events->empty()) return events->front().cookie;
        if (path) TRY(look_after(*path, looked));
        TRY(check_silence(begun, options_.name));
    }
}

// If this ends early, the initiator of the round trips gets no answer and reports that.
void Partner::run() {
    if (auto done = answer(); !done) error_ = done.error();
    ended_ = true;
}

Partner::Done Partner::answer() {
    TRY_SET(const auto cookie, next_event(nullptr));
    TRY_SET(auto path, KernelPath::open(options_.path, memory_));
    std::unique_ptr<MessageEnd> messages;
    if (options_.workload.work == Work::send_ping_pong) {
        TRY_SET(messages, MessageEnd::offer(path, options_.name, options_.workload.size, options_.rules));
        TRY(messages->open(options_.path.export_name));
    }
    const Job met = Job::notify(path.target(), cookie, 0);
    TRY(carry_out(path, {&met, 1}));
    if (messages) return answer_messages(path, *messages);
    if (options_.workload.work == Work::notify_ping_pong) return answer_notified(path);
    if (options_.workload.work == Work::ping_pong) return answer_pings(path);
    return options_.by_runs ? answer_by_runs(path) : answer_writes(path);
}

// Waits until so many more jobs have ended. An extra job checks that the other end is there.
Partner::Done Partner::await_jobs(KernelPath& path, unsigned left) {
    std::array<Completion, 3> completions;
    const auto begun = Clock::now();
    auto looked = begun;
    bool looking = false;

    while (left > 0 || looking) {
        const auto more = path.session().reap(completions, 1, Deadline(longest_wait));
        if (!more && more.error().number != ETIMEDOUT && more.error().number != EINTR)
            return tl::unexpected(more.error());
        for (size_t i = 0; more && i < more->size(); i++) {
            const Completion& completion = (*more)[i];
            if (completion.status != 0) return tl::unexpected(job_error(path, -completion.status));
            left -= completion.user_data == look_mark ? 0 : 1;
            looking = looking && completion.user_data != look_mark;
        }
        if (more || looking) continue;
        if (stopped_) return stop_error();
        TRY(check_silence(begun, options_.name));
        if (Clock::now() - looked < between_looks) continue;
        const Job look = Job::read(path.region(), 0, path.target(), 0, 1, look_mark);
        looked = Clock::now();
        looking = true;
        TRY(hand_in(path, {&look, 1}, false));
    }
    return {};
}

// The RECV of the next message is submitted with the answer to the one before.
Partner::Done Partner::answer_messages(KernelPath& path, MessageEnd& end) {
    const Job first = end.recv(0);
    auto ended = hand_in(path, {&first, 1});
    if (!ended) return tl::unexpected(ended.error());
    TRY(await_jobs(path, 1 - *ended));
    for (uint64_t n = 0; !stopped_; n++) {
        const std::array next = {end.echo(n), end.recv(n + 1)};
        ended = hand_in(path, next);
        if (!ended) return tl::unexpected(ended.error());
        TRY(await_jobs(path, 2 - *ended));
    }
    return stop_error();
}

Partner::Done Partner::answer_pings(KernelPath& path) {
    const Workload& workload = options_.workload;

    for (;;) {
        TRY_SET(const auto cookie, next_event(&path));
        const Job read = Job::read(path.region(), workload.bytes(), path.target(), 0, workload.size, 0);
        const std::array back = {write_job(path, workload, true), Job::notify(path.target(), cookie, 0)};
        TRY(carry_out(path, {&read, 1}));
        TRY(carry_out(path, back));
    }
}

Partner::Done Partner::answer_writes(KernelPath& path) {
    const Workload& workload = options_.workload;
    Done there;

    for (uint64_t round = 1;; round++) {
        const auto begun = Clock::now();
        auto looked = begun;
        const auto is_over = [&] {
            there = look_after(path, looked);
            if (there) there = check_silence(begun, options_.name);
            return !there;
        };
        if (!wait_for_byte(memory_, workload, round, is_over)) return there;
        TRY(write_round(path, memory_, workload, round));
    }
}

// A run ends after longest_wait, so that others see to the rest in between.
Partner::Done Partner::answer_by_runs(KernelPath& path) {
    Echo echo(options_.workload, KXFER_BENCH_F_PONG);
    auto begun = Clock::now(), looked = begun;

    for (;;) {
        kxfer_bench bench = echo.request(path, UINT32_MAX, longest_wait);
        auto done = echo.run(path, bench);
        if (!done && done.error().number != EINTR) return done;
        if (done && bench.operations > 0) begun = looked = Clock::now();
        TRY(look_after(path, looked));
        TRY(check_silence(begun, options_.name));
    }
}

Partner::Done Partner::answer_notified(KernelPath& path) {
    for (;;) {
        TRY_SET(const auto cookie, next_event(&path));
        const Job back = notified_write(path, options_.workload, true, cookie);
        TRY(carry_out(path, {&back, 1}));
    }
}

PingPongEngine::PingPongEngine(KernelPath path, const Memory& memory, const Workload& workload)
    : path_(std::move(path)), memory_(memory), workload_(workload) {}

tl::expected<std::unique_ptr<PingPongEngine>, Error>
PingPongEngine::connect(const PathOptions& options, const Memory& memory, const Workload& workload) {
    TRY_SET(auto path, KernelPath::open(options, memory));
    std::unique_ptr<PingPongEngine> engine(new PingPongEngine(std::move(path), memory, workload));
    TRY(engine->meet());
    return engine;
}

tl::expected<void, Error> PingPongEngine::meet() {
    TRY_SET(export_, path_.session().add_export(path_.region(), back_name(path_.options().export_name),
                                                memory_.length(), KXFER_RIGHT_READ | KXFER_RIGHT_WRITE));
    if (workload_.work == Work::send_ping_pong) {
        TRY_SET(messages_,
                MessageEnd::offer(path_, back_name(path_.options().export_name), workload_.size, {}));
    }
    const Job hello = Job::notify(path_.target(), 0, 0);
    TRY(carry_out(path_, {&hello, 1}));
    TRY(wait_for_event(0));
    return messages_ ? messages_->open(path_.options().export_name) : tl::expected<void, Error>();
}

Error PingPongEngine::silence(int number) const {
    return Error("no answer from the partner on", path_.peer(), number,
                 "a longer --timeout; see: kxfer link list, dmesg");
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
        if (!events) return tl::unexpected(silence(events.error().number));
        if (events->empty()) continue;
        if (events->front().cookie == cookie) return {};
        return tl::unexpected(Error("the partner answered what was not asked, on", path_.peer(), EPROTO));
    }
}

// The measured time includes filling and comparing, as in krping.
tl::expected<void, Error> PingPongEngine::ping() {
    const Stamp stamp{seed, 0, ++rounds_, 0};
    const Job offer = Job::notify(path_.target(), rounds_, 0);
    const auto back = coming_in(memory_, workload_);

    fill_stamped(going_out(memory_, workload_), stamp);
    memset(back.data(), std::to_integer<int>(wiped), back.size());
    TRY(carry_out(path_, {&offer, 1}));
    TRY(wait_for_event(rounds_));
    return compare(back, stamp);
}

tl::expected<void, Error> PingPongEngine::compare(std::span<const std::byte> back, const Stamp& stamp) const {
    const auto finding = check_stamped(back, stamp, wiped);
    const bool whole = back.size() == workload_.size;
    if (!finding && whole) return {};
    return tl::unexpected(
        Error("wrong data came back from", path_.on(), EBADMSG,
              "keep this result: it is a defect of engine or stack",
              fmt::format("round trip {}: {}", rounds_, whole ? finding->text() : "another length")));
}

// The measured time includes filling and comparing.
tl::expected<void, Error> PingPongEngine::send() {
    const uint64_t message = rounds_;
    const Stamp stamp{seed, 0, ++rounds_, 0};
    const std::array jobs = {messages_->recv(message), messages_->send(path_.region(), 0)};

    fill_stamped(going_out(memory_, workload_), stamp);
    if (auto back = carry_out(path_, jobs); !back) {
        const int number = back.error().number;
        return tl::unexpected(number == ETIMEDOUT ? silence(number) : back.error());
    }
    return compare(messages_->payload(message), stamp);
}

// The measured time includes filling and comparing.
tl::expected<void, Error> PingPongEngine::write_notified() {
    const Stamp stamp{seed, 0, ++rounds_, 0};
    const Job there = notified_write(path_, workload_, false, rounds_);
    const auto back = coming_in(memory_, workload_);

    fill_stamped(going_out(memory_, workload_), stamp);
    memset(back.data(), std::to_integer<int>(wiped), back.size());
    TRY(carry_out(path_, {&there, 1}));
    TRY(wait_for_event(rounds_));
    return compare(back, stamp);
}

tl::expected<void, Error> PingPongEngine::write() {
    const Deadline deadline(path_.options().timeout);

    TRY(write_round(path_, memory_, workload_, ++rounds_));
    if (wait_for_byte(memory_, workload_, rounds_, [&] { return deadline.passed(); })) return {};
    return tl::unexpected(Error("no WRITE from the partner on", path_.peer(), ETIMEDOUT,
                                "a longer --timeout; see: kxfer link list, dmesg"));
}

tl::expected<unsigned, Error> PingPongEngine::step(std::span<const Transfer> transfers, unsigned) {
    if (transfers.empty()) return 0U;
    TRY(workload_.work == Work::ping_pong          ? ping()
        : workload_.work == Work::send_ping_pong   ? send()
        : workload_.work == Work::notify_ping_pong ? write_notified()
                                                   : write());
    return 1U;
}

} // namespace kxfer::bench
