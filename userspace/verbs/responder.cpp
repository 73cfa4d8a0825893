// SPDX-License-Identifier: MIT
//
// Only the thread touches connections_. rdma_destroy_id waits until every event
// of the id has been acknowledged; a connection request is an event of the
// listener, so that the new id may be destroyed while it is handled, any other
// is one of the id itself.

#include "verbs/responder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kxfer::verbs {

namespace {

constexpr int backlog = 8;

int access_of(const Request& request) {
    return IBV_ACCESS_REMOTE_READ | (request.writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0);
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
    for (;;) {
        pollfd waiting[] = {{channel_->fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
        rdma_cm_event* event = nullptr;

        if (poll(waiting, 2, 1000) < 0 && errno != EINTR) {
            error_ = errno;
            break;
        }
        if (waiting[1].revents) break;
        if (rdma_get_cm_event(channel_.get(), &event) == 0) {
            handle(Event(event));
        } else if (errno != EAGAIN && errno != EINTR) {
            error_ = errno;
            break;
        }
    }
    connections_.clear();
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

    for (const auto& connection : connections_) bytes += connection->memory.length();
    return bytes;
}

tl::expected<std::unique_ptr<VerbsResponder::Connection>, Error>
VerbsResponder::prepare(rdma_cm_id* id, const Request& request) {
    const auto on = address_text(rdma_get_peer_addr(id));

    if (connections_.size() >= max_connections)
        return tl::unexpected(Error("too many connections", on, EBUSY));
    if (request.length == 0 || request.length > max_bytes - bytes_given())
        return tl::unexpected(Error("too much memory asked for", on, EDQUOT));
    auto memory = bench::Memory::create(request.length);
    if (!memory) return tl::unexpected(memory.error());
    auto connection = std::make_unique<Connection>(Connection{std::move(*memory), {}});
    connection->pair.id.reset(id);
    if (auto created = connection->pair.create(connection->memory, 1, access_of(request), on); !created) {
        static_cast<void>(connection->pair.id.release()); // the caller refuses by it
        return tl::unexpected(created.error());
    }
    return connection;
}

void VerbsResponder::accept(rdma_cm_id* id, const rdma_cm_event& event) {
    const auto& asked = event.param.conn;
    const auto request = decode_request(asked.private_data, asked.private_data_len);
    rdma_conn_param parameters{};

    if (!request) return refuse(id, EPROTO);
    auto connection = prepare(id, *request);
    if (!connection) return refuse(id, connection.error().number);

    auto& pair = (*connection)->pair;
    const WireAnswer answer =
        encode(Answer{0, pair.mr->rkey, reinterpret_cast<uintptr_t>((*connection)->memory.data()),
                      (*connection)->memory.length()});
    parameters.private_data = &answer;
    parameters.private_data_len = sizeof(answer);
    parameters.responder_resources =
        static_cast<uint8_t>(std::min<int>(asked.responder_resources, pair.attributes.max_qp_rd_atom));
    parameters.initiator_depth = asked.initiator_depth;
    parameters.rnr_retry_count = asked.rnr_retry_count;
    if (rdma_accept(id, &parameters)) return; // the peer has gone; the connection goes too
    connections_.push_back(std::move(*connection));
}

void VerbsResponder::refuse(rdma_cm_id* id, int error) {
    const WireAnswer answer = encode(Answer{static_cast<uint32_t>(error), 0, 0, 0});

    rdma_reject(id, &answer, sizeof(answer));
    rdma_destroy_id(id);
}

void VerbsResponder::drop(rdma_cm_id* id) {
    std::erase_if(connections_, [id](const auto& connection) { return connection->pair.id.get() == id; });
}

} // namespace kxfer::verbs
