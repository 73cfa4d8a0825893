// SPDX-License-Identifier: MIT
//
// Detects that the peer of a connection by rdma_cm has died without notice: a QP that sends
// nothing notices nothing. A probe is a periodic WRITE of no bytes, which needs no key and changes
// nothing at the peer. If the peer is gone the WRITE fails or, as rxe takes retry_cnt 7 as
// endless, has not completed when the next is due. In either case the connection has ended. On siw
// a WRITE completes when TCP has it, so there TCP has to give up (15 minutes), which ends the
// connection.
#pragma once

#include <atomic>
#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs/connection.hpp"

namespace kxfer::verbs {

class Probe {
  public:
    static constexpr uint64_t wr_id = UINT64_MAX;
    static constexpr unsigned sends = 1; // entries that it takes in the send queue, and in the CQ

    bool due(Clock::duration period) const { return Clock::now() - posted_ >= period; }
    // The poller of the CQ calls this for any completion.
    void take(const ibv_wc& completion) {
        if (completion.wr_id == wr_id && completion.status == IBV_WC_SUCCESS) under_way_ = false;
    }
    // False: the peer is gone.
    bool post(ibv_qp* qp) {
        ibv_send_wr request{}, *bad = nullptr;

        if (under_way_) return false;
        request.wr_id = wr_id;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED;
        under_way_ = true;
        posted_ = Clock::now();
        return ibv_post_send(qp, &request, &bad) == 0;
    }

  private:
    Clock::time_point posted_ = Clock::now();
    std::atomic<bool> under_way_{false};
};

} // namespace kxfer::verbs
