// SPDX-License-Identifier: MIT
//
// An endpoint of FI_EP_RDM: one mailbox, whatever the number of peers; or of FI_EP_MSG: with a connection,
// and so one peer. It has an outbox, an inbox, and what it knows of each peer; completions go to the queues
// and counters that are bound to it.
//
// The calls that move data are in message.cpp, rma.cpp and atomic.cpp. All of them take the domain's lock,
// and look for completions if the endpoint has no room for another operation (-FI_EAGAIN).
#pragma once

#include <memory>
#include <unordered_map>

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "libfabric/connection.hpp"
#include "libfabric/domain.hpp"
#include "libfabric/error.hpp"
#include "libfabric/inbox.hpp"
#include "libfabric/info.hpp"
#include "libfabric/member.hpp"
#include "libfabric/outbox.hpp"

namespace kxfer::fi {

class Av;
class Counter;
class Cq;
class Peer;

// What has become of an operation.
struct Outcome {
    void* context;
    uint64_t flags; // what it was: FI_SEND | FI_MSG ...
    int status;     // 0, or a negative errno
    During during;
    bool reported; // in the completion queue, also if it ended well
    size_t length = 0;
    size_t cut = 0; // bytes for which there was no room
    void* buffer = nullptr;
    uint64_t data = 0;
    uint64_t tag = 0;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
};

class Endpoint final : public fid_ep, public Member {
  public:
    using Base = fid_ep;

    // fi_ops_domain.endpoint
    static int open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

    Endpoint(Domain& domain, fi_info* info);
    ~Endpoint();

    void go_on() override;
    void look_after() override;

    int enable();
    int set_name(const void* address, size_t length);

    // 0: messages may be sent, and memory reached.
    int usable() const;

    // The peer with this number, or the only one, or with this address; made the first time. NULL: no such
    // number.
    Peer* peer_of(fi_addr_t number);
    Peer& peer_at(const Address& address);
    fi_addr_t number_of(const Peer& peer) const;

    // The peer that has sent the message; NULL: it is not to be handled (further).
    Peer* sender_of(const Header& header, const uint8_t* payload, uint64_t word);

    // Waits for what peers are owed, for a while.
    void flush();
    // Withdraws the mailbox, and ends what is in flight.
    void end_jobs();

    // Whether a call may use the memory of a peer now: 0 with the peer, or what the call returns.
    int begin_memory(fi_addr_t number, Peer** peer);
    // What the call returns after it has tried: a failure, but for want of room, is a completion.
    int end_of_call(int status, void* context, uint64_t flags);

    void transmitted(const Outcome& outcome);
    void received(const Outcome& outcome);
    // FI_PEEK: an entry for the queue that no counter counts.
    void looked(const Outcome& outcome);
    // WRITEs of a peer with data for the completion queue.
    void written(Peer& peer, uint64_t data, uint64_t length);

    bool is_enabled() const { return enabled_; }
    bool is_closing() const { return closing_; }
    bool is_connected_type() const { return info->ep_attr->type == FI_EP_MSG; }
    // Of operations that have no flags of their own.
    uint64_t tx_flags() const { return info->tx_attr->op_flags; }
    uint64_t rx_flags() const { return info->rx_attr->op_flags; }
    bool reports_tx(uint64_t flags) const { return !selective_tx_ || flags & FI_COMPLETION; }
    bool reports_rx(uint64_t flags) const { return !selective_rx_ || flags & FI_COMPLETION; }
    bool is_directed() const { return (info->caps & FI_DIRECTED_RECV) != 0; }

    Domain& domain;
    fi_info* const info;
    Address address{};
    std::unique_ptr<Connection> connection; // NULL: the endpoint is of FI_EP_RDM
    Outbox outbox;
    Inbox inbox;
    unsigned memory_jobs = 0; // READs and WRITEs of memory, and atomics, in flight

  private:
    enum Count { count_send, count_recv, count_read, count_write, nr_counts };

    static int close(struct ::fid* handle);
    static int bind(struct ::fid* handle, struct ::fid* other, uint64_t flags);
    static int control(struct ::fid* handle, int command, void* argument);
    static ssize_t cancel(fid_t handle, void* context);
    static int get_option(fid_t handle, int level, int name, void* value, size_t* length);
    static int set_option(fid_t handle, int level, int name, const void* value, size_t length);
    static ssize_t room_rx(fid_ep* handle);
    static ssize_t room_tx(fid_ep* handle);
    static fi_ops_ep make_ep_ops();
    void set_ops();

    int bind_cq(Cq& cq, uint64_t flags);
    int bind_counter(Counter& counter, uint64_t flags);
    int bind_av(Av& av);
    bool has_jobs() const;
    void count(const Outcome& outcome);
    static void push(Cq* cq, const Outcome& outcome);

    Av* av_ = nullptr;
    Cq* tx_cq_ = nullptr;
    Cq* rx_cq_ = nullptr;
    Counter* counters_[nr_counts] = {};
    bool selective_tx_ = false;
    bool selective_rx_ = false;
    bool enabled_ = false;
    bool closing_ = false;
    std::unordered_map<Address, std::unique_ptr<Peer>, HashAddress, SameAddress> peers_;
};

// Flags of an operation that would be wrong if they were ignored: it is refused with -FI_EBADFLAGS.
inline constexpr uint64_t refused_flags = FI_TRIGGER | FI_FENCE | FI_COMMIT_COMPLETE | FI_MULTICAST;

// The operations of an endpoint.
fi_ops_msg make_message_ops();
fi_ops_tagged make_tagged_ops();
fi_ops_rma make_rma_ops();
fi_ops_atomic make_atomic_ops();

} // namespace kxfer::fi
