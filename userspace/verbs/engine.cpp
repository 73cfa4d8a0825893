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

#include "base/try.hpp"
#include "verbs/device.hpp"
#include "verbs/responder.hpp"

namespace kxfer::verbs {

namespace {

constexpr int empty_polls_between_clocks = 4096;
constexpr int resolve_timeout_ms = 2000;
// As many as perftest posts (-r); the status is READ once for half of them.
constexpr unsigned least_receives = 512;
// The wr_id of a READ of the status; any other wr_id is the number of operations done.
constexpr uint64_t status_read = UINT64_MAX;
// UC and UD: if the responder counts nothing for so long, the missing messages are lost.
constexpr auto grace = std::chrono::milliseconds(200);
// Receives for the WRITE with immediate that follows WRITEs over UC, and how often it is tried.
constexpr unsigned write_receives = 16;
constexpr int write_tries = 8;
// Inline bytes, as many as a data lane of the module asks for (KXFER_LANE_INLINE).
constexpr unsigned wanted_inline = 64;

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
    case bench::Operation::atomic_write: // see post_atomic_writes()
        return IBV_WR_ATOMIC_WRITE;
    case bench::Operation::flush: // never posted
        break;
    }
    return IBV_WR_RDMA_READ;
}

bool is_plain(bench::Operation operation) {
    return operation == bench::Operation::read || operation == bench::Operation::write;
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
    TRY_SET(auto status, bench::Memory::create(sizeof(WireStatus)));
    std::unique_ptr<Engine> engine(new Engine(options, memory, std::move(status)));

    TRY_SET(engine->channel_, open_channel());
    TRY(engine->connect());
    return engine;
}

tl::expected<void, Error> Engine::connect() {
    const auto deadline = Clock::now() + options_.timeout;

    auto connected = options_.connect == Connect::tcp ? connect_by_tcp(deadline) : connect_by_cm(deadline);
    if (connected) path_ = find_connection();
    return connected;
}

// The path of the RC or UC QP, or with UD of the control QP. The GID type is that of the path's
// entry of the GID table. What the provider does not report stays unknown.
bench::Connection Engine::find_connection() const {
    ibv_qp* qp = options_.transport == Transport::ud ? pair_.control.get() : pair_.id->qp;
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};

    bench::Connection connection;

    if (iwarp_ || ibv_query_qp(qp, &attributes, IBV_QP_AV | IBV_QP_PATH_MTU, &init)) return connection;
    if (attributes.path_mtu >= IBV_MTU_256 && attributes.path_mtu <= IBV_MTU_4096)
        connection.path_mtu = 128U << attributes.path_mtu;
    if (!attributes.ah_attr.is_global) return connection;
    connection.tos = attributes.ah_attr.grh.traffic_class;
    const auto device = query_device(device_);
    if (!device) return connection;
    for (const auto& port : device->ports)
        for (const auto& gid : port.gids)
            if (port.index == pair_.id->port_num && gid.index == attributes.ah_attr.grh.sgid_index)
                connection.gid_type = gid_type_name(gid.type);
    return connection;
}

tl::expected<void, Error> Engine::connect_by_cm(Clock::time_point deadline) {
    for (int tries = 1;; tries++) {
        auto connected = connect_once(deadline);
        if (connected || connected.error().number != EADDRINUSE || tries == most_ports) return connected;
        disconnect();
    }
}

tl::expected<void, Error> Engine::connect_once(Clock::time_point deadline) {
    TRY(resolve(deadline));
    TRY(create());
    return establish(deadline);
}

// Tries for a second: until the responder has handled the old connection's end, that counts
// against its limits (EBUSY, EDQUOT).
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
    device_memory_.reset();
    // Destroys its members from the last to the first; an assignment would reverse that.
    const QueuePair old = std::move(pair_);
    reading_status_ = failed_ = armed_ = unsettled_ = false;
    credits_ = Credits(receiving_, options_.transport == Transport::ud);
    swaps_.assign(workload_.depth, 0);
}

