// SPDX-License-Identifier: MIT
//
// One connection in user space with all that hangs on it, owned in the
// order in which it has to be destroyed. Every wait has a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <tl/expected.hpp>

#include "bench/workload.hpp"
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
// rdma_cm moves the QP through its states and so keeps it in the id; it is kept there
// when it is moved explicitly, too.
struct DestroyQp {
    void operator()(rdma_cm_id* id) const { rdma_destroy_qp(id); }
};
struct DeregisterMr {
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
};
struct AckEvent {
    void operator()(rdma_cm_event* event) const { rdma_ack_cm_event(event); }
};

using Channel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
using Event = std::unique_ptr<rdma_cm_event, AckEvent>;

// How much a queue pair takes.
struct Room {
    unsigned sends = 1; // work requests in flight
    unsigned receives = 0;
    bool events = false; // its completions can be waited for
    bool by_cm = true;   // rdma_cm moves it through its states; else it is in RESET
};

// The queue pair, its completion queue, protection domain and one registered
// memory. Members are destroyed from the last to the first.
struct QueuePair {
    std::unique_ptr<rdma_cm_id, DestroyId> id;
    std::unique_ptr<ibv_pd, FreePd> pd;
    std::unique_ptr<ibv_comp_channel, DestroyEvents> events; // its reads block
    std::unique_ptr<ibv_cq, DestroyCq> cq;
    std::unique_ptr<ibv_mr, DeregisterMr> mr;
    std::unique_ptr<rdma_cm_id, DestroyQp> qp; // the id again, once it has a QP
    ibv_device_attr attributes{};
    bool iwarp = false;

    // Makes what is missing on the id's device.
    tl::expected<void, Error> create(const bench::Memory& memory, const Room& room, int access,
                                     const std::string& on);

  private:
    tl::expected<void, Error> create_cq(const Room& room, const std::string& on);
};

// A channel whose reads do not block.
tl::expected<Channel, Error> open_channel();
// The next event, or ETIMEDOUT.
tl::expected<Event, Error> next_event(rdma_event_channel* channel, Clock::time_point deadline,
                                      const std::string& what, const std::string& on);

// The first asynchronous event that the device has for this process, in the words of
// libibverbs ("CQ error": one has overrun); empty: none. It is taken and acknowledged.
std::string told_event(ibv_context* context);

// The errno that a call of rdma_cm or verbs left, never 0.
int last_error();
std::string address_text(const sockaddr* address);

} // namespace kxfer::verbs
