// SPDX-License-Identifier: MIT
#include "verbs/connection.hpp"

#include <algorithm>
#include <cerrno>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include "base/try.hpp"

namespace kxfer::verbs {

namespace {

ibv_qp_type type_of(Transport transport) {
    return transport == Transport::rc ? IBV_QPT_RC : transport == Transport::uc ? IBV_QPT_UC : IBV_QPT_UD;
}

} // namespace

int last_error() { return errno ? errno : EIO; }

std::string told_event(ibv_context* context) {
    pollfd waiting{context->async_fd, POLLIN, 0};
    ibv_async_event event{};

    if (poll(&waiting, 1, 0) <= 0 || ibv_get_async_event(context, &event)) return "";
    ibv_ack_async_event(&event);
    return ibv_event_type_str(event.event_type);
}

std::string address_text(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "?";

    if (address->sa_family == AF_INET6) {
        const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address);

        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
        return fmt::format("[{}]:{}", text, ntohs(in6->sin6_port));
    }
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(in->sin_port));
}

tl::expected<Channel, Error> open_channel() {
    errno = 0;
    Channel channel(rdma_create_event_channel());

    if (!channel)
        return tl::unexpected(Error("cannot use rdma_cm from user space", "/dev/infiniband/rdma_cm",
                                    last_error(), "try: modprobe rdma_ucm"));
    if (fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) < 0)
        return tl::unexpected(Error("cannot use rdma_cm from user space", "its event channel", errno));
    return channel;
}

namespace {

tl::expected<std::unique_ptr<rdma_cm_id, DestroyId>, Error>
listen_once(rdma_event_channel* channel, sockaddr_storage address, int backlog) {
    const auto on = address_text(reinterpret_cast<const sockaddr*>(&address));
    rdma_cm_id* id = nullptr;
    int only = 1;

    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", on, last_error()));
    std::unique_ptr<rdma_cm_id, DestroyId> listener(id);
    // A wildcard of IPv6 would take IPv4's port too.
    if (address.ss_family == AF_INET6)
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only));
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) || rdma_listen(id, backlog))
        return tl::unexpected(Error("cannot listen on", on, last_error()));
    return listener;
}

} // namespace

tl::expected<std::unique_ptr<rdma_cm_id, DestroyId>, Error>
listen_at(rdma_event_channel* channel, const sockaddr_storage& address, int backlog) {
    const bool any_port =
        (address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                       : reinterpret_cast<const sockaddr_in*>(&address)->sin_port) == 0;

    for (int tries = 1;; tries++) {
        auto listener = listen_once(channel, address, backlog);
        if (listener || !any_port || listener.error().number != EADDRINUSE || tries == most_ports)
            return listener;
    }
}

tl::expected<Event, Error> next_event(rdma_event_channel* channel, Clock::time_point deadline,
                                      const std::string& what, const std::string& on) {
    using std::chrono::milliseconds;

    for (;;) {
        rdma_cm_event* event = nullptr;
        pollfd waiting{channel->fd, POLLIN, 0};

        if (rdma_get_cm_event(channel, &event) == 0) return Event(event);
        if (errno != EAGAIN && errno != EINTR) return tl::unexpected(Error(what, on, errno));
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (left.count() <= 0)
            return tl::unexpected(Error(what, on, ETIMEDOUT,
                                        "does it answer? try: ping it, or a longer "
                                        "--timeout"));
        // A program that catches a signal has to end.
        if (poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000))) < 0 && errno == EINTR)
            return tl::unexpected(Error(what, on, EINTR));
    }
}

// One entry for each work request that can be in flight, so the CQ cannot overrun. Each QP has
// at most room.sends sends in flight, and there are so many entries for each.
tl::expected<void, Error> QueuePair::create_cq(const Room& room, const std::string& on) {
    const unsigned queues = room.transport == Transport::rc ? 1 : 2;
    const unsigned entries = queues * room.sends + room.receives + 1;

    if (room.events) {
        events.reset(ibv_create_comp_channel(id->verbs));
        if (!events) return tl::unexpected(Error("cannot create a completion channel", on, last_error()));
    }
    if (room.timestamps) return create_timed_cq(entries);
    cq.reset(ibv_create_cq(id->verbs, static_cast<int>(entries), nullptr, events.get(), 0));
    if (!cq)
        return tl::unexpected(
            Error(fmt::format("cannot create a CQ of {} entries", entries), on, last_error(),
                  fmt::format("the device takes {}; try a smaller --depth", attributes.max_cqe)));
    return {};
}

tl::expected<void, Error> QueuePair::create_timed_cq(unsigned entries) {
    ibv_cq_init_attr_ex init{};
    ibv_device_attr_ex device{};

    init.cqe = entries;
    init.channel = events.get();
    init.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    errno = 0;
    timed = ibv_create_cq_ex(id->verbs, &init);
    if (timed) {
        cq.reset(ibv_cq_ex_to_cq(timed));
        return {};
    }
    const int error = last_error();
    const bool told = ibv_query_device_ex(id->verbs, nullptr, &device) == 0;
    return tl::unexpected(
        Error(fmt::format("the provider of {} creates no CQ with timestamps",
                          ibv_get_device_name(id->verbs->device)),
              "", error, "leave out --timestamps",
              told ? fmt::format("completion_timestamp_mask of ibv_query_device_ex() is {:#x}",
                                 device.completion_timestamp_mask)
                   : ""));
}

