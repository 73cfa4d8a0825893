// SPDX-License-Identifier: MIT
//
// Errnos of other programs on the RDMA stack: what calls of libibverbs and librdmacm fail
// with, and the negative statuses of rdma_cm events (drivers/infiniband/core: uverbs_cmd.c,
// verbs.c, umem.c, cma.c, addr.c, sa_query.c). kxfer's own are in meaning_errno.cpp.

#include "cli/explain/meaning.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

namespace kxfer::cli {

namespace {

constexpr Entry known[] = {
    {.number = EPERM,
     .name = "EPERM",
     .means = "ibv_reg_mr(): RLIMIT_MEMLOCK is 0; ibv_create_qp(): a raw packet QP needs CAP_NET_RAW",
     .look = "ulimit -l; LimitMEMLOCK= of a service"},
    {.number = ENOENT,
     .name = "ENOENT",
     .means = "the device files of user-space verbs are missing, /dev/infiniband/rdma_cm or uverbsN; a call "
              "on an object: its handle is not of this context",
     .look = "modprobe rdma_ucm; modprobe ib_uverbs; ls /dev/infiniband"},
    {.number = EIO,
     .name = "EIO",
     .means = "the device was removed, or its driver was unbound, while the program had it open",
     .look = "dmesg; rdma link; the event IBV_EVENT_DEVICE_FATAL"},
    {.number = EAGAIN,
     .name = "EAGAIN",
     .means = "nothing is there yet: rdma_get_cm_event(), ibv_get_cq_event() or ibv_get_async_event() of a "
              "descriptor that does not block",
     .look = "poll(2) the descriptor first"},
    {.number = ENOMEM,
     .name = "ENOMEM",
     .means = "ibv_reg_mr(): RLIMIT_MEMLOCK is reached; ibv_create_cq(), ibv_create_qp(): no memory, or no "
              "room on the device; ibv_post_send(), ibv_post_recv(): the queue is full",
     .look =
         "ulimit -l\n"
         "rdma resource show; max_qp, max_cq, max_mr of ibv_devinfo -v; rdma.max of the cgroup\n"
         "posting: work requests that are posted and not polled yet, against max_send_wr and max_recv_wr"},
    {.number = EACCES,
     .name = "EACCES",
     .means = "rdma_bind_addr(): a port below 1024 needs CAP_NET_BIND_SERVICE; opening a device file: its "
              "mode",
     .look = "another port; ls -l /dev/infiniband"},
    {.number = EFAULT,
     .name = "EFAULT",
     .means = "ibv_reg_mr(): a part of the memory is not mapped, or cannot be pinned, such as memory of a "
              "device without dma-buf",
     .look = "address and length against /proc/PID/maps\n"
             "write access (IBV_ACCESS_LOCAL_WRITE) to memory that is mapped read-only"},
    {.number = EBUSY,
     .name = "EBUSY",
     .means = "something still uses the object: a PD has MRs or QPs, a CQ has QPs, an MR has memory windows",
     .look = "the order of the end: QPs, MRs, then CQs and PDs; rdma resource show"},
    {.number = ENODEV,
     .name = "ENODEV",
     .means = "rdma_resolve_addr(), RDMA_CM_EVENT_ADDR_ERROR: the interface on the way has no RDMA device; "
              "rdma_create_event_channel(): this node has none",
     .look = "rdma link; ip route get ADDRESS"},
    {.number = EINVAL,
     .name = "EINVAL",
     .means = "a value that the call does not take: sizes beyond the device's limits, attributes that are "
              "not those of a QP's move, an rdma_cm call out of order, a path that the subnet manager does "
              "not know",
     .look = "max_qp_wr, max_sge, max_cqe, max_qp_rd_atom of ibv_devinfo -v\n"
             "the mask of ibv_modify_qp(): man ibv_modify_qp has the attributes of each move"},
    {.number = ENOSPC,
     .name = "ENOSPC",
     .means = "an answer of the kernel did not fit: library and kernel module are of different versions",
     .look = "ibv_devinfo; the packages rdma-core and the driver's provider: of one release?"},
    {.number = ENOSYS,
     .name = "ENOSYS",
     .means = "this device, or its provider in user space, does not have the call",
     .look = "kxfer device show DEV; the provider's package"},
    {.number = EOPNOTSUPP,
     .name = "EOPNOTSUPP",
     .means = "this device or driver does not have the call, the QP type or the access flag (on-demand "
              "paging, memory windows, XRC)",
     .look = "kxfer device show DEV; device_cap_flags of ibv_devinfo -v"},
    {.number = EPROTONOSUPPORT,
     .name = "EPROTONOSUPPORT",
     .means = "rdma_bind_addr(): no such port space",
     .look = "rdma_create_id(): RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB or RDMA_PS_IPOIB"},
    {.number = EAFNOSUPPORT,
     .name = "EAFNOSUPPORT",
     .means = "rdma_bind_addr(), rdma_resolve_addr(): an address that is neither IPv4, IPv6 nor AF_IB",
     .look = "sa_family of the address"},
    {.number = EADDRINUSE,
     .name = "EADDRINUSE",
     .means = "rdma_bind_addr(), rdma_listen(): the port is taken by another listener at that address",
     .look = "rdma resource show cm_id; iWARP: ss -tln"},
    {.number = EADDRNOTAVAIL,
     .name = "EADDRNOTAVAIL",
     .means = "no RDMA device has that address, or a listener on all addresses has the port",
     .look = "ip addr; rdma link; rdma resource show cm_id"},
    {.number = ENETUNREACH,
     .name = "ENETUNREACH",
     .means = "rdma_resolve_addr(): no route to that network",
     .look = "ip route get ADDRESS"},
    {.number = EHOSTUNREACH,
     .name = "EHOSTUNREACH",
     .means = "rdma_resolve_addr(): no route to that host",
     .look = "ip route get ADDRESS; ip neigh"},
    {.number = ETIMEDOUT,
     .name = "ETIMEDOUT",
     .means = "the status of RDMA_CM_EVENT_ADDR_ERROR: no neighbour answered; of ROUTE_ERROR: the subnet "
              "manager did not; of UNREACHABLE: the peer did not; of DISCONNECTED: the peer did not answer "
              "the disconnect",
     .look = "ping the address; ip neigh\nsminfo (InfiniBand); a firewall that drops UDP port 4791 (RoCE)"},
};

} // namespace

std::span<const Entry> errnos_of_verbs() {
    static const std::vector<Entry> all = [] {
        std::vector<Entry> entries(std::begin(known), std::end(known));
        for (Entry& entry : entries) entry.text = strerrordesc_np(entry.number);
        return entries;
    }();
    return all;
}

} // namespace kxfer::cli
