// SPDX-License-Identifier: MIT
//
// One thread takes the requests, one message after the other, and carries them out. A requester
// that asks while the thread measures sees that in the answer, and gives up. Its request is read
// after the measurement, while the answer still belongs to the other requester: so a workload is
// refused, and CPU time goes to fields of its own.

#include "bench/peer/counterpart.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/try.hpp"
#include "bench/engines/echo.hpp"
#include "bench/engines/job_engine.hpp"
#include "bench/engines/kverbs_engine.hpp"
#include "bench/engines/rules.hpp"
#include "bench/peer/pong.hpp"
#include "bench/run/environment.hpp"
#include "bench/run/run.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds go_timeout{10}, path_timeout{10};
// Waits for the other direction, which may take longer, and until a result or an error was READ.
constexpr std::chrono::seconds end_timeout{60}, taken_timeout{60}, failed_timeout{2};
// Between checks that round trips are still answered.
constexpr std::chrono::milliseconds look_again{100};
constexpr size_t place_bytes = sizeof(kxfer_message) + sizeof(WireAsk);
constexpr uint32_t mailbox_places = 16;
static_assert(place_bytes <= page_bytes);

// The stamps of a process share one sequence.
std::mutex one_at_a_time;

// A flag and a time that end this thread's run.
thread_local const std::atomic<bool>* ends = nullptr;
thread_local Clock::time_point ends_at;

int is_over() { return ends->load() || Clock::now() >= ends_at ? 1 : 0; }

ProcessUsage own_usage() {
    rusage usage = {};
    timespec time = {};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec),
            static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

PeerNode own_node(Session& session) {
    const Environment here = find_environment();
    const auto query = session.query();

    return {here.kernel + ' ' + here.architecture, fmt::format("{} x {}", here.nr_cpus, here.cpu_model),
            query ? text_of(query->version) : "", here.module_srcversion};
}

} // namespace

// The path back to the address that the message came from, and to no other.
tl::expected<PathOptions, Error> Counterpart::path_back(const Asked& asked) const {
    const Ask& ask = asked.ask;
    PathOptions path;
    if (ask.key && key_.empty())
        return tl::unexpected(Error("cannot connect back to", to_string(asked.from), ENOKEY, "",
                                    "its listener wants a key, and kxfer serve was started without --key"));
    path.key = ask.key ? key_ : "";
    path.peer = asked.from;
    path.peer.port = ask.port;
    path.export_name = reverse_name(ask.request);
    path.context = ask.context;
    path.tos = ask.tos;
    path.wait_flags = ask.wait_flags;
    path.ring = ask.ring;
    path.signal = ask.signal_batch ? 0 : 1;
    path.atomic = is_fetch(ask.workload.operation);
    path.timeout = path_timeout;
    return path;
}

Counterpart::Counterpart(Session session, std::string name, Memory place, Memory memory)
    : session_(std::move(session)), name_(std::move(name)), place_(std::move(place)),
      memory_(std::move(memory)) {}

tl::expected<std::unique_ptr<Counterpart>, Error> Counterpart::start(const std::string& export_name,
                                                                     std::span<const kxfer_rule> rules,
                                                                     const std::string& key) {
    if (answer_name(export_name).size() > KXFER_NAME_MAX)
        return tl::unexpected(Error("cannot take part in measurements beside", export_name, EINVAL,
                                    "give it a shorter name", "the name of the answer would be too long"));
    TRY_SET(auto session, Session::open());
    TRY_SET(auto place, Memory::create(page_bytes));
    TRY_SET(auto memory, Memory::create(answer_bytes()));
    std::unique_ptr<Counterpart> counterpart(
        new Counterpart(std::move(session), ask_name(export_name), std::move(place), std::move(memory)));
    counterpart->rules_.assign(rules.begin(), rules.end());
    counterpart->key_ = key;
    counterpart->answer_.node = own_node(counterpart->session_);
    counterpart->publish();
    TRY(counterpart->offer(export_name, rules));
    try {
        counterpart->thread_ = std::thread(&Counterpart::run, counterpart.get());
    } catch (const std::system_error& error) {
        return tl::unexpected(
            Error("cannot start a thread for", counterpart->name_, error.code().value(), "see: ulimit -u"));
    }
    return counterpart;
}