// Waits for an event of the type; any other event is a failure.
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
    if (uint8_t tos = options_.tos.value_or(0);
        options_.tos && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
        return tl::unexpected(Error("cannot set the type of service of the connection to", peer_,
                                    last_error(), "leave out --tos"));
    if (rdma_resolve_addr(id, options_.local.ss_family ? local : nullptr,
                          reinterpret_cast<sockaddr*>(&options_.peer), resolve_timeout_ms))
        return tl::unexpected(Error("cannot resolve the address", peer_, last_error(), advice));
    if (auto event =
            expect(RDMA_CM_EVENT_ADDR_RESOLVED, deadline, "no RDMA device leads to the peer", advice);
        !event)
        return tl::unexpected(event.error());
    if (rdma_resolve_route(id, resolve_timeout_ms))
        return tl::unexpected(Error("cannot resolve the route", peer_, last_error(), advice));
    TRY(expect(RDMA_CM_EVENT_ROUTE_RESOLVED, deadline, "no route leads to the peer", advice));
    return {};
}

// One send more than the depth: room for a READ of the status.
tl::expected<void, Error> Engine::create() {
    iwarp_ = pair_.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    device_ = ibv_get_device_name(pair_.id->verbs->device);
    const bool extended = workload_.operation == bench::Operation::atomic_write;
    const Room room{options_.depth + 1,
                    0,
                    options_.events,
                    options_.connect == Connect::rdma_cm,
                    options_.transport,
                    options_.timestamps,
                    false,
                    extended,
                    options_.inline_writes && !extended ? wanted_inline : 0};
    TRY(pair_.create(memory_, room, own_access(), peer_));
    atomics_ = pair_.attributes.atomic_cap;
    atomic_writes_ = pair_.has(atomic_write_bit);
    flushes_ = pair_.has(flush_bits);
    status_mr_.reset(ibv_reg_mr(pair_.pd.get(), status_.data(), status_.length(), own_access()));
    if (!status_mr_) return tl::unexpected(Error("cannot register a page", peer_, last_error()));
    return create_extras();
}

// Creates what only some providers have.
tl::expected<void, Error> Engine::create_extras() {
    ibv_device_attr_ex attributes{};

    if (options_.device_memory) {
        TRY_SET(device_memory_, DeviceMemory::create(pair_.pd.get(), memory_, own_access(), peer_));
    }
    if (!options_.timestamps) return {};
    if (int error = ibv_query_device_ex(pair_.id->verbs, nullptr, &attributes))
        return tl::unexpected(Error("cannot ask for the device's clock", peer_, error));
    if (!attributes.hca_core_clock || !attributes.completion_timestamp_mask)
        return tl::unexpected(Error(
            "no completion has a timestamp on", device_, EOPNOTSUPP, "leave out --timestamps",
            fmt::format("ibv_query_device_ex() has completion_timestamp_mask {:#x} and hca_core_clock {}, "
                        "whatever ibv_create_cq_ex() takes",
                        attributes.completion_timestamp_mask, attributes.hca_core_clock)));
    clock_ = DeviceClock(attributes.hca_core_clock, attributes.completion_timestamp_mask);
    return {};
}

tl::expected<void, Error> Engine::load() {
    return device_memory_ ? device_memory_->load() : tl::expected<void, Error>();
}

tl::expected<void, Error> Engine::store() {
    return device_memory_ ? device_memory_->store() : tl::expected<void, Error>();
}

std::optional<bench::Histogram> Engine::take_device_gaps() {
    return options_.timestamps ? std::optional(clock_.take()) : std::nullopt;
}

// Device memory begins at zero.
uint64_t Engine::local(uint64_t offset) const {
    return (device_memory_ ? 0 : reinterpret_cast<uintptr_t>(memory_.data())) + offset;
}

// A READ's sink is written by the device; on iWARP by the peer, by its STag.
int Engine::own_access() const { return IBV_ACCESS_LOCAL_WRITE | (iwarp_ ? IBV_ACCESS_REMOTE_WRITE : 0); }

