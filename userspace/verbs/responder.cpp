// SPDX-License-Identifier: MIT
//
// Only the thread touches connections_. rdma_destroy_id() waits until every event of the
// id has been acknowledged. A connection request is an event of the listener, so the new id
// may be destroyed while the request is handled; any other event is one of the id itself.

#include "verbs/responder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/try.hpp"
#include "verbs/local_port.hpp"
#include "verbs/walk.hpp"

namespace kxfer::verbs {

namespace {

// Connection requests that this process has not taken from rdma_cm yet; rdma_ucm limits them
// to net.rdma_ucm.max_backlog (1024).
constexpr int backlog = 128;
// Answers in a send queue: twice the messages that an initiator has in flight, because an
// answer may still be in the queue when the successor of its message arrives.
constexpr unsigned most_answers = 512;

int access_of(const Request& request, bench::Operation operation) {
    int access = IBV_ACCESS_REMOTE_READ;

    if (request.writable) access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (bench::is_message(operation)) access |= IBV_ACCESS_LOCAL_WRITE;
    if (bench::is_fetch(operation)) access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    return access;
}

std::optional<bench::Operation> operation_of(const Request& request) {
    for (const bench::Operation operation : bench::all_operations)
        if (request.operation == static_cast<uint16_t>(operation) && operation != bench::Operation::flush)
            return operation;
    return std::nullopt;
}

// Messages need receives, which have to fit into the memory; other operations must not have any.
// Only SENDs are answered.
bool is_sound(const Request& request, bench::Operation operation) {
    const Receiving& receiving = request.receiving;

    if (request.answered && operation != bench::Operation::send) return false;
    if (!bench::is_message(operation)) return receiving.receives == 0 && receiving.slots == 0;
    return receiving.receives > 0 && receiving.receives <= VerbsResponder::max_receives &&
           receiving.slots > 0 && (receiving.bytes > 0 || operation == bench::Operation::write_imm) &&
           receiving.length() <= request.length;
}

bool has_ud(const ibv_device* device) { return device->transport_type != IBV_TRANSPORT_IWARP; }

// context null: bound to any address. rdma_get_devices() would open all devices until the
// process ends, and `rdma link del` would wait for that if the driver cannot take a device away
// from its users (rxe, siw).
bool leads_to_ud(const ibv_context* context) {
    int count = 0;

    if (context) return has_ud(context->device);
    const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> devices(ibv_get_device_list(&count),
                                                                                ibv_free_device_list);
    return devices && std::any_of(devices.get(), devices.get() + count, has_ud);
}

// By rdma_cm, RC carries everything, UD only SENDs.
bool is_carried(const Request& request, bench::Operation operation) {
    const bool send = operation == bench::Operation::send || operation == bench::Operation::send_imm;

    return request.transport == static_cast<uint16_t>(Transport::rc) ||
           (request.transport == static_cast<uint16_t>(Transport::ud) && send);
}

// The address for TCP: its port is the one after that of rdma_cm.
sockaddr_storage exchange_address(sockaddr_storage address) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
    auto* in = reinterpret_cast<sockaddr_in*>(&address);
    in_port_t& port = address.ss_family == AF_INET6 ? in6->sin6_port : in->sin_port;

    if (port) port = htons(static_cast<uint16_t>(ntohs(port) + 1));
    return address;
}

// What both ends use: the peer's wishes, within the limits of this end.
End agreed_end(const LocalPort& port, const QueuePair& pair, const Endpoint& peer) {
    const int reads = std::min({int{peer.reads}, pair.attributes.max_qp_rd_atom, 255});
    End own = end_of(pair, port);

    agree(own, std::min(port.mtu, peer.mtu),
          static_cast<uint8_t>(std::min(reads, pair.attributes.max_qp_init_rd_atom)), peer.min_rnr_timer);
    return own;
}

} // namespace

// librdmacm refuses to accept with values above the device's.
rdma_conn_param accepting(const rdma_conn_param& asked, const ibv_device_attr& device) {
    rdma_conn_param parameters{};

    parameters.responder_resources =
        static_cast<uint8_t>(std::min<int>(asked.responder_resources, device.max_qp_rd_atom));
    parameters.initiator_depth =
        static_cast<uint8_t>(std::min<int>(asked.initiator_depth, device.max_qp_init_rd_atom));
    parameters.rnr_retry_count = asked.rnr_retry_count;
    return parameters;
}