tl::expected<void, Error> Counterpart::offer(const std::string& export_name,
                                             std::span<const kxfer_rule> rules) {
    TRY_SET(place_region_, session_.add_region(place_.bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(region_, session_.add_region(memory_.bytes(), 0));
    TRY_SET(answer_export_, session_.add_export(region_, answer_name(export_name), memory_.length(),
                                                KXFER_RIGHT_READ, granting(rules, KXFER_RIGHT_READ)));
    TRY_SET(mailbox_,
            session_.add_mailbox(name_, mailbox_places, sizeof(WireAsk), granting(rules, KXFER_RIGHT_SEND)));
    mailbox_id_ = mailbox_.id();
    return {};
}

// When the mailbox ends, so does the waiting RECV, and no new RECV is accepted.
Counterpart::~Counterpart() {
    stopping_ = true;
    mailbox_.reset();
    if (thread_.joinable()) thread_.join();
}

// Blocks all signals: they are for other threads.
void Counterpart::run() {
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (!stopping_) {
        const auto asked = next(Deadline::never());
        if (!asked && !endurance_.survives(asked.error().number)) return;
        if (!asked) continue;
        endurance_.worked();
        if (*asked) handle(**asked);
    }
}

// Empty: the message is no request. ETIMEDOUT: no message; other errors: see Endurance.
tl::expected<std::optional<Counterpart::Asked>, Error> Counterpart::next(Deadline deadline) {
    Job recv;
    static_cast<kxfer_job&>(recv) = kxfer_job_make_recv(place_region_.id(), 0, mailbox_id_, place_bytes, 0);
    TRY_SET(const auto done, session_.run(recv.by(deadline), Deadline::never()));
    const auto message = Message::at(place_.bytes().first(place_bytes), done.bytes);
    const auto ask = message ? decode_ask(message->payload()) : std::nullopt;
    if (!ask) return std::nullopt;
    return Asked{*ask, message->head().peer};
}

void Counterpart::publish() { bench::publish(answer_, memory_.bytes()); }

void Counterpart::fail(uint64_t request, const Error& error) {
    answer_.request = request;
    answer_.progress = Progress::failed;
    answer_.error = error;
    publish();
}

void Counterpart::handle(const Asked& asked) {
    const Ask& ask = asked.ask;

    if (ask.verb == Verb::usage) answer_beside(ask);
    if (ask.verb != Verb::prepare && ask.verb != Verb::answer) return; // other verbs are too late
    answer_.progress = Progress::nothing;
    answer_.result = {};
    std::unique_lock lock(one_at_a_time, std::try_to_lock);
    tl::expected<void, Error> done = tl::unexpected(Error("it measures for another", name_, EBUSY));
    if (lock.owns_lock()) {
        done = ask.verb == Verb::answer ? answer_round_trips(asked) : reverse(asked);
        lock.unlock();
    }
    if (done && ask.verb == Verb::answer) return;
    if (!done) fail(ask.request, done.error());
    // It is no error if the answer is not taken. The initiator of round trips always reports their end.
    const Verb last = ask.verb == Verb::answer ? Verb::end : Verb::taken;
    static_cast<void>(await(last, ask.request, done ? taken_timeout : failed_timeout));
}

// Does not touch the answer to another request.
void Counterpart::answer_beside(const Ask& ask) {
    if (ask.verb == Verb::usage) {
        answer_.usage_request = ask.request;
        answer_.total = own_usage();
    } else if (ask.verb == Verb::prepare || ask.verb == Verb::answer) {
        answer_.refused = ask.request;
    }
    publish();
}

// Waits for that verb; answer_beside() handles other requests. False: it did not come in time.
tl::expected<bool, Error> Counterpart::await(Verb verb, uint64_t request, std::chrono::nanoseconds longest) {
    const Deadline deadline(longest);

    for (;;) {
        const auto asked = next(deadline);
        if (!asked && asked.error().number == ETIMEDOUT) return false;
        if (!asked) return tl::unexpected(asked.error());
        if (!*asked) continue;
        const Ask& ask = (*asked)->ask;
        if (ask.request == request && ask.verb == verb) return true;
        answer_beside(ask);
    }
}

tl::expected<void, Error> Counterpart::wait_for_go(uint64_t request) {
    answer_.request = request;
    answer_.progress = Progress::ready;
    publish();
    TRY_SET(const auto told, await(Verb::go, request, go_timeout));
    if (!told) return tl::unexpected(Error("no word to begin came", name_, ETIMEDOUT));
    answer_.progress = Progress::measuring;
    publish();
    return {};
}

// Verification waits for the end verb, because it takes CPU time.
tl::expected<void, Error> Counterpart::wait_for_end(uint64_t request) {
    answer_.progress = Progress::measured;
    publish();
    const auto told = await(Verb::end, request, end_timeout);
    return told ? tl::expected<void, Error>() : tl::unexpected(told.error());
}

// Answers until the end verb comes, or the other end has gone.
tl::expected<void, Error> Counterpart::answer_round_trips(const Asked& asked) {
    const Ask& ask = asked.ask;

    TRY(check_ask(ask));
    if (const auto why = ask.by_runs ? KverbsEngine::obstacle() : std::nullopt) return tl::unexpected(*why);
    TRY_SET(auto path, path_back(asked));
    const std::string name = round_trip_name(ask.request);
    path.export_name = PingPongEngine::back_name(name);
    // The client may be on this node.
    if (ask.by_runs) path.in_flight_kib = Echo::other_in_flight_kib(0);
    TRY_SET(auto pong, Pong::offer({std::move(path), ask.workload, name, rules_, ask.by_runs}));
    answer_.request = ask.request;
    answer_.progress = Progress::done;
    publish();
    while (!pong->ended()) {
        TRY_SET(const auto over, await(Verb::end, ask.request, look_again));
        if (over) return {};
    }
    return tl::unexpected(pong->error());
}

tl::expected<void, Error> Counterpart::reverse(const Asked& asked) {
    const Ask& ask = asked.ask;
    ProcessUsage before, after;

    TRY(check_ask(ask));
    TRY_SET(auto memory, Memory::create(ask.workload.bytes()));
    TRY_SET(const auto path, path_back(asked));
    TRY_SET(auto engine, JobEngine::connect(path, memory));
    const auto parameters = engine->parameters(ask.workload);
    if (const auto mismatch = find_mismatch("job", parameters, "job", parameters, ask.workload.depth))
        return tl::unexpected(*mismatch);

    RunPlan plan{ask.duration, ask.count, {}, ask.warm_up, ask.rate, is_over};
    plan.count_calls = false;
    plan.together.go = [&] {
        auto told = wait_for_go(ask.request);
        before = own_usage();
        return told;
    };
    plan.together.end = [&] {
        after = own_usage();
        return wait_for_end(ask.request);
    };
    ends = &stopping_;
    ends_at = Clock::now() + max_reverse_time + go_timeout + end_timeout + 2 * path_timeout;
    TRY_SET(const auto result, bench::run(*engine, memory, ask.workload, plan));
    answer_.usage = {after.cpu_ns - before.cpu_ns, after.switches - before.switches};
    answer_.result = {result.operations, result.elapsed_ns, result.verified, result.latencies};
    answer_.progress = Progress::done;
    publish();
    return {};
}

} // namespace kxfer::bench
