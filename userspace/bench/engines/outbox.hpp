// SPDX-License-Identifier: MIT
//
// The sending side of measured messages (series.hpp): creates their jobs, and makes sure
// that no message finds the mailbox full. Messages sent but not known to be received never
// exceed the mailbox's capacity; a periodic READ of the status shows how many were received.
// Engine verbs does the same for its receives.
#pragma once

#include <memory>
#include <string>

#include "bench/engines/kernel_path.hpp"
#include "bench/engines/series.hpp"

namespace kxfer::bench {

class Outbox {
  public:
    // Opens the mailbox and the status of the path's export; the path has to outlive the outbox.
    static tl::expected<std::unique_ptr<Outbox>, Error> open(KernelPath& path);

    uint64_t max_bytes() const { return mailbox_.length(); }

    // The job of an opening; after it no message of another series must be sent.
    Job open_series(const Workload& workload);
    // According to the status, the peer has taken the opening.
    bool is_open() const { return status().series == series_; }

    // What a message of a mailbox that completed proves: the promise of its job. It may hold more.
    static const char* promise(Operation operation, uint64_t size, bool stored, bool eager);

    // The next message, from its slot of the region; for a WRITE with immediate, without bytes.
    Job next(const Workload& workload, const Region& region);
    uint64_t sent() const { return credits_.sent(); }
    uint64_t available() const { return credits_.available(); }
    bool low() const { return credits_.low(); }

    // One at a time; call learn() after it has completed.
    Job read_status();
    bool is_reading() const { return reading_; }
    // EBUSY: another sender has begun a series. EBADMSG: the peer got other messages than were sent.
    tl::expected<void, Error> learn();
    bool all_received() const { return status().received == sent(); }

    // user_data of a READ of the status; not the offset of a slot.
    static constexpr uint64_t status_mark = UINT64_MAX;

  private:
    Outbox(KernelPath& path, Memory memory);
    SeriesStatus status() const;
    Job send(const Region& region, uint64_t at, uint64_t bytes, uint64_t user_data) const;

    std::string on_;
    bool stored_;   // messages that have no immediate have KXFER_JOB_F_STORED
    Memory memory_; // the status as READ last, and the opening
    Region region_;
    Target mailbox_;
    Target status_;
    uint64_t series_ = 0;
    Workload workload_;
    verbs::Credits credits_;
    bool reading_ = false;
};

} // namespace kxfer::bench
