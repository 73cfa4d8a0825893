// SPDX-License-Identifier: MIT
//
// Only the thread touches connections_. rdma_destroy_id waits until every event
// of the id has been acknowledged; a connection request is an event of the
// listener, so that the new id may be destroyed while it is handled, any other
// is one of the id itself.

#include "verbs/responder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kxfer::verbs {

namespace {

constexpr int backlog = 8;

int access_of(const Request& request, bench::Operation operation) {
    int access = IBV_ACCESS_REMOTE_READ;

    if (request.writable) access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (bench::is_message(operation)) access |= IBV_ACCESS_LOCAL_WRITE;
    if (bench::is_atomic(operation)) access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    return access;
}

std::optional<bench::Operation> operation_of(const Request& request) {
    for (const bench::Operation operation : bench::all_operations)
        if (request.operation == static_cast<uint16_t>(operation)) return operation;
    return std::nullopt;
}

// Receives that fit into the memory, for who sends messages and nobody else.
bool is_sound(const Receiving& receiving, bench::Operation operation, uint64_t length) {
    if (!bench::is_message(operation)) return receiving.receives == 0 && receiving.slots == 0;
    return receiving.receives > 0 && receiving.receives <= VerbsResponder::max_receives &&
           receiving.slots > 0 && receiving.bytes > 0 && receiving.length() <= length;
}

} // namespace

tl::expected<std::unique_ptr<VerbsResponder>, Error> VerbsResponder::start(const sockaddr_storage& address) {
    std::unique_ptr<VerbsResponder> responder(new VerbsResponder);
    sockaddr_storage bound = address;
    const auto on = address_text(reinterpret_cast<const sockaddr*>(&address));
    rdma_cm_id* id = nullptr;

    auto channel = open_channel();
    if (!channel) return tl::unexpected(channel.error());
    responder->channel_ = std::move(*channel);
    if (rdma_create_id(responder->channel_.get(), &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", on, last_error()));
    responder->listener_.reset(id);
    // A wildcard of IPv6 would take IPv4's port too.
    int only = 1;
    if (address.ss_family == AF_INET6)
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only));
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&bound)))
        return tl::unexpected(Error("cannot answer user verbs", on, last_error(),
                                    "is the port in use? see: rdma resource show cm_id"));
    if (rdma_listen(id, backlog)) return tl::unexpected(Error("cannot answer user verbs", on, last_error()));
    responder->stop_fd_ = eventfd(0, EFD_CLOEXEC);
    if (responder->stop_fd_ < 0) return tl::unexpected(Error("cannot create an eventfd", on, errno));
    responder->thread_ = std::thread(&VerbsResponder::run, responder.get());
    return responder;
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

std::string VerbsResponder::failure() const {
    const int error = error_;

    return error ? fmt::format("cannot wait for rdma_cm events: {}", strerror(error)) : "";
}

void VerbsResponder::run() {
    while (wait()) continue;
    connections_.clear();
}

bool VerbsResponder::wait() {
    std::array<pollfd, 2> waiting{{{channel_->fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    rdma_cm_event* event = nullptr;

    if (poll(waiting.data(), waiting.size(), 1000) < 0) {
        if (errno != EINTR) error_ = errno;
        return errno == EINTR;
    }
    if (waiting[1].revents) return false;
    if (!waiting[0].revents) return true;
    if (rdma_get_cm_event(channel_.get(), &event) == 0) {
        handle(Event(event));
    } else if (errno != EAGAIN && errno != EINTR) {
        error_ = errno;
        return false;
    }
    return true;
}

void VerbsResponder::handle(Event event) {
    rdma_cm_id* id = event->id;

    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        accept(id, *event);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        event.reset();
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
VerbsResponder::prepare(rdma_cm_id* id, const Request& request) {
    const auto on = address_text(rdma_get_peer_addr(id));
    const auto operation = operation_of(request);

    if (!operation) return tl::unexpected(Error("no operation is known by that number", on, EOPNOTSUPP));
    if (!is_sound(request.receiving, *operation, request.length))
        return tl::unexpected(Error("receives that make no sense", on, EINVAL));
    if (connections_.size() >= max_connections)
        return tl::unexpected(Error("too many connections", on, EBUSY));
    if (request.length == 0 || request.length > max_bytes - bytes_given())
        return tl::unexpected(Error("too much memory asked for", on, EDQUOT));
    const bool receives = request.receiving.receives > 0;
    const uint64_t length = (request.length + bench::page_bytes - 1) / bench::page_bytes * bench::page_bytes;
    auto memory = bench::Memory::create(length + (receives ? bench::page_bytes : 0));
    if (!memory) return tl::unexpected(memory.error());
    auto connection = std::make_unique<Connection>(Connection{std::move(*memory), length, {}, nullptr});
    auto& pair = connection->pair;
    pair.id.reset(id);
    auto ready = pair.create(connection->memory, {1, request.receiving.receives, receives},
                             access_of(request, *operation), on);
    if (ready && receives) {
        connection->receiver =
            std::make_unique<Receiver>(pair, connection->memory, length, *operation, request.receiving);
        // Whose receives fail has its connection ended, and is told by that.
        ready = connection->receiver->start([id] { rdma_disconnect(id); });
    }
    if (!ready) {
        connection->receiver.reset();
        pair.qp.reset();                      // it is the id's
        static_cast<void>(pair.id.release()); // the caller refuses by it
        return tl::unexpected(ready.error());
    }
    return connection;
}

void VerbsResponder::accept(rdma_cm_id* id, const rdma_cm_event& event) {
    const auto& asked = event.param.conn;
    const auto request = decode_request(asked.private_data, asked.private_data_len);
    rdma_conn_param parameters{};

    if (!request) {
        const auto version = version_of(asked.private_data, asked.private_data_len);
        return version ? refuse(id, EPROTONOSUPPORT, *version) : refuse(id, EPROTO);
    }
    auto connection = prepare(id, *request);
    if (!connection) return refuse(id, connection.error().number);

    auto& pair = (*connection)->pair;
    const WireAnswer answer = encode(Answer{
        0, pair.mr->rkey, reinterpret_cast<uintptr_t>((*connection)->memory.data()), (*connection)->length});
    parameters.private_data = &answer;
    parameters.private_data_len = sizeof(answer);
    parameters.responder_resources =
        static_cast<uint8_t>(std::min<int>(asked.responder_resources, pair.attributes.max_qp_rd_atom));
    parameters.initiator_depth = asked.initiator_depth;
    parameters.rnr_retry_count = asked.rnr_retry_count;
    if (rdma_accept(id, &parameters)) return; // the peer has gone; the connection goes too
    connections_.push_back(std::move(*connection));
}

void VerbsResponder::refuse(rdma_cm_id* id, int error, uint16_t version) {
    const WireAnswer answer = encode(Answer{static_cast<uint32_t>(error), 0, 0, 0}, version);

    rdma_reject(id, &answer, sizeof(answer));
    rdma_destroy_id(id);
}

void VerbsResponder::drop(rdma_cm_id* id) {
    std::erase_if(connections_, [id](const auto& connection) { return connection->pair.id.get() == id; });
}

} // namespace kxfer::verbs