tl::expected<std::unique_ptr<VerbsResponder>, Error> VerbsResponder::start(const sockaddr_storage& address,
                                                                           Clock::duration period) {
    std::unique_ptr<VerbsResponder> responder(new VerbsResponder);
    const auto on = address_text(reinterpret_cast<const sockaddr*>(&address));

    TRY_SET(responder->channel_, open_channel());
    auto listener = listen_at(responder->channel_.get(), address, backlog);
    if (!listener)
        return tl::unexpected(Error("cannot answer user verbs", on, listener.error().number,
                                    "is the port in use? see: rdma resource show cm_id"));
    responder->listener_ = std::move(*listener);
    responder->listen_for_lookups(address);
    TRY_SET(responder->callers_, Callers::listen(exchange_address(address)));
    responder->stop_fd_ = eventfd(0, EFD_CLOEXEC);
    if (responder->stop_fd_ < 0) return tl::unexpected(Error("cannot create an eventfd", on, errno));
    responder->name_ = on;
    responder->period_ = period;
    try {
        responder->thread_ = std::thread(&VerbsResponder::run, responder.get());
    } catch (const std::system_error& error) {
        return tl::unexpected(Error("cannot start a thread for", on, error.code().value(), "see: ulimit -u"));
    }
    return responder;
}

// Without a UD device this does not listen: iWARP would take the port as one of its own.
void VerbsResponder::listen_for_lookups(sockaddr_storage address) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
    auto* in = reinterpret_cast<sockaddr_in*>(&address);
    rdma_cm_id* id = nullptr;
    int only = 1;

    if (!leads_to_ud(listener_->verbs)) return;
    (address.ss_family == AF_INET6 ? in6->sin6_port : in->sin_port) = htons(port());
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_UDP)) return;
    lookups_.reset(id);
    if (address.ss_family == AF_INET6)
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only));
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) || rdma_listen(id, backlog))
        lookups_.reset();
}

Answer VerbsResponder::answer_of(const Connection& connection) {
    return {0, connection.pair.mr->rkey, reinterpret_cast<uintptr_t>(connection.memory.data()),
            connection.length};
}

VerbsResponder::~VerbsResponder() {
    const uint64_t one = 1;

    if (thread_.joinable()) {
        // An eventfd that was never written takes one.
        [[maybe_unused]] ssize_t written = write(stop_fd_, &one, sizeof(one));
        thread_.join();
    }
    if (stop_fd_ >= 0) close(stop_fd_);
}

uint16_t VerbsResponder::port() const { return ntohs(rdma_get_src_port(listener_.get())); }

void VerbsResponder::run() {
    while (wait()) continue;
    connections_.clear();
}

// One round, see responder.hpp.
bool VerbsResponder::wait() {
    std::vector<pollfd> waiting{{channel_->fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}};

    for (const auto& connection : connections_)
        waiting.push_back({connection->socket.fd(), POLLIN, 0}); // -1 is passed over
    const size_t nr_before_callers = waiting.size();
    callers_.add_to(waiting);
    if (poll(waiting.data(), waiting.size(), callers_.has_next() ? 0 : 1000) < 0) {
        if (errno != EINTR) error_ = errno;
        return errno == EINTR;
    }
    if (waiting[1].revents) return false;
    const std::span polled(waiting);
    drop_ended(polled.subspan(2, nr_before_callers - 2));
    drop_silent();
    callers_.handle(polled.subspan(nr_before_callers));
    if (waiting[0].revents && !take_event()) return false;
    if (auto caller = callers_.next()) answer(std::move(*caller));
    return true;
}

bool VerbsResponder::take_event() {
    rdma_cm_event* event = nullptr;

    if (rdma_get_cm_event(channel_.get(), &event) == 0)
        handle(Event(event));
    else if (errno != EAGAIN && errno != EINTR)
        error_ = errno;
    return error_ == 0;
}

void VerbsResponder::handle(Event event) {
    rdma_cm_id* id = event->id;

    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (event->listen_id == lookups_.get())
            tell(id, *event);
        else
            accept(id, *event);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        event.reset();
        // A listener on one address is bound to its device, and ends for good when that has gone.
        if (id == listener_.get() || id == lookups_.get()) error_ = ENODEV;
        drop(id);
        break;
    default:
        break;
    }
}

uint64_t VerbsResponder::bytes_given() const {
    uint64_t bytes = 0;

    for (const auto& connection : connections_) bytes += connection->length;
    return bytes;
}

