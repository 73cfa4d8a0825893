// SPDX-License-Identifier: MIT
//
// The states of a QP, RESET-INIT-RTR-RTS, each entered by one ibv_modify_qp(), as rdma_cm
// does internally. Every attribute that is set is recorded with its meaning. The attributes
// depend on the transport: UC has no timeouts, retries and READs; UD has no peer, but a
// Q_Key, and an address handle for each message.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <tl/expected.hpp>

#include "verbs/connection.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/local_port.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

struct Attribute {
    std::string name; // member of struct ibv_qp_attr
    std::string value;
    std::string meaning;
};

// One call.
struct Step {
    std::string of;   // "RC QP", "address handle"
    std::string from; // state before; empty: an address handle, which has no states
    std::string to;
    std::vector<Attribute> attributes;
};

// Timeouts and retries of a QP; exponents and codes as InfiniBand defines them.
struct Patience {
    uint8_t timeout = 14;  // wait for an acknowledgement: 4.096 us * 2^timeout; 0: without end
    uint8_t retries = 7;   // retries after a missed acknowledgement
    uint8_t rnr_retry = 0; // retries when the peer had no receive; 7: without end
};

class Walk {
  public:
    // `on` is the peer, for errors. Each step is added to `steps`, which has to outlive the Walk.
    Walk(ibv_qp* qp, LocalPort port, Transport transport, std::string on, std::vector<Step>& steps)
        : qp_(qp), port_(port), transport_(transport), on_(std::move(on)), steps_(steps) {}

    // access: what the peer may do (IBV_ACCESS_*); rights that UC lacks are left out. qkey: UD only.
    tl::expected<void, Error> init(int access, uint32_t qkey);
    // own: with the mtu and reads that both ends agreed on.
    tl::expected<void, Error> ready_to_receive(const Endpoint& own, const Endpoint& peer);
    tl::expected<void, Error> ready_to_send(const Endpoint& own, const Patience& patience);

  private:
    tl::expected<void, Error> modify(ibv_qp_attr& attributes, int mask);

    ibv_qp* qp_;
    LocalPort port_;
    Transport transport_;
    std::string on_;
    ibv_qp_state state_ = IBV_QPS_RESET;
    std::vector<Step>& steps_;
};

// The states of all QPs of one end: that of its transport, and the control QP, if there is
// one.
class EndWalk {
  public:
    EndWalk(const QueuePair& pair, const LocalPort& port, const std::string& on);
    EndWalk(const EndWalk&) = delete;
    EndWalk& operator=(const EndWalk&) = delete;

    // To INIT: after that receives may be posted.
    tl::expected<void, Error> init(int access, const End& own);
    // To RTS; `own` has what both ends agreed on.
    tl::expected<void, Error> connect(const End& own, const End& peer, const Patience& patience);

    const std::vector<Step>& steps() const { return steps_; }

  private:
    std::vector<Step> steps_;
    Walk main_;
    std::optional<Walk> control_;
};

// The address handle for UD messages to the peer; `step` describes it and what messages carry.
tl::expected<std::unique_ptr<ibv_ah, DestroyAh>, Error> address_handle(ibv_pd* pd, const LocalPort& port,
                                                                       const Endpoint& peer, uint32_t qkey,
                                                                       const std::string& on, Step& step);

// Describes the attributes that a call with this mask sets; pure.
Step explain(Transport transport, ibv_qp_state from, const ibv_qp_attr& attributes, int mask,
             const LocalPort& port);

// The attributes that the other end needs, with random PSNs and a random Q_Key; agree() has to
// set what both ends agree on: mtu, reads, min_rnr_timer.
End end_of(const QueuePair& pair, const LocalPort& port);
// Sets what both ends agree on, in all QPs of the end.
void agree(End& end, ibv_mtu mtu, uint8_t reads, uint8_t min_rnr_timer);

} // namespace kxfer::verbs