Request Engine::request() const {
    // The operation that takes the receives asked for.
    const auto operation = receiving_.receives && !bench::is_message(workload_.operation)
                               ? bench::Operation::write_imm
                               : workload_.operation;

    return {options_.remote_bytes ? options_.remote_bytes : memory_.length(), options_.writable,
            static_cast<uint16_t>(operation), receiving_};
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
    TRY_SET(auto event, expect(RDMA_CM_EVENT_ESTABLISHED, deadline, "cannot connect", advice));

    const auto& answered = event->param.conn;
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
                 version          ? "is it of this version of kxfer, and has its device the operation?"
                 : error == EBUSY ? "it serves others; try again later"
                 : error == ENOMEM
                     ? "let it lock more memory, against which its exports count, too: ulimit -l unlimited "
                       "there; or ask for less: a smaller --size or --depth"
                     : "ask for less: a smaller --size or --depth");
}

std::optional<bench::Registration> Engine::registration() const {
    return bench::Registration{memory_.length(), static_cast<double>(pair_.registering.count()), {}};
}

bench::Parameters Engine::parameters(const bench::Workload& workload) const {
    bench::Parameters parameters;

    parameters.local_bytes = memory_.length();
    parameters.local_layout = device_memory_ ? "on the device" : bench::Memory::layout();
    if (workload.operation == bench::Operation::atomic_write ||
        (workload.is_inline(pair_.max_inline) && !device_memory_))
        parameters.local_registration = bench::local_in_request;
    parameters.remote_bytes = remote_.length;
    parameters.remote_registration = options_.writable ? bench::standing_writable : bench::standing_readable;
    parameters.max_depth = options_.depth;
    parameters.signal_every = options_.signal_batch ? workload.batch : 1;
    parameters.write_success = iwarp_          ? bench::write_handed_to_tcp
                               : is_reliable() ? bench::write_acknowledged
                                               : bench::write_sent;
    parameters.message_success = parameters.write_success;
    parameters.device = device_;
    parameters.connection = path_;
    return parameters;
}

Error Engine::cannot(bench::Operation operation, const std::string& why) const {
    return Error(fmt::format("engine verbs cannot do {}", bench::operation_name(operation)), "", EOPNOTSUPP,
                 {}, fmt::format("{}: {}", device_, why));
}

tl::expected<void, Error> Engine::supports(bench::Operation operation) const {
    if (bench::has_immediate(operation) && iwarp_)
        return tl::unexpected(cannot(operation, "iWARP has no immediate data"));
    if (bench::is_fetch(operation) && atomics_ == IBV_ATOMIC_NONE)
        return tl::unexpected(cannot(operation, "the device has no atomic operations"));
    if (bench::is_fetch(operation) && iwarp_)
        return tl::unexpected(cannot(operation, "iWARP has no atomic operations"));
    if (operation == bench::Operation::atomic_write && !atomic_writes_)
        return tl::unexpected(
            cannot(operation, "the device has no ATOMIC_WRITE, as device_cap_flags_ex says"));
    if (operation == bench::Operation::flush)
        return tl::unexpected(cannot(
            operation,
            flushes_ ? "the device has FLUSH; ibv_wr_flush() came with rdma-core 45, kxfer is written for 44"
                     : "the device has no FLUSH, as device_cap_flags_ex says"));
    return {};
}

// Whether the transport's own QP can do the workload; the control QP can do more.
tl::expected<void, Error> Engine::carries(const bench::Workload& workload) const {
    const auto operation = workload.operation;
    const bool message = bench::is_message(operation);

    if (workload.is_mix() && !is_reliable())
        return tl::unexpected(cannot(operation, "a mix is done on reliable connections alone"));
    switch (options_.transport) {
    case Transport::rc:
        break;
    case Transport::uc:
        if (!message && operation != bench::Operation::write)
            return tl::unexpected(
                cannot(operation, "UC has neither READ nor atomics, for nothing comes back"));
        break;
    case Transport::ud:
        if (!message || operation == bench::Operation::write_imm)
            return tl::unexpected(cannot(operation, "UD has SEND and SEND with immediate alone"));
        if (workload.size > mtu_bytes_)
            return tl::unexpected(cannot(
                operation, fmt::format("a message of UD is one packet: {} bytes at most, the path MTU; "
                                       "not {}",
                                       mtu_bytes_, workload.size)));
        break;
    }
    return {};
}

