// SPDX-License-Identifier: MIT
#include "verbs/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "verbs/responder.hpp"

namespace kxfer::verbs {

namespace {

constexpr int empty_polls_between_clocks = 4096;
constexpr int resolve_timeout_ms = 2000;
// As many as perftest posts (-r); half of them are between two looks at the status.
constexpr unsigned least_receives = 512;
// The wr_id of a READ of the status; any other's is how many operations are done.
constexpr uint64_t status_read = UINT64_MAX;

ibv_wr_opcode opcode_of(bench::Operation operation) {
    switch (operation) {
    case bench::Operation::read:
        return IBV_WR_RDMA_READ;
    case bench::Operation::write:
        return IBV_WR_RDMA_WRITE;
    case bench::Operation::write_imm:
        return IBV_WR_RDMA_WRITE_WITH_IMM;
    case bench::Operation::send:
        return IBV_WR_SEND;
    case bench::Operation::send_imm:
        return IBV_WR_SEND_WITH_IMM;
    case bench::Operation::compare_swap:
        return IBV_WR_ATOMIC_CMP_AND_SWP;
    case bench::Operation::fetch_add:
        return IBV_WR_ATOMIC_FETCH_AND_ADD;
    }
    return IBV_WR_RDMA_READ;
}

uint8_t least(int a, int b) { return static_cast<uint8_t>(std::clamp(std::min(a, b), 1, 255)); }

} // namespace

Engine::Engine(const EngineOptions& options, const bench::Memory& memory, bench::Memory status)
    : options_(options), memory_(memory),
      peer_(address_text(reinterpret_cast<const sockaddr*>(&options.peer))), status_(std::move(status)),
      requests_(options.batch), sges_(options.batch) {}

Engine::~Engine() { disconnect(); }

tl::expected<std::unique_ptr<Engine>, Error> Engine::connect(const EngineOptions& options,
                                                             const bench::Memory& memory) {
    auto status = bench::Memory::create(sizeof(WireStatus));
    if (!status) return tl::unexpected(status.error());
    std::unique_ptr<Engine> engine(new Engine(options, memory, std::move(*status)));

    auto channel = open_channel();
    if (!channel) return tl::unexpected(channel.error());
    engine->channel_ = std::move(*channel);
    if (auto connected = engine->connect(); !connected) return tl::unexpected(connected.error());
    return engine;
}

tl::expected<void, Error> Engine::connect() {
    const auto deadline = Clock::now() + options_.timeout;

    return options_.connect == Connect::tcp ? connect_by_tcp(deadline) : connect_by_cm(deadline);
}

tl::expected<void, Error> Engine::connect_by_cm(Clock::time_point deadline) {
    if (auto resolved = resolve(deadline); !resolved) return resolved;
    if (auto created = create(); !created) return created;
    return establish(deadline);
}

// The responder learns of the end of the old connection by an event of its own, and
// gives no more than it has meanwhile.
tl::expected<void, Error> Engine::reconnect() {
    const auto give_up = Clock::now() + std::chrono::seconds(1);

    for (;;) {
        disconnect();
        auto connected = connect();
        if (connected) return {};
        const int error = connected.error().number;
        if ((error != EBUSY && error != EDQUOT) || Clock::now() > give_up) return connected;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

void Engine::disconnect() {
    if (pair_.qp && !socket_) rdma_disconnect(pair_.id.get());
    socket_ = Socket();
    status_mr_.reset();
    // Its members go from the last to the first; an assignment would turn that round.
    const QueuePair old = std::move(pair_);
    reading_status_ = failed_ = armed_ = false;
    credits_ = Credits(receiving_);
    swaps_.assign(workload_.depth, 0);
}

// Waits for one event and takes any other for a failure.
tl::expected<Event, Error> Engine::expect(rdma_cm_event_type type, Clock::time_point deadline,
                                          const std::string& what, const std::string& advice) {
    auto event = next_event(channel_.get(), deadline, what, peer_);

    if (!event) return event;
    if ((*event)->event == RDMA_CM_EVENT_REJECTED) return tl::unexpected(refusal(**event));
    if ((*event)->event != type)
        return tl::unexpected(Error(fmt::format("{} ({})", what, rdma_event_str((*event)->event)), peer_,
                                    (*event)->status < 0 ? -(*event)->status : EHOSTUNREACH, advice));
    return event;
}

tl::expected<void, Error> Engine::resolve(Clock::time_point deadline) {
    const auto advice = "is the address on an RDMA device? try: kxfer device list";
    auto* local = reinterpret_cast<sockaddr*>(&options_.local);
    rdma_cm_id* id = nullptr;

    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", peer_, last_error()));
    pair_.id.reset(id);
    if (rdma_resolve_addr(id, options_.local.ss_family ? local : nullptr,
                          reinterpret_cast<sockaddr*>(&options_.peer), resolve_timeout_ms))
        return tl::unexpected(Error("cannot resolve the address", peer_, last_error(), advice));
    if (auto event =
            expect(RDMA_CM_EVENT_ADDR_RESOLVED, deadline, "no RDMA device leads to the peer", advice);
        !event)
        return tl::unexpected(event.error());
    if (rdma_resolve_route(id, resolve_timeout_ms))
        return tl::unexpected(Error("cannot resolve the route", peer_, last_error(), advice));
    if (auto event = expect(RDMA_CM_EVENT_ROUTE_RESOLVED, deadline, "no route leads to the peer", advice);
        !event)
        return tl::unexpected(event.error());
    return {};
}

// A READ of the status has room of its own.
tl::expected<void, Error> Engine::create() {
    iwarp_ = pair_.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    device_ = ibv_get_device_name(pair_.id->verbs->device);
    const Room room{options_.depth + 1, 0, options_.events, options_.connect == Connect::rdma_cm};
    if (auto created = pair_.create(memory_, room, own_access(), peer_); !created) return created;
    atomics_ = pair_.attributes.atomic_cap;
    status_mr_.reset(ibv_reg_mr(pair_.pd.get(), status_.data(), status_.length(), own_access()));
    if (!status_mr_) return tl::unexpected(Error("cannot register a page", peer_, last_error()));
    return {};
}

// A READ's sink is written by the device; on iWARP by the peer, by its STag.
int Engine::own_access() const { return IBV_ACCESS_LOCAL_WRITE | (iwarp_ ? IBV_ACCESS_REMOTE_WRITE : 0); }

Request Engine::request() const {
    return {options_.remote_bytes ? options_.remote_bytes : memory_.length(), options_.writable,
            static_cast<uint16_t>(workload_.operation), receiving_};
}

tl::expected<void, Error> Engine::establish(Clock::time_point deadline) {
    const auto advice = "start a responder there: kxfer serve SOURCE --verbs";
    const WireRequest request = encode(this->request());
    rdma_conn_param parameters{};

    parameters.private_data = &request;
    parameters.private_data_len = sizeof(request);
    parameters.initiator_depth = least(pair_.attributes.max_qp_init_rd_atom, pair_.attributes.max_qp_rd_atom);
    parameters.responder_resources = 1;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = options_.patience.rnr_retry;
    if (rdma_connect(pair_.id.get(), &parameters))
        return tl::unexpected(Error("cannot connect", peer_, last_error(), advice));
    auto event = expect(RDMA_CM_EVENT_ESTABLISHED, deadline, "cannot connect", advice);
    if (!event) return tl::unexpected(event.error());

    const auto& answered = (*event)->param.conn;
    const auto answer = decode_answer(answered.private_data, answered.private_data_len);
    if (!answer || answer->length < memory_.length())
        return tl::unexpected(Error("the peer is no responder of this version", peer_, EPROTO, advice));
    remote_ = *answer;
    return {};
}

Error Engine::refusal(const rdma_cm_event& event) const {
    const auto answer = decode_answer(event.param.conn.private_data, event.param.conn.private_data_len);

    if (answer && answer->error) return refusal(static_cast<int>(answer->error));
    return Error("nothing answers user verbs at the peer", peer_, ECONNREFUSED,
                 "start a responder there: kxfer serve SOURCE --verbs");
}

Error Engine::refusal(int error) const {
    const bool version = error == EPROTO || error == EPROTONOSUPPORT || error == EOPNOTSUPP;

    return Error("the responder refuses", peer_, error,
                 version          ? "is it of this version of kxfer?"
                 : error == EBUSY ? "it serves others; try again later"
                                  : "ask for less: a smaller --size or --depth");
}

bench::Parameters Engine::parameters(const bench::Workload& workload) const {
    bench::Parameters parameters;

    parameters.local_bytes = memory_.length();
    parameters.local_layout = bench::Memory::layout();
    parameters.remote_bytes = remote_.length;
    parameters.remote_registration = options_.writable ? bench::standing_writable : bench::standing_readable;
    parameters.max_depth = options_.depth;
    parameters.signal_every = options_.signal_batch ? workload.batch : 1;
    parameters.write_success = iwarp_ ? bench::write_handed_to_tcp : bench::write_acknowledged;
    parameters.device = device_;
    return parameters;
}

tl::expected<void, Error> Engine::supports(bench::Operation operation) const {
    const auto cannot = [&](const std::string& why) {
        return tl::unexpected(
            Error(fmt::format("engine verbs cannot do {}", bench::operation_name(operation)), "", EOPNOTSUPP,
                  {}, fmt::format("{}: {}", device_, why)));
    };

    if (bench::has_immediate(operation) && iwarp_) return cannot("iWARP has no immediate data");
    if (bench::is_atomic(operation) && atomics_ == IBV_ATOMIC_NONE)
        return cannot("the device has no atomic operations");
    if (bench::is_atomic(operation) && iwarp_) return cannot("iWARP has no atomic operations");
    return {};
}

// What needs receives, rights or zeros at the peer has a connection of its own.
tl::expected<void, Error> Engine::make_ready(const bench::Workload& workload) {
    const bool plain =
        workload.operation == bench::Operation::read || workload.operation == bench::Operation::write;

    if (auto able = supports(workload.operation); !able) return able;
    if (bench::is_atomic(workload.operation) && workload.size != bench::atomic_bytes)
        return tl::unexpected(Error(
            fmt::format("{} has {} bytes", bench::operation_name(workload.operation), bench::atomic_bytes),
            fmt::format("not {}", workload.size), EINVAL, "use --size 8"));
    const bool was_plain =
        workload_.operation == bench::Operation::read || workload_.operation == bench::Operation::write;
    workload_ = workload;
    receiving_ = {};
    if (bench::is_message(workload.operation))
        receiving_ = {std::clamp(4 * workload.depth, least_receives, VerbsResponder::max_receives),
                      workload.depth, static_cast<uint32_t>(workload.size)};
    if (plain && was_plain && !failed_ && pair_.qp) return {};
    return reconnect();
}

tl::expected<void, Error> Engine::settle() {
    const auto deadline = Clock::now() + options_.timeout;

    while (bench::is_message(workload_.operation)) {
        if (!reading_status_)
            if (auto posted = post_status_read(); !posted) return posted;
        if (auto read = poll_until([this](unsigned) { return !reading_status_; }); !read)
            return tl::unexpected(read.error());
        if (const uint64_t wrong = status().wrong)
            return tl::unexpected(
                Error(fmt::format("the responder was sent {} wrong messages of {}", wrong, status().received),
                      peer_, EBADMSG, "keep this result: it is a defect of engine or stack"));
        if (status().received == credits_.sent()) break;
        if (Clock::now() > deadline)
            return tl::unexpected(
                Error(fmt::format("only {} of {} messages were received", status().received, credits_.sent()),
                      peer_, ETIMEDOUT, "is the responder still there? try a longer --timeout"));
        std::this_thread::yield();
    }
    return {};
}

tl::expected<unsigned, Error> Engine::step(std::span<const bench::Transfer> transfers, unsigned wait) {
    const bool messages = !transfers.empty() && bench::is_message(transfers.front().operation);
    unsigned early = 0;

    failed_ = true; // unless this returns well
    if (messages) {
        const auto reaped = wait_for_credits(transfers.size());
        if (!reaped) return reaped;
        early = *reaped;
    }
    if (!transfers.empty())
        if (auto posted = post(transfers); !posted) return tl::unexpected(posted.error());
    if (messages && credits_.low() && !reading_status_)
        if (auto posted = post_status_read(); !posted) return tl::unexpected(posted.error());
    const auto reaped = poll_until([wait, early](unsigned count) { return early + count >= wait; });
    if (!reaped) return reaped;
    failed_ = false;
    return early + *reaped;
}

// The remote side of a work request; the local one is there.
void Engine::fill(const bench::Transfer& transfer, ibv_send_wr& request, ibv_sge& sge) {
    const uint64_t remote = remote_.address + transfer.offset;
    const uint64_t message = credits_.sent();

    request.opcode = opcode_of(transfer.operation);
    request.wr.rdma.remote_addr = remote;
    request.wr.rdma.rkey = remote_.rkey;
    if (transfer.operation <= bench::Operation::write) return;
    if (bench::is_atomic(transfer.operation)) {
        uint64_t& swaps = swaps_[transfer.offset / workload_.stride()];
        const bool swap = transfer.operation == bench::Operation::compare_swap;

        request.wr.atomic.remote_addr = remote;
        request.wr.atomic.rkey = remote_.rkey;
        request.wr.atomic.compare_add = swap ? swaps : 1;
        request.wr.atomic.swap = swap ? swaps + 1 : 0;
        swaps++;
        return;
    }
    credits_.spend(1);
    if (bench::has_immediate(transfer.operation)) request.imm_data = htobe32(immediate_of(message));
    if (transfer.operation != bench::Operation::write_imm)
        sge.addr =
            reinterpret_cast<uintptr_t>(memory_.data()) + message % receiving_.slots * receiving_.stride();
}

tl::expected<void, Error> Engine::post(std::span<const bench::Transfer> transfers) {
    ibv_send_wr* bad = nullptr;

    for (size_t i = 0; i < transfers.size(); i++) {
        const auto& transfer = transfers[i];
        ibv_send_wr& request = requests_[i];

        sges_[i] = {reinterpret_cast<uintptr_t>(memory_.data()) + transfer.offset,
                    static_cast<uint32_t>(transfer.length), pair_.mr->lkey};
        const bool last = i + 1 == transfers.size();

        // How many are done when it completes.
        request.wr_id = options_.signal_batch ? transfers.size() : 1;
        request.next = last ? nullptr : &requests_[i + 1];
        request.sg_list = &sges_[i];
        request.num_sge = 1;
        request.send_flags = last || !options_.signal_batch ? IBV_SEND_SIGNALED : 0;
        fill(transfer, request, sges_[i]);
    }
    if (int error = ibv_post_send(pair_.id->qp, requests_.data(), &bad))
        return tl::unexpected(post_error(transfers.front().operation, error));
    return {};
}

// Every device has READ and WRITE; what a provider says of the others is its answer.
Error Engine::post_error(bench::Operation operation, int error) const {
    if (operation > bench::Operation::write && error != ENOMEM)
        return Error(fmt::format("engine verbs cannot do {}", bench::operation_name(operation)), "",
                     EOPNOTSUPP, {},
                     fmt::format("the user-space provider of {} refuses to post it: {} ({})", device_,
                                 strerrordesc_np(error), strerrorname_np(error)));
    return Error("cannot post work requests", peer_, error, error == ENOMEM ? "try a smaller --depth" : "");
}

// Behind all that was posted, so it tells of at least what had arrived before.
tl::expected<void, Error> Engine::post_status_read() {
    ibv_sge sge{reinterpret_cast<uintptr_t>(status_.data()), sizeof(WireStatus), status_mr_->lkey};
    ibv_send_wr request{};
    ibv_send_wr* bad = nullptr;

    request.wr_id = status_read;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_READ;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = remote_.address + remote_.length;
    request.wr.rdma.rkey = remote_.rkey;
    if (int error = ibv_post_send(pair_.id->qp, &request, &bad))
        return tl::unexpected(post_error(bench::Operation::read, error));
    reading_status_ = true;
    return {};
}

Status Engine::status() const {
    WireStatus wire;

    memcpy(&wire, status_.data(), sizeof(wire));
    return decode(wire);
}

// Returns how many operations completed meanwhile.
tl::expected<unsigned, Error> Engine::wait_for_credits(uint64_t messages) {
    unsigned reaped = 0;

    if (credits_.available() >= messages) return reaped;
    const auto deadline = Clock::now() + options_.timeout;
    while (credits_.available() < messages) {
        if (!reading_status_)
            if (auto posted = post_status_read(); !posted) return tl::unexpected(posted.error());
        const auto count = poll_until([this](unsigned) { return !reading_status_; });
        if (!count) return count;
        reaped += *count;
        if (credits_.available() >= messages) break;
        if (Clock::now() > deadline)
            return tl::unexpected(Error("the responder posts no receives", peer_, ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        std::this_thread::yield();
    }
    return reaped;
}

// Until done(operations completed); returns how many. The clock is read only between
// many empty polls, so that it does not count in what is measured.
template <typename Done> tl::expected<unsigned, Error> Engine::poll_until(Done done) {
    std::array<ibv_wc, 64> completions;
    Clock::time_point deadline{};
    unsigned reaped = 0;
    int empty = 0;

    while (!done(reaped)) {
        const int count = ibv_poll_cq(pair_.cq.get(), completions.size(), completions.data());

        if (count < 0) return tl::unexpected(Error("cannot poll the CQ", peer_, last_error()));
        for (int i = 0; i < count; i++) {
            const ibv_wc& completion = completions[i];

            if (completion.status == IBV_WC_SUCCESS && completion.wr_id != status_read)
                reaped += static_cast<unsigned>(completion.wr_id);
            else if (auto fine = check(completion); !fine)
                return tl::unexpected(fine.error());
        }
        empty = count ? 0 : empty + 1;
        if (empty && options_.events) {
            if (auto slept = sleep_for_event(); !slept) return tl::unexpected(slept.error());
            continue;
        }
        if (empty < empty_polls_between_clocks) continue;
        empty = 0;
        const auto now = Clock::now();
        if (deadline == Clock::time_point{})
            deadline = now + options_.timeout;
        else if (now > deadline)
            return tl::unexpected(silence());
    }
    return reaped;
}

// Arms the CQ; once it is armed and still empty, sleeps until its event. Who has found
// something behind the arming leaves it armed, so that no more than one event is left.
tl::expected<void, Error> Engine::sleep_for_event() {
    using std::chrono::milliseconds;
    pollfd waiting{pair_.events->fd, POLLIN, 0};
    ibv_cq* cq = nullptr;
    void* context = nullptr;

    if (!armed_) {
        if (int error = ibv_req_notify_cq(pair_.cq.get(), 0))
            return tl::unexpected(Error("cannot arm the CQ", peer_, error));
        armed_ = true;
        return {};
    }
    const auto deadline = Clock::now() + options_.timeout;
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());

        if (left.count() <= 0) return tl::unexpected(silence());
        if (poll(&waiting, 1, static_cast<int>(left.count())) > 0) break;
    }
    if (ibv_get_cq_event(pair_.events.get(), &cq, &context))
        return tl::unexpected(Error("cannot wait for completions", peer_, last_error()));
    ibv_ack_cq_events(cq, 1);
    armed_ = false;
    return {};
}

Error Engine::silence() const {
    const std::string told = told_event(pair_.id->verbs);

    return Error("no completion from the peer", peer_, ETIMEDOUT,
                 told.empty() ? "is it still there? try a longer --timeout"
                              : fmt::format("see: kxfer explain '{}'", told),
                 told.empty() ? "" : fmt::format("the device has told: {}", told));
}

// Of what failed, or of a READ of the status.
tl::expected<void, Error> Engine::check(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
        const char* text = ibv_wc_status_str(completion.status);
        const bool refused =
            completion.status == IBV_WC_REM_ACCESS_ERR || completion.status == IBV_WC_REM_INV_REQ_ERR;

        return tl::unexpected(Error(fmt::format("a work request failed: {}", text), peer_,
                                    refused ? EREMOTEIO : ECONNRESET,
                                    fmt::format("did the responder end? see: kxfer explain '{}'", text)));
    }
    reading_status_ = false;
    if (!credits_.learn(status().received))
        return tl::unexpected(Error("the responder counts messages that were not sent", peer_, EPROTO));
    return {};
}

} // namespace kxfer::verbs