tl::expected<std::unique_ptr<VerbsResponder::Connection>, Error>
VerbsResponder::prepare(rdma_cm_id* id, const Request& request, bool by_cm, Transport transport) {
    const auto on = address_text(rdma_get_peer_addr(id));
    const auto operation = operation_of(request);

    if (request.answered && transport != Transport::rc)
        return tl::unexpected(Error("only reliable connections answer", on, EOPNOTSUPP));
    if (!operation) return tl::unexpected(Error("no operation is known by that number", on, EOPNOTSUPP));
    if (by_cm && !is_carried(request, *operation))
        return tl::unexpected(Error("nothing carries that", on, EOPNOTSUPP));
    if (!is_sound(request, *operation))
        return tl::unexpected(Error("receives that make no sense", on, EINVAL));
    if (connections_.size() >= max_connections)
        return tl::unexpected(Error("too many connections", on, EBUSY));
    if (request.length == 0 || request.length > max_bytes - bytes_given())
        return tl::unexpected(Error("too much memory asked for", on, EDQUOT));
    const bool receives = request.receiving.receives > 0;
    const uint64_t length = (request.length + bench::page_bytes - 1) / bench::page_bytes * bench::page_bytes;
    TRY_SET(auto memory,
            bench::Memory::create(
                length + (receives ? Receiver::room_behind(request.receiving, request.answered) : 0)));
    auto connection = std::make_unique<Connection>(std::move(memory));
    auto& pair = connection->pair;
    connection->length = length;
    pair.id.reset(id);
    const unsigned answers =
        request.answered ? std::clamp(2 * request.receiving.receives, 128U, most_answers) : 0;
    const Room room{answers + Probe::sends, request.receiving.receives, receives, by_cm, transport, false,
                    request.answered};
    if (auto created = pair.create(connection->memory, room, access_of(request, *operation), on); !created) {
        static_cast<void>(pair.id.release()); // the caller needs it to refuse
        return tl::unexpected(created.error());
    }
    if (*operation == bench::Operation::atomic_write && !pair.has(atomic_write_bit)) {
        pair.qp.reset(); // destroys the QP of the id, not the id
        static_cast<void>(pair.id.release());
        return tl::unexpected(Error("the device has no ATOMIC_WRITE", on, EOPNOTSUPP));
    }
    if (request.answered && !(pair.attributes.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS)) {
        pair.qp.reset(); // destroys the QP of the id, not the id
        static_cast<void>(pair.id.release());
        return tl::unexpected(Error("the device does not invalidate at the peer", on, EOPNOTSUPP));
    }
    return connection;
}

// If posting receives fails later, `failed` ends the connection; so the peer learns of it.
tl::expected<void, Error> VerbsResponder::receive(Connection& connection, const Request& request,
                                                  std::function<void()> failed) {
    if (request.receiving.receives == 0) return {};
    connection.receiver =
        std::make_unique<Receiver>(connection.pair, connection.memory, connection.probe, connection.length,
                                   *operation_of(request), request.receiving, request.answered);
    return connection.receiver->start(std::move(failed));
}

void VerbsResponder::accept(rdma_cm_id* id, const rdma_cm_event& event) {
    const auto& asked = event.param.conn;
    const auto request = decode_request(asked.private_data, asked.private_data_len);

    if (!request) {
        const auto version = version_of(asked.private_data, asked.private_data_len);
        return version ? refuse(id, EPROTONOSUPPORT, *version) : refuse(id, EPROTO);
    }
    auto connection = prepare(id, *request, true, static_cast<Transport>(request->transport));
    if (!connection) return refuse(id, connection.error().number);
    auto& pair = (*connection)->pair;
    if (auto ready = receive(**connection, *request, [id] { rdma_disconnect(id); }); !ready) {
        static_cast<void>(pair.id.release());
        connection->reset(); // destroys the QP of the id too
        return refuse(id, ready.error().number);
    }
    const WireAnswer answer = encode(answer_of(**connection));
    rdma_conn_param parameters = accepting(asked, pair.attributes);
    parameters.private_data = &answer;
    parameters.private_data_len = sizeof(answer);
    // Refuse whether the peer has gone or this end failed: a peer that is still there learns of it.
    if (rdma_accept(id, &parameters)) {
        const int error = last_error();
        static_cast<void>(pair.id.release());
        connection->reset();
        return refuse(id, error);
    }
    connections_.push_back(std::move(*connection));
}

// The id is not needed after the reply. If the reply is lost, the peer repeats its request, which
// is a new one here.
void VerbsResponder::tell(rdma_cm_id* id, const rdma_cm_event& event) {
    const auto& asked = event.param.ud;
    const auto lookup = decode_lookup(asked.private_data, asked.private_data_len);
    rdma_conn_param parameters{};

    if (!lookup) return refuse(id, EPROTO);
    const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& connection) {
        const auto& pair = connection->pair;

        return pair.datagrams && pair.mr->rkey == lookup->rkey && pair.id->verbs == id->verbs;
    });
    if (found == connections_.end()) return refuse(id, ENOENT);
    parameters.qp_num = (*found)->pair.datagrams->qp_num;
    // If this fails, the peer asks again.
    rdma_accept(id, &parameters);
    rdma_destroy_id(id);
}

