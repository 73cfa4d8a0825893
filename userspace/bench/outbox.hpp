// SPDX-License-Identifier: MIT
//
// The sending side of measured messages (series.hpp): makes their jobs, and sees to it
// that none finds the mailbox full. No more are sent than it holds beyond those that
// were received, which a READ of the status tells now and then; the same is done by the
// engine verbs for its receives.
#pragma once

#include <memory>
#include <string>

#include "bench/kernel_path.hpp"
#include "bench/series.hpp"

namespace kxfer::bench {

class Outbox {
  public:
    // Opens the mailbox and the status beside the path's export; the path has to outlive it.
    static tl::expected<std::unique_ptr<Outbox>, Error> open(KernelPath& path);

    uint64_t max_bytes() const { return mailbox_.length(); }

    // The job of an opening: no message of another series is to be sent behind it.
    Job open_series(const Workload& workload);
    // The peer has taken it, as far as the status tells.
    bool is_open() const { return status().series == series_; }

    // The next message, from its slot of the region; of a WRITE with immediate no bytes.
    Job next(const Workload& workload, const Region& region);
    uint64_t sent() const { return credits_.sent(); }
    uint64_t available() const { return credits_.available(); }
    bool low() const { return credits_.low(); }

    // One at a time; its completion is to be told to learn().
    Job read_status();
    bool is_reading() const { return reading_; }
    // EBUSY: another sender has begun a series. EBADMSG: the peer got what was not sent.
    tl::expected<void, Error> learn();
    bool all_received() const { return status().received == sent(); }

    // user_data of a READ of the status; no offset of a slot.
    static constexpr uint64_t status_mark = UINT64_MAX;

  private:
    Outbox(KernelPath& path, Memory memory);
    SeriesStatus status() const;

    std::string on_;
    Memory memory_; // the status as it was read, and the opening
    Region region_;
    Target mailbox_;
    Target status_;
    uint64_t series_ = 0;
    Workload workload_;
    verbs::Credits credits_;
    bool reading_ = false;
};

} // namespace kxfer::bench