Receiving Engine::receiving_for(const bench::Workload& workload) const {
    const auto bytes = static_cast<uint32_t>(workload.size);

    if (bench::is_message(workload.operation))
        return {std::clamp(4 * workload.depth, least_receives, VerbsResponder::max_receives), workload.depth,
                bytes};
    if (options_.transport == Transport::uc && workload.operation == bench::Operation::write)
        return {write_receives, 1, 0};
    return {};
}

// An operation that needs receives, rights or zeroed memory at the peer gets a new connection.
tl::expected<void, Error> Engine::make_ready(const bench::Workload& workload) {
    TRY(supports(workload.operation));
    TRY(carries(workload));
    if (bench::is_atomic(workload.operation) && workload.size != bench::atomic_bytes)
        return tl::unexpected(Error(
            fmt::format("{} has {} bytes", bench::operation_name(workload.operation), bench::atomic_bytes),
            fmt::format("not {}", workload.size), EINVAL, "use --size 8"));
    const bool was_plain = is_plain(workload_.operation);
    workload_ = workload;
    receiving_ = receiving_for(workload);
    if (is_plain(workload.operation) && was_plain && !failed_ && pair_.qp && is_reliable()) return {};
    return reconnect();
}

tl::expected<void, Error> Engine::settle() {
    tl::expected<void, Error> settled;

    if (bench::is_message(workload_.operation)) settled = settle_messages();
    if (unsettled_ && workload_.operation == bench::Operation::write) settled = settle_writes();
    unsettled_ = false;
    return settled;
}

tl::expected<void, Error> Engine::settle_messages() {
    const auto deadline = Clock::now() + options_.timeout;
    auto give_up = Clock::now() + grace;
    uint64_t received = credits_.received();

    for (;;) {
        TRY(read_status());
        if (const uint64_t wrong = status().wrong)
            return tl::unexpected(
                Error(fmt::format("the responder was sent {} wrong messages of {}", wrong, status().received),
                      peer_, EBADMSG, "keep this result: it is a defect of engine or stack"));
        if (credits_.missing() == 0) return {};
        const auto now = Clock::now();
        if (std::exchange(received, credits_.received()) != credits_.received()) give_up = now + grace;
        if (!is_reliable() && now > give_up) return {};
        if (now > deadline)
            return tl::unexpected(Error(
                fmt::format("only {} of {} messages were received", credits_.received(), credits_.sent()),
                peer_, ETIMEDOUT, "is the responder still there? try a longer --timeout"));
        std::this_thread::yield();
    }
}

// Sends a WRITE with immediate of no bytes, until one has arrived. If none does, verification
// will not find the data of the WRITEs before either.
tl::expected<void, Error> Engine::settle_writes() {
    const bench::Transfer last{bench::Operation::write_imm, 0, 0};

    for (int i = 0; i < write_tries; i++) {
        const uint64_t before = credits_.received();
        TRY(post({&last, 1}));
        TRY(poll_until([](unsigned count) { return count > 0; }));
        TRY(settle_messages());
        if (credits_.received() != before) break;
        credits_.give_up();
    }
    return {};
}

// Losses of messages, as of the last settle().
std::optional<bench::Losses> Engine::losses() const {
    if (is_reliable() || !bench::is_message(workload_.operation)) return std::nullopt;
    return bench::Losses{credits_.sent(), credits_.missing()};
}

tl::expected<unsigned, Error> Engine::step(std::span<const bench::Transfer> transfers, unsigned wait) {
    const bool messages = !transfers.empty() && bench::is_message(transfers.front().operation);
    unsigned early = 0;

    failed_ = true; // until this returns success
    // A READ goes by the control QP, and might overtake WRITEs.
    if (unsettled_ && !transfers.empty() && transfers.front().operation == bench::Operation::read)
        TRY(settle());
    if (messages) {
        TRY_SET(early, wait_for_credits(transfers.size()));
    }
    if (!transfers.empty()) TRY(post(transfers));
    if (messages && credits_.low() && !reading_status_) TRY(post_status_read());
    TRY_SET(const auto reaped, poll_until([wait, early](unsigned count) { return early + count >= wait; }));
    failed_ = false;
    return early + reaped;
}

