// SPDX-License-Identifier: MIT
//
// The states of a QP, RESET-INIT-RTR-RTS, each entered by one ibv_modify_qp(): what
// rdma_cm does unseen. Every attribute that is set is kept with its meaning.
#pragma once

#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <tl/expected.hpp>

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
    std::string from;
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
    // `on` is the peer, for errors.
    Walk(ibv_qp* qp, LocalPort port, std::string on) : qp_(qp), port_(port), on_(std::move(on)) {}

    // access: what the peer may do (IBV_ACCESS_*).
    tl::expected<void, Error> init(int access);
    // mtu and reads: what both ends take.
    tl::expected<void, Error> ready_to_receive(const Endpoint& own, const Endpoint& peer);
    tl::expected<void, Error> ready_to_send(const Endpoint& own, const Patience& patience);

    const std::vector<Step>& steps() const { return steps_; }

  private:
    tl::expected<void, Error> modify(ibv_qp_attr& attributes, int mask);

    ibv_qp* qp_;
    LocalPort port_;
    std::string on_;
    ibv_qp_state state_ = IBV_QPS_RESET;
    std::vector<Step> steps_;
};

// What a call with these sets, in the order of the states; pure.
Step explain(ibv_qp_state from, const ibv_qp_attr& attributes, int mask, const LocalPort& port);

// What the other end has to know of a QP, with a PSN of its own; the caller adds what both
// ends take: mtu, reads, min_rnr_timer.
Endpoint endpoint_of(const ibv_qp& qp, const LocalPort& port);

} // namespace kxfer::verbs
