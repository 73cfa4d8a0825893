// SPDX-License-Identifier: MIT
#include "bench/peer/requester.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

// Time between two READs of the answer.
constexpr std::chrono::milliseconds pause{10};
// Time allowed for each operation of the peer's warm-up.
constexpr std::chrono::milliseconds longest_operation{1};
constexpr uint64_t most_warm_up = 1000000000;
// The counterpart's rights on the lent memory.
constexpr uint32_t lent_rights = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE | KXFER_RIGHT_ATOMIC;

uint64_t random_request() {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
}

// Offset of the request, which is on a page of its own.
uint64_t ask_at() { return (answer_bytes() + page_bytes - 1) / page_bytes * page_bytes; }

// The counterpart is busy, and reads no requests meanwhile.
bool is_at_work(const Answer& answer) {
    return answer.progress == Progress::ready || answer.progress == Progress::measuring;
}

Error no_answer(const std::string& peer) {
    return Error("no answer from the counterpart", peer, ETIMEDOUT,
                 "is it still there? try a longer --timeout");
}

} // namespace

Requester::Requester(const PathOptions& options, Session session, Memory memory)
    : options_(options), peer_(to_string(options.peer) + '/' + ask_name(options.export_name)),
      session_(std::move(session)), memory_(std::move(memory)) {}

tl::expected<std::unique_ptr<Requester>, Error> Requester::open(const PathOptions& options) {
    TRY_SET(auto session, Session::open());
    TRY_SET(auto memory, Memory::create(ask_at() + page_bytes));
    std::unique_ptr<Requester> requester(new Requester(options, std::move(session), std::move(memory)));
    TRY(requester->connect());
    return requester;
}

