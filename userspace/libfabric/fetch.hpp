// SPDX-License-Identifier: MIT
//
// The READ of a message that its sender offers, from the sender's export into the buffer of the receive.
// It opens the export, registers the buffer if the program has not, and undoes both. If one of them cannot
// be had, the sender is asked for the bytes instead.
#pragma once

#include <cerrno>
#include <cstdint>

#include "libfabric/pending.hpp"

namespace kxfer::fi {

class Endpoint;
struct Arrival;

class Fetch final : public Pending {
  public:
    Fetch(Endpoint& endpoint, Arrival* arrival) : endpoint_(endpoint), arrival_(arrival) {}

    // Begins, or tries again. Ends the fetch if it cannot be.
    void go_on();

    // For room: the job is not handed in yet.
    bool is_waiting() const { return !handed_in_; }

    // Ends a fetch that waits; its endpoint is being closed.
    void abandon() { finish(-ECANCELED); }

    void ended(const kxfer_completion& completion) override;

  private:
    enum class Step { done, later, never, lost };

    Step prepare();
    Step open_export();
    Step find_region();
    void undo();
    void finish(int status);

    Endpoint& endpoint_;
    Arrival* arrival_;
    uint32_t target_ = 0;
    uint32_t region_ = 0;
    uint64_t offset_ = 0;
    bool own_region_ = false;
    bool handed_in_ = false;
    int status_ = 0;
};

} // namespace kxfer::fi
