// SPDX-License-Identifier: MIT
//
// The states of a QP, RESET-INIT-RTR-RTS, each entered by one ibv_modify_qp(): what
// rdma_cm does unseen. Every attribute that is set is kept with its meaning. What is set
// differs: UC has no timeouts, retries and READs; UD has no peer at all, but a Q_Key, and
// an address handle for each message.
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
    std::string name; // of struct ibv_qp_attr
    std::string value;
    std::string meaning;
};

// One call.
struct Step {
    std::string of;   // "RC QP", "address handle"
    std::string from; // empty: it has no states
    std::string to;
    std::vector<Attribute> attributes;
};

// How a QP waits and tries again; exponents and codes as InfiniBand has them.
struct Patience {
    uint8_t timeout = 14;  // 4.096 us * 2^timeout until an acknowledgement is missed; 0: for ever
    uint8_t retries = 7;   // when one is missed
    uint8_t rnr_retry = 0; // when the peer had no receive; 7: for ever
};

class Walk {
  public:
    // `on` is the peer, for errors. Each step is added to `steps`, which has to outlive it.
    Walk(ibv_qp* qp, LocalPort port, Transport transport, std::string on, std::vector<Step>& steps)
        : qp_(qp), port_(port), transport_(transport), on_(std::move(on)), steps_(steps) {}

    // access: what the peer may do (IBV_ACCESS_*), of it what the transport has. qkey: of UD.
    tl::expected<void, Error> init(int access, uint32_t qkey);
    // mtu and reads: what both ends take.
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

// All that one end's QPs have to go through: that of its transport, and the control QP
// beside it, if it has one.
class EndWalk {
  public:
    EndWalk(const QueuePair& pair, const LocalPort& port, const std::string& on);
    EndWalk(const EndWalk&) = delete;
    EndWalk& operator=(const EndWalk&) = delete;

    // Then receives may be posted.
    tl::expected<void, Error> init(int access, const End& own);
    // To RTS; `own` has what both ends take.
    tl::expected<void, Error> connect(const End& own, const End& peer, const Patience& patience);

    const std::vector<Step>& steps() const { return steps_; }

  private:
    std::vector<Step> steps_;
    Walk main_;
    std::optional<Walk> control_;
};

// Where messages of UD go that are sent to the peer, and what they carry: told as a step.
tl::expected<std::unique_ptr<ibv_ah, DestroyAh>, Error> address_handle(ibv_pd* pd, const LocalPort& port,
                                                                       const Endpoint& peer, uint32_t qkey,
                                                                       const std::string& on, Step& step);

// What a call with these sets, in the order of the states; pure.
Step explain(Transport transport, ibv_qp_state from, const ibv_qp_attr& attributes, int mask,
             const LocalPort& port);

// What the other end has to know of the QPs, with PSNs and a Q_Key of their own; the caller
// sets what both ends take: mtu, reads, min_rnr_timer.
End end_of(const QueuePair& pair, const LocalPort& port);
// Changes what both ends take, of all QPs of the end.
void agree(End& end, ibv_mtu mtu, uint8_t reads, uint8_t min_rnr_timer);

} // namespace kxfer::verbs