tl::expected<void, Error> Requester::connect() {
    TRY_SET(region_, session_.add_region(memory_.bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(peer_handle_, open_peer(session_, options_));

    const auto opened = [&](const std::string& name, uint32_t right, Target& target) {
        auto found = open_beside(peer_handle_, options_, name, right);
        if (found) target = std::move(*found);
        return found ? tl::expected<void, Error>() : tl::unexpected(found.error());
    };
    TRY(opened(ask_name(options_.export_name), KXFER_RIGHT_SEND, mailbox_));
    TRY(opened(answer_name(options_.export_name), KXFER_RIGHT_READ, answer_));
    if (answer_.length() < answer_bytes() || mailbox_.length() < sizeof(WireAsk))
        return tl::unexpected(Error("the peer's kxfer serve --bench is of another version:", peer_, EPROTO,
                                    "install the same version on both nodes"));
    return {};
}

// Stored, so that the next requester's request, which may come by another lane, is behind it.
tl::expected<void, Error> Requester::send(const Ask& ask) {
    const WireAsk wire = encode(ask);

    memcpy(memory_.data() + ask_at(), &wire, sizeof(wire));
    auto sent =
        session_.run(Job::send_stored(region_, ask_at(), mailbox_, sizeof(wire), 0), options_.timeout);
    if (!sent) return tl::unexpected(Error("cannot ask the counterpart", peer_, sent.error().number));
    return {};
}

Error Requester::failed(const Answer& answer) const {
    Error error = answer.error;
    error.what = "the counterpart failed: " + error.what;
    if (error.on.empty()) error.on = peer_;
    return error;
}

Error Requester::busy() const {
    return Error("the counterpart measures for another:", peer_, EBUSY, "try again later");
}

tl::expected<Answer, Error> Requester::read_answer() {
    auto read = session_.run(Job::read(region_, 0, answer_, 0, answer_bytes(), 0), options_.timeout);
    if (!read) return tl::unexpected(Error("cannot read the answer of", peer_, read.error().number));
    return decode_answer(memory_.bytes());
}

// Waits for that progress or a later one.
tl::expected<Answer, Error> Requester::wait_for(uint64_t request, Progress progress,
                                                std::chrono::nanoseconds longest, int (*stopped)()) {
    const Deadline deadline(longest);

    for (bool seen = false, mine = false;;) {
        auto answer = read_answer();
        if (!answer) return answer;
        if (answer->refused == request || (mine && answer->request != request)) return tl::unexpected(busy());
        mine = answer->request == request;
        if (mine && answer->progress == Progress::failed) {
            static_cast<void>(say(Verb::taken));
            return tl::unexpected(failed(*answer));
        }
        const bool there = mine && answer->progress >= progress;
        // Only a READ begun after that has all data of the progress.
        if (there && seen) return answer;
        seen = there;
        if (seen) continue;
        if (!mine && is_at_work(*answer)) return tl::unexpected(busy());
        if (stopped && stopped()) return tl::unexpected(Error("stopped measuring", "", EINTR));
        if (deadline.passed()) return tl::unexpected(no_answer(peer_));
        std::this_thread::sleep_for(pause);
    }
}

tl::expected<PeerNode, Error> Requester::node() {
    TRY_SET(auto answer, read_answer());
    return std::move(answer.node);
}

tl::expected<ProcessUsage, Error> Requester::usage() {
    Ask ask;
    ask.request = random_request();
    TRY(send(ask));
    const Deadline deadline(options_.timeout);

    for (bool seen = false;;) {
        TRY_SET(auto answer, read_answer());
        const bool there = answer.usage_request == ask.request;
        if (there && seen) return answer.total;
        // The counterpart will answer too late; or another requester has asked meanwhile.
        if (!there && (seen || is_at_work(answer))) return tl::unexpected(busy());
        seen = there;
        if (seen) continue;
        if (deadline.passed()) return tl::unexpected(no_answer(peer_));
        std::this_thread::sleep_for(pause);
    }
}

// Where and how the peer connects back.
tl::expected<void, Error> Requester::listen() {
    TRY_SET(const auto link, link_of(session_, peer_handle_, options_));
    kxfer_addr address = link.local;
    address.port = KXFER_PORT;
    TRY_SET(listening_, listen_at(session_, address, options_.key));
    ask_.port = listening_.port;
    ask_.key = listening_.wants_key;
    if (options_.tos) ask_.tos = static_cast<uint8_t>(*options_.tos);
    return {};
}

tl::expected<std::string, Error> Requester::begin_round_trips(const Workload& workload, bool by_runs,
                                                              int (*stopped)()) {
    ask_ = Ask();
    ask_.request = random_request();
    ask_.verb = Verb::answer;
    ask_.workload = workload;
    ask_.by_runs = by_runs;
    ask_.context = options_.context;
    ask_.wait_flags = options_.wait_flags;
    TRY(listen());
    TRY(check_ask(ask_));
    TRY(send(ask_));
    answered_ = true;
    TRY(wait_for(ask_.request, Progress::done, options_.timeout, stopped));
    return round_trip_name(ask_.request);
}

std::optional<Error> Requester::why_no_answer() {
    const auto answer = read_answer();
    if (!answer || answer->request != ask_.request || answer->progress != Progress::failed)
        return std::nullopt;
    return failed(*answer);
}

// Without this the peer would notice the end a second later.
Requester::~Requester() {
    options_.timeout = std::min(options_.timeout, std::chrono::milliseconds(1000));
    if (answered_) static_cast<void>(say(Verb::end));
}

tl::expected<void, Error> Requester::lend(const Workload& workload, const RunPlan& plan) {
    ask_ = {random_request(),
            Verb::prepare,
            workload,
            plan.count,
            plan.duration,
            plan.warm_up,
            plan.rate,
            options_.context,
            options_.wait_flags,
            0,
            options_.ring,
            options_.signal_batch()};
    TRY(listen());
    TRY(check_ask(ask_));

    TRY_SET(lent_, Memory::create(workload.bytes()));
    TRY_SET(lent_region_, session_.add_region(lent_->bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(lent_export_,
            session_.add_export(lent_region_, reverse_name(ask_.request), lent_->length(), lent_rights));
    return {};
}

tl::expected<void, Error> Requester::say(Verb verb) {
    Ask word;
    word.request = ask_.request;
    word.verb = verb;
    return send(word);
}

// The limit leaves time for the peer's preparation: to connect, to verify, and to warm up.
tl::expected<void, Error> Requester::prepare(int (*stopped)()) {
    const std::chrono::nanoseconds longest =
        3 * options_.timeout +
        std::min<std::chrono::nanoseconds>(longest_operation * std::min(ask_.warm_up, most_warm_up),
                                           max_reverse_time);
    TRY(send(ask_));
    auto ready = wait_for(ask_.request, Progress::ready, longest, stopped);
    return ready ? tl::expected<void, Error>() : tl::unexpected(ready.error());
}

tl::expected<void, Error> Requester::go() { return say(Verb::go); }

tl::expected<void, Error> Requester::end(std::chrono::nanoseconds longest, int (*stopped)()) {
    TRY(wait_for(ask_.request, Progress::measured, longest, stopped));
    return say(Verb::end);
}

tl::expected<Reverse, Error> Requester::finish(std::chrono::nanoseconds longest, int (*stopped)()) {
    TRY_SET(auto answer, wait_for(ask_.request, Progress::done, longest, stopped));
    TRY(say(Verb::taken));
    return Reverse{std::move(answer.result), answer.usage};
}

} // namespace kxfer::bench