// Fills in the remote side; the caller has filled in the local one.
void Engine::fill(const bench::Transfer& transfer, ibv_send_wr& request, ibv_sge& sge) {
    const uint64_t remote = remote_.address + transfer.offset;

    request.opcode = opcode_of(transfer.operation);
    if (options_.transport == Transport::ud && bench::is_message(transfer.operation)) {
        fill_message(transfer, request, sge);
        request.wr.ud = {pair_.ah.get(), remote_qpn_, remote_qkey_};
        return;
    }
    request.wr.rdma.remote_addr = remote;
    request.wr.rdma.rkey = remote_.rkey;
    if (transfer.operation <= bench::Operation::write) return;
    if (bench::is_fetch(transfer.operation)) {
        uint64_t& swaps = swaps_[transfer.offset / workload_.stride()];
        const bool swap = transfer.operation == bench::Operation::compare_swap;

        request.wr.atomic.remote_addr = remote;
        request.wr.atomic.rkey = remote_.rkey;
        request.wr.atomic.compare_add = swap ? swaps : 1;
        request.wr.atomic.swap = swap ? swaps + 1 : 0;
        swaps++;
        return;
    }
    fill_message(transfer, request, sge);
}

void Engine::fill_message(const bench::Transfer& transfer, ibv_send_wr& request, ibv_sge& sge) {
    const uint64_t message = credits_.sent();

    credits_.spend(1);
    if (bench::has_immediate(transfer.operation)) request.imm_data = htobe32(immediate_of(message));
    if (transfer.operation != bench::Operation::write_imm)
        sge.addr = local(message % receiving_.slots * receiving_.stride());
}

// WRITEs that only prepare data for a READ go by the control QP.
ibv_qp* Engine::qp_of(bench::Operation operation) const {
    const bool measured = bench::is_message(operation) || (operation == bench::Operation::write &&
                                                           workload_.operation == bench::Operation::write);

    return pair_.control && !measured ? pair_.control.get() : pair_.id->qp;
}

bool Engine::is_signalled(size_t index, size_t count) const {
    return index + 1 == count || !options_.signal_batch;
}

// The CPU copies inline data, so it has to be in the host's memory.
bool Engine::is_inline(const bench::Transfer& transfer) const {
    return transfer.length <= pair_.max_inline && bench::is_write(transfer.operation) && !device_memory_;
}

// The work request carries the value, the number of ATOMIC_WRITEs on its slot; no memory is read.
tl::expected<void, Error> Engine::post_atomic_writes(std::span<const bench::Transfer> transfers) {
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair_.id->qp);

    ibv_wr_start(qp);
    for (size_t i = 0; i < transfers.size(); i++) {
        const uint64_t value = ++swaps_[transfers[i].offset / workload_.stride()];

        qp->wr_id = options_.signal_batch ? transfers.size() : 1;
        qp->wr_flags = is_signalled(i, transfers.size()) ? IBV_SEND_SIGNALED : 0;
        ibv_wr_atomic_write(qp, remote_.rkey, remote_.address + transfers[i].offset, &value);
    }
    if (int error = ibv_wr_complete(qp))
        return tl::unexpected(post_error(bench::Operation::atomic_write, error));
    return {};
}

tl::expected<void, Error> Engine::post(std::span<const bench::Transfer> transfers) {
    ibv_send_wr* bad = nullptr;

    if (transfers.front().operation == bench::Operation::atomic_write) return post_atomic_writes(transfers);
    for (size_t i = 0; i < transfers.size(); i++) {
        const auto& transfer = transfers[i];
        ibv_send_wr& request = requests_[i];

        sges_[i] = {local(transfer.offset), static_cast<uint32_t>(transfer.length),
                    device_memory_ ? device_memory_->lkey() : pair_.mr->lkey};
        // Operations that are done when this one completes.
        request.wr_id = options_.signal_batch ? transfers.size() : 1;
        request.next = i + 1 < transfers.size() ? &requests_[i + 1] : nullptr;
        request.sg_list = &sges_[i];
        request.num_sge = transfer.length ? 1 : 0;
        request.send_flags = is_signalled(i, transfers.size()) ? IBV_SEND_SIGNALED : 0;
        if (is_inline(transfer)) request.send_flags |= IBV_SEND_INLINE;
        fill(transfer, request, sges_[i]);
    }
    ibv_qp* qp = qp_of(transfers.front().operation);
    unsettled_ = unsettled_ || (!is_reliable() && qp == pair_.id->qp);
    if (int error = ibv_post_send(qp, requests_.data(), &bad))
        return tl::unexpected(post_error(transfers.front().operation, error));
    return {};
}

