// SPDX-License-Identifier: MIT
//
// Finds out that the peer of a connection by rdma_cm has died without a word: a QP that sends
// nothing notices nothing. Now and then it WRITEs no bytes, for which no key is needed and which
// tells nobody anything. Where the peer is gone that fails, or, as retry_cnt 7 is endless to rxe,
// is not done when the next is due: the connection has ended in either case. On siw a WRITE is done
// when TCP has it, so there TCP has to give up (15 minutes) and ends the connection by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs/connection.hpp"

namespace kxfer::verbs {

class Probe {
  public:
    static constexpr uint64_t wr_id = UINT64_MAX;
    static constexpr unsigned sends = 1; // that it takes of the send queue, and of the CQ

    bool due(Clock::duration period) const { return Clock::now() - posted_ >= period; }
    // By who polls the CQ, whatever has come.
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
