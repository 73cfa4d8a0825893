// SPDX-License-Identifier: MIT
#include "verbs/connection.hpp"

#include <algorithm>
#include <cerrno>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

namespace kxfer::verbs {

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
        poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
    }
}

// One entry for each work request that can be in flight: it cannot overrun.
tl::expected<void, Error> QueuePair::create_cq(const Room& room, const std::string& on) {
    const unsigned entries = room.sends + room.receives + 1;

    if (room.events) {
        events.reset(ibv_create_comp_channel(id->verbs));
        if (!events) return tl::unexpected(Error("cannot create a completion channel", on, last_error()));
    }
    cq.reset(ibv_create_cq(id->verbs, static_cast<int>(entries), nullptr, events.get(), 0));
    if (!cq)
        return tl::unexpected(
            Error(fmt::format("cannot create a CQ of {} entries", entries), on, last_error(),
                  fmt::format("the device takes {}; try a smaller --depth", attributes.max_cqe)));
    return {};
}

tl::expected<void, Error> QueuePair::create(const bench::Memory& memory, const Room& room, int access,
                                            const std::string& on) {
    const auto failed = [&](const std::string& what, const std::string& advice) {
        return tl::unexpected(Error(what, on, last_error(), advice));
    };
    ibv_qp_init_attr init{};

    errno = 0;
    iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    if (ibv_query_device(id->verbs, &attributes)) return failed("cannot query the device", "");
    pd.reset(ibv_alloc_pd(id->verbs));
    if (!pd) return failed("cannot allocate a protection domain", "");
    if (auto created = create_cq(room, on); !created) return created;
    mr.reset(ibv_reg_mr(pd.get(), memory.data(), memory.length() + bench::Memory::spare_bytes, access));
    if (!mr)
        return failed(fmt::format("cannot register {} bytes", memory.length()),
                      "raise the limit of locked memory: ulimit -l unlimited");

    init.qp_type = IBV_QPT_RC;
    init.send_cq = cq.get();
    init.recv_cq = cq.get();
    init.cap.max_send_wr = room.sends;
    init.cap.max_recv_wr = std::max(room.receives, 1U);
    init.cap.max_send_sge = 1;
    init.cap.max_recv_sge = 1;
    if (!room.by_cm) id->qp = ibv_create_qp(pd.get(), &init);
    if (room.by_cm ? rdma_create_qp(id.get(), pd.get(), &init) != 0 : !id->qp)
        return failed(fmt::format("cannot create a QP of {} work requests", room.sends + room.receives),
                      fmt::format("the device takes {}; try a smaller --depth", attributes.max_qp_wr));
    qp.reset(id.get());
    return {};
}

} // namespace kxfer::verbs
