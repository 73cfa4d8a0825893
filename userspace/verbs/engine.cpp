// SPDX-License-Identifier: MIT
#include "verbs/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

namespace kxfer::verbs {

namespace {

constexpr int empty_polls_between_clocks = 4096;
constexpr int resolve_timeout_ms = 2000;

// A READ's sink is written by the device; on iWARP by the peer, by its STag.
int local_access(bool iwarp) { return IBV_ACCESS_LOCAL_WRITE | (iwarp ? IBV_ACCESS_REMOTE_WRITE : 0); }

uint8_t least(int a, int b) { return static_cast<uint8_t>(std::clamp(std::min(a, b), 1, 255)); }

} // namespace

Engine::Engine(const EngineOptions& options, const bench::Memory& memory)
    : options_(options), memory_(memory),
      peer_(address_text(reinterpret_cast<const sockaddr*>(&options.peer))), requests_(options.batch),
      sges_(options.batch) {}

Engine::~Engine() {
    if (pair_.qp) rdma_disconnect(pair_.id.get());
}

tl::expected<std::unique_ptr<Engine>, Error> Engine::connect(const EngineOptions& options,
                                                             const bench::Memory& memory) {
    const auto deadline = Clock::now() + options.timeout;
    std::unique_ptr<Engine> engine(new Engine(options, memory));

    auto channel = open_channel();
    if (!channel) return tl::unexpected(channel.error());
    engine->channel_ = std::move(*channel);
    if (auto resolved = engine->resolve(deadline); !resolved) return tl::unexpected(resolved.error());
    const bool iwarp = engine->pair_.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    if (auto created = engine->pair_.create(memory, options.depth, local_access(iwarp), engine->peer_);
        !created)
        return tl::unexpected(created.error());
    if (auto established = engine->establish(deadline); !established)
        return tl::unexpected(established.error());
    return engine;
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

tl::expected<void, Error> Engine::establish(Clock::time_point deadline) {
    const auto advice = "start a responder there: kxfer serve SOURCE --verbs";
    const WireRequest request =
        encode(Request{options_.remote_bytes ? options_.remote_bytes : memory_.length(), options_.writable});
    rdma_conn_param parameters{};

    parameters.private_data = &request;
    parameters.private_data_len = sizeof(request);
    parameters.initiator_depth = least(pair_.attributes.max_qp_init_rd_atom, pair_.attributes.max_qp_rd_atom);
    parameters.responder_resources = 1;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = 0;
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

    if (answer && answer->error)
        return Error("the responder refuses", peer_, static_cast<int>(answer->error),
                     answer->error == EBUSY ? "it serves others; try again later"
                                            : "ask for less: a smaller --size or --depth");
    return Error("nothing answers user verbs at the peer", peer_, ECONNREFUSED,
                 "start a responder there: kxfer serve SOURCE --verbs");
}

bench::Parameters Engine::parameters(const bench::Workload& workload) const {
    bench::Parameters parameters;

    parameters.local_bytes = memory_.length();
    parameters.local_layout = bench::Memory::layout();
    parameters.remote_bytes = remote_.length;
    parameters.remote_registration = options_.writable ? bench::standing_writable : bench::standing_readable;
    parameters.max_depth = options_.depth;
    parameters.signal_every = options_.signal_batch ? workload.batch : 1;
    parameters.write_success = pair_.iwarp ? bench::write_handed_to_tcp : bench::write_acknowledged;
    parameters.device = ibv_get_device_name(pair_.id->verbs->device);
    return parameters;
}

tl::expected<unsigned, Error> Engine::step(std::span<const bench::Transfer> transfers, unsigned wait) {
    if (!transfers.empty())
        if (auto posted = post(transfers); !posted) return tl::unexpected(posted.error());
    return wait ? poll(wait) : 0;
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
        request.opcode = transfer.operation == bench::Operation::read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        request.send_flags = last || !options_.signal_batch ? IBV_SEND_SIGNALED : 0;
        request.wr.rdma.remote_addr = remote_.address + transfer.offset;
        request.wr.rdma.rkey = remote_.rkey;
    }
    if (int error = ibv_post_send(pair_.id->qp, requests_.data(), &bad))
        return tl::unexpected(
            Error("cannot post work requests", peer_, error, error == ENOMEM ? "try a smaller --depth" : ""));
    return {};
}

// The clock is read only between many empty polls, so that it does not count
// in what is measured.
tl::expected<unsigned, Error> Engine::poll(unsigned wait) {
    std::array<ibv_wc, 64> completions;
    Clock::time_point deadline{};
    unsigned reaped = 0;
    int empty = 0;

    while (reaped < wait) {
        const int count = ibv_poll_cq(pair_.cq.get(), completions.size(), completions.data());

        if (count < 0) return tl::unexpected(Error("cannot poll the CQ", peer_, last_error()));
        if (auto fine = check({completions.data(), static_cast<size_t>(count)}); !fine)
            return tl::unexpected(fine.error());
        for (int i = 0; i < count; i++) reaped += static_cast<unsigned>(completions[i].wr_id);
        empty = count ? 0 : empty + 1;
        if (empty < empty_polls_between_clocks) continue;
        empty = 0;
        const auto now = Clock::now();
        if (deadline == Clock::time_point{})
            deadline = now + options_.timeout;
        else if (now > deadline)
            return tl::unexpected(Error("no completion from the peer", peer_, ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
    }
    return reaped;
}

tl::expected<void, Error> Engine::check(std::span<const ibv_wc> completions) const {
    for (const auto& completion : completions) {
        if (completion.status == IBV_WC_SUCCESS) continue;
        const bool refused =
            completion.status == IBV_WC_REM_ACCESS_ERR || completion.status == IBV_WC_REM_INV_REQ_ERR;

        return tl::unexpected(
            Error(fmt::format("a work request failed: {}", ibv_wc_status_str(completion.status)), peer_,
                  refused ? EREMOTEIO : ECONNRESET, "did the responder end?"));
    }
    return {};
}

} // namespace kxfer::verbs
