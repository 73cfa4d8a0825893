// SPDX-License-Identifier: MIT
//
// One connection in user space with all its objects, owned in the
// order in which they have to be destroyed. Every wait has a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <tl/expected.hpp>

#include "engine/workload.hpp"
#include "verbs/endpoint.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

using Clock = std::chrono::steady_clock;

struct DestroyChannel {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
struct DestroyId {
    void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
struct FreePd {
    void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
};
struct DestroyEvents {
    void operator()(ibv_comp_channel* channel) const { ibv_destroy_comp_channel(channel); }
};
struct DestroyCq {
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
};
// The QP is kept in the id, where rdma_cm needs it to move it through its states; also
// when it is moved explicitly.
struct DestroyQp {
    void operator()(rdma_cm_id* id) const { rdma_destroy_qp(id); }
};
struct DestroyControl {
    void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
};
struct DestroyAh {
    void operator()(ibv_ah* ah) const { ibv_destroy_ah(ah); }
};
struct DeregisterMr {
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
};
struct AckEvent {
    void operator()(rdma_cm_event* event) const { rdma_ack_cm_event(event); }
};

using Channel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
using Event = std::unique_ptr<rdma_cm_event, AckEvent>;

// Size and features of a queue pair.
struct Room {
    unsigned sends = 1; // work requests in flight
    unsigned receives = 0;
    bool events = false; // its completions can be waited for
    bool by_cm = true;   // rdma_cm moves it through its states; else it is in RESET
    Transport transport = Transport::rc;
    bool timestamps = false;    // completions have a time of the device's clock
    bool commands = false;      // received messages have a command in front
    bool atomic_writes = false; // ATOMIC_WRITE is posted, by ibv_qp_to_qp_ex()
    unsigned inline_bytes = 0;  // inline data wanted per work request, if the device can
};

// Bits of device_cap_flags_ex, set by the kernel from Linux 6.2 on (IB_UVERBS_DEVICE_*): not every
// libibverbs-dev names them.
constexpr uint64_t flush_bits = 3ULL << 38; // global, persistent
constexpr uint64_t atomic_write_bit = 1ULL << 40;

// The queue pair, its completion queue, protection domain and one registered
// memory. Members are destroyed from the last to the first.
struct QueuePair {
    std::unique_ptr<rdma_cm_id, DestroyId> id;
    std::unique_ptr<ibv_pd, FreePd> pd;
    std::unique_ptr<ibv_comp_channel, DestroyEvents> events; // its reads block
    std::unique_ptr<ibv_cq, DestroyCq> cq;
    ibv_cq_ex* timed = nullptr; // the CQ, if its completions have timestamps
    std::unique_ptr<ibv_mr, DeregisterMr> mr;
    std::chrono::nanoseconds registering{};          // time that registering the MR took
    std::unique_ptr<rdma_cm_id, DestroyQp> qp;       // the id again, once it has a QP
    std::unique_ptr<ibv_qp, DestroyControl> control; // unless the QP is RC, see endpoint.hpp
    // UD QP of a connection by rdma_cm, whose id's QP is RC. Takes messages with its Q_Key.
    std::unique_ptr<ibv_qp, DestroyControl> datagrams;
    std::unique_ptr<ibv_ah, DestroyAh> ah; // UD, at the initiator: where messages go
    ibv_device_attr attributes{};
    uint64_t capabilities = 0; // device_cap_flags_ex
    bool iwarp = false;
    Transport transport = Transport::rc;
    unsigned max_inline = 0; // inline bytes of a work request; 0: not asked for, or the device cannot

    bool has(uint64_t capability) const { return (capabilities & capability) != 0; }
    // The QP that carries messages.
    ibv_qp* messages() const { return datagrams ? datagrams.get() : id->qp; }

    // Creates all other members on the id's device.
    tl::expected<void, Error> create(const bench::Memory& memory, const Room& room, int access,
                                     const std::string& on);

  private:
    tl::expected<void, Error> create_cq(const Room& room, const std::string& on);
    tl::expected<void, Error> create_timed_cq(unsigned entries);
    int make_qp(const Room& room, ibv_qp_init_attr& init);
    int make_extended_qp(const Room& room, const ibv_qp_init_attr& init);
    Error qp_error(const Room& room, const std::string& on, int error) const;
    tl::expected<void, Error> create_qp(const Room& room, const std::string& on);
    tl::expected<void, Error> create_control(ibv_qp_init_attr init, const std::string& on);
    tl::expected<void, Error> create_datagrams(ibv_qp_init_attr init, const std::string& on);
};

// iWARP: a TCP socket may have the port that rdma_cm chose. So many are tried before EADDRINUSE is
// told.
constexpr int most_ports = 9;

// A channel whose reads do not block.
tl::expected<Channel, Error> open_channel();
// An id of RDMA_PS_TCP that listens at the address; IPv6 does not take IPv4's port. With port 0 rdma_cm
// chooses one, most_ports times if need be.
tl::expected<std::unique_ptr<rdma_cm_id, DestroyId>, Error>
listen_at(rdma_event_channel* channel, const sockaddr_storage& address, int backlog);
// The next event, or ETIMEDOUT.
tl::expected<Event, Error> next_event(rdma_event_channel* channel, Clock::time_point deadline,
                                      const std::string& what, const std::string& on);

// Takes and acknowledges the oldest asynchronous event that the device has for this process.
// Returns its text of libibverbs ("CQ error": a CQ has overrun); empty: there is none.
std::string told_event(ibv_context* context);

// errno after a failed call of rdma_cm or verbs, never 0.
int last_error();
std::string address_text(const sockaddr* address);

} // namespace kxfer::verbs