void VerbsResponder::refuse(rdma_cm_id* id, int error, uint16_t version) {
    const WireAnswer answer = encode(Answer{static_cast<uint32_t>(error), 0, 0, 0}, version);

    rdma_reject(id, &answer, sizeof(answer));
    rdma_destroy_id(id);
}

// The QP is ready to receive before the reply with its number is sent.
tl::expected<WireReply, Error> VerbsResponder::connect(Callers::Caller& caller) {
    const auto request = decode_request(&caller.call.request, sizeof(caller.call.request));
    const auto peer = end_of(caller.call);
    rdma_cm_id* id = nullptr;

    if (!request || !peer) return tl::unexpected(Error("a call that makes no sense", "TCP", EPROTO));
    TRY_SET(const auto address, caller.socket.own_address());
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", "TCP", last_error()));
    std::unique_ptr<rdma_cm_id, DestroyId> owner(id);
    TRY(bind_device(id, address));
    const Gid like{0, peer->endpoint.gid_type, peer->endpoint.gid, 0};
    TRY_SET(auto port, find_local_port(id, address, std::nullopt, like));
    port.tos = peer->endpoint.tos;
    auto connection = prepare(owner.release(), *request, false, peer->endpoint.transport);
    if (!connection) {
        rdma_destroy_id(id);
        return tl::unexpected(connection.error());
    }
    auto& pair = (*connection)->pair;
    auto& socket = (*connection)->socket;
    const End own = agreed_end(port, pair, peer->endpoint);
    EndWalk walk(pair, port, "TCP");
    TRY(walk.init(access_of(*request, *operation_of(*request)), own));
    socket = std::move(caller.socket);
    // The QP drops what arrives from then on; drop_ended() sees the end of the socket.
    const auto end = [qp = id->qp, fd = socket.fd()] {
        ibv_qp_attr error{};

        error.qp_state = IBV_QPS_ERR;
        ibv_modify_qp(qp, &error, IBV_QP_STATE);
        shutdown(fd, SHUT_RDWR);
    };
    auto ready = receive(**connection, *request, end);
    if (ready) ready = walk.connect(own, *peer, {});
    if (!ready) {
        caller.socket = std::move(socket);
        return tl::unexpected(ready.error());
    }
    WireReply reply{encode(answer_of(**connection)), encode(own.endpoint), {}};
    if (own.beside) reply.beside = encode(*own.beside);
    connections_.push_back(std::move(*connection));
    return reply;
}

void VerbsResponder::answer(Callers::Caller caller) {
    const auto soon = Clock::now() + std::chrono::seconds(1);
    const auto reply = connect(caller);

    if (reply) {
        const auto& socket = connections_.back()->socket;
        if (!socket.send(bytes_of(*reply), soon, "TCP")) connections_.pop_back();
        return;
    }
    const auto version = version_of(&caller.call.request, sizeof(caller.call.request));
    const bool other = version && *version != wire_version;
    const WireReply refusal{
        encode(Answer{static_cast<uint32_t>(other ? EPROTONOSUPPORT : reply.error().number), 0, 0, 0},
               version.value_or(wire_version)),
        {},
        {}};
    // A caller that does not take the refusal has gone.
    static_cast<void>(caller.socket.send(bytes_of(refusal), soon, "TCP"));
}

// Drops connections whose socket was closed by the peer, or has data, which it must not.
void VerbsResponder::drop_ended(std::span<const pollfd> polled) {
    size_t i = 0;

    std::erase_if(connections_, [&](const auto&) { return polled[i++].revents != 0; });
}

// Drops connections by rdma_cm whose peer no longer answers. A Receiver polls its own CQ.
void VerbsResponder::drop_silent() {
    std::erase_if(connections_, [this](const auto& connection) {
        ibv_wc completion{};

        if (connection->socket || !connection->probe.due(period_)) return false;
        if (!connection->receiver && ibv_poll_cq(connection->pair.cq.get(), 1, &completion) > 0)
            connection->probe.take(completion);
        return !connection->probe.post(connection->pair.id->qp);
    });
}

void VerbsResponder::drop(rdma_cm_id* id) {
    std::erase_if(connections_, [id](const auto& connection) { return connection->pair.id.get() == id; });
}

} // namespace kxfer::verbs