// Every device has READ and WRITE. A provider that refuses another operation does not support it.
Error Engine::post_error(bench::Operation operation, int error) const {
    if (operation > bench::Operation::write && error != ENOMEM)
        return Error(fmt::format("engine verbs cannot do {}", bench::operation_name(operation)), "",
                     EOPNOTSUPP, {},
                     fmt::format("the user-space provider of {} refuses to post it: {} ({})", device_,
                                 strerrordesc_np(error), strerrorname_np(error)));
    return Error("cannot post work requests", peer_, error, error == ENOMEM ? "try a smaller --depth" : "");
}

// Posted after all other work requests, so the status counts at least what had arrived before.
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
    if (int error = ibv_post_send(qp_of(bench::Operation::read), &request, &bad))
        return tl::unexpected(post_error(bench::Operation::read, error));
    reading_status_ = true;
    return {};
}

Status Engine::status() const {
    WireStatus wire;

    memcpy(&wire, status_.data(), sizeof(wire));
    return decode(wire);
}

// Called with no operations in flight.
tl::expected<void, Error> Engine::read_status() {
    if (!reading_status_) TRY(post_status_read());
    TRY(poll_until([this](unsigned) { return !reading_status_; }));
    return {};
}

// Returns how many operations completed meanwhile.
tl::expected<unsigned, Error> Engine::wait_for_credits(uint64_t messages) {
    unsigned reaped = 0;

    if (credits_.available() >= messages) return reaped;
    const auto deadline = Clock::now() + options_.timeout;
    auto give_up = Clock::now() + grace;
    while (credits_.available() < messages) {
        const uint64_t received = credits_.received();
        if (!reading_status_) TRY(post_status_read());
        TRY_SET(const auto count, poll_until([this](unsigned) { return !reading_status_; }));
        reaped += count;
        if (credits_.available() >= messages) break;
        const auto now = Clock::now();
        if (credits_.received() != received) give_up = now + grace;
        if (!is_reliable() && now > give_up) credits_.give_up();
        if (now > deadline)
            return tl::unexpected(Error("the responder posts no receives", peer_, ETIMEDOUT,
                                        "is it still there? try a longer --timeout"));
        std::this_thread::yield();
    }
    return reaped;
}

// As ibv_poll_cq(); with a CQ with timestamps only wr_id and status are filled in.
int Engine::poll_cq(std::span<ibv_wc> completions) {
    if (!pair_.timed)
        return ibv_poll_cq(pair_.cq.get(), static_cast<int>(completions.size()), completions.data());
    ibv_poll_cq_attr attributes{};
    int error = ibv_start_poll(pair_.timed, &attributes);
    size_t count = 0;

    if (error == ENOENT) return 0;
    if (error) {
        errno = error;
        return -1;
    }
    while (!error) {
        completions[count].wr_id = pair_.timed->wr_id;
        completions[count].status = pair_.timed->status;
        if (completions[count].wr_id != status_read) clock_.add(ibv_wc_read_completion_ts(pair_.timed));
        error = ++count < completions.size() ? ibv_next_poll(pair_.timed) : ENOENT;
    }
    ibv_end_poll(pair_.timed);
    if (error == ENOENT) return static_cast<int>(count);
    errno = error;
    return -1;
}

// Polls until done(operations completed) is true; returns how many completed. The clock is
// read only after many empty polls, so that its cost stays out of the measurement.
template <typename Done> tl::expected<unsigned, Error> Engine::poll_until(Done done) {
    std::array<ibv_wc, 64> completions;
    Clock::time_point deadline{};
    unsigned reaped = 0;
    int empty = 0;

    while (!done(reaped)) {
        const int count = poll_cq(completions);

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
            TRY(sleep_for_event());
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

// The first call arms the CQ; the next, with the CQ still empty, sleeps until its event. If a
// completion is found after arming, the CQ stays armed, so at most one event is outstanding.
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

// completion: of a failed work request, or of a READ of the status.
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