tl::expected<void, Error> QueuePair::create(const bench::Memory& memory, const Room& room, int access,
                                            const std::string& on) {
    const auto failed = [&](const std::string& what, const std::string& advice) {
        return tl::unexpected(Error(what, on, last_error(), advice));
    };

    errno = 0;
    transport = room.transport;
    iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    ibv_device_attr_ex device{};
    if (int error = ibv_query_device_ex(id->verbs, nullptr, &device)) {
        errno = error;
        return failed("cannot query the device", "");
    }
    attributes = device.orig_attr;
    capabilities = device.device_cap_flags_ex;
    pd.reset(ibv_alloc_pd(id->verbs));
    if (!pd) return failed("cannot allocate a protection domain", "");
    TRY(create_cq(room, on));
    const auto begun = Clock::now();
    mr.reset(ibv_reg_mr(pd.get(), memory.data(), memory.length() + bench::Memory::spare_bytes, access));
    registering = Clock::now() - begun;
    if (!mr)
        return failed(fmt::format("cannot register {} bytes", memory.length()),
                      "raise the limit of locked memory: ulimit -l unlimited");
    return create_qp(room, on);
}

tl::expected<void, Error> QueuePair::create_qp(const Room& room, const std::string& on) {
    const bool beside = room.by_cm && room.transport == Transport::ud;
    ibv_qp_init_attr init{};

    init.qp_type = beside ? IBV_QPT_RC : type_of(room.transport);
    init.send_cq = cq.get();
    init.recv_cq = cq.get();
    init.cap.max_send_wr = room.sends;
    init.cap.max_recv_wr = std::max(room.receives, 1U);
    init.cap.max_send_sge = 1;
    // A GRH, or a command, takes an SGE of its own.
    init.cap.max_recv_sge = room.transport == Transport::ud || room.commands ? 2 : 1;
    init.cap.max_inline_data = room.inline_bytes;
    errno = 0;
    int error = room.atomic_writes ? make_extended_qp(room, init) : make_qp(room, init);
    // A device gives at least the inline data asked for, or refuses: then try without.
    if (error == EINVAL && room.inline_bytes) {
        init.cap.max_inline_data = 0;
        error = make_qp(room, init);
    }
    if (error) return tl::unexpected(qp_error(room, on, error));
    max_inline = room.inline_bytes ? init.cap.max_inline_data : 0;
    qp.reset(id.get());
    if (room.transport == Transport::rc) return {};
    return beside ? create_datagrams(init, on) : create_control(init, on);
}

// The id gets the QP, by rdma_cm or without; returns 0 or errno.
int QueuePair::make_qp(const Room& room, ibv_qp_init_attr& init) {
    if (room.by_cm) return rdma_create_qp(id.get(), pd.get(), &init) == 0 ? 0 : last_error();
    id->qp = ibv_create_qp(pd.get(), &init);
    return id->qp ? 0 : last_error();
}

// ibv_post_send() lacks ATOMIC_WRITE, but posts the READs.
int QueuePair::make_extended_qp(const Room& room, const ibv_qp_init_attr& init) {
    ibv_qp_init_attr_ex extended{};

    extended.send_cq = init.send_cq;
    extended.recv_cq = init.recv_cq;
    extended.cap = init.cap;
    extended.qp_type = init.qp_type;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = pd.get();
    extended.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_READ;
    if (room.by_cm) return rdma_create_qp_ex(id.get(), &extended) == 0 ? 0 : last_error();
    id->qp = ibv_create_qp_ex(id->verbs, &extended);
    return id->qp ? 0 : last_error();
}

Error QueuePair::qp_error(const Room& room, const std::string& on, int error) const {
    const char* device = ibv_get_device_name(id->verbs->device);

    if (room.transport != Transport::rc)
        return Error(
            fmt::format("the provider of {} does not create a {} QP", device, transport_name(room.transport)),
            "", error, "use --transport rc", iwarp ? "iWARP has reliable connections alone" : "");
    if (room.atomic_writes && error == EOPNOTSUPP)
        return Error(fmt::format("the user-space provider of {} creates no QP with ATOMIC_WRITE", device), "",
                     error);
    return Error(fmt::format("cannot create a QP of {} work requests", room.sends + room.receives), on, error,
                 fmt::format("the device takes {}; try a smaller --depth", attributes.max_qp_wr));
}

tl::expected<void, Error> QueuePair::create_control(ibv_qp_init_attr init, const std::string& on) {
    init.qp_type = IBV_QPT_RC;
    init.cap.max_recv_wr = init.cap.max_recv_sge = 1;
    control.reset(ibv_create_qp(pd.get(), &init));
    if (!control) return tl::unexpected(Error("cannot create the control QP", on, last_error()));
    return {};
}

// To RTR only, because it only receives. The Q_Key is the one that rdma_cm uses for IP addresses.
tl::expected<void, Error> QueuePair::create_datagrams(ibv_qp_init_attr init, const std::string& on) {
    ibv_qp_attr attributes{};

    init.qp_type = IBV_QPT_UD;
    datagrams.reset(ibv_create_qp(pd.get(), &init));
    if (!datagrams) return tl::unexpected(Error("cannot create a UD QP", on, last_error()));
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = id->port_num;
    attributes.qkey = RDMA_UDP_QKEY;
    int error = ibv_modify_qp(datagrams.get(), &attributes,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attributes.qp_state = IBV_QPS_RTR;
    if (!error) error = ibv_modify_qp(datagrams.get(), &attributes, IBV_QP_STATE);
    if (error) return tl::unexpected(Error("cannot make a UD QP ready", on, error));
    return {};
}

} // namespace kxfer::verbs
