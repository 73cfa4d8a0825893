// SPDX-License-Identifier: MIT
//
// The requester asks the counterpart at the other end (counterpart.hpp). For a workload in the reverse
// direction it exports memory of its own under a name unique to the request, and listens where the
// peer finds it. For round trips it listens too: the partner opens the memory of their initiator.
// Nothing is asked while operations of this process are measured.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <kxfer/kxfer.hpp>

#include "bench/engines/kernel_path.hpp"
#include "bench/peer/counterpart_wire.hpp"
#include "bench/peer/listening.hpp"
#include "bench/run/run.hpp"

namespace kxfer::bench {

struct Reverse {
    ReverseResult result;
    ProcessUsage usage; // of the whole peer process during the measurement
};

class Requester {
  public:
    // ENOENT: that export has no counterpart.
    static tl::expected<std::unique_ptr<Requester>, Error> open(const PathOptions& options);

    // The node as the peer reports it.
    tl::expected<PeerNode, Error> node();

    // Usage of the peer's process since it began.
    tl::expected<ProcessUsage, Error> usage();

    // Exports memory for the workload, which the peer does by the plan; ERANGE and others: the peer
    // would refuse it.
    tl::expected<void, Error> lend(const Workload& workload, const RunPlan& plan);
    // Waits until the peer has connected and warmed up, or until stopped() is not 0.
    tl::expected<void, Error> prepare(int (*stopped)());
    // When this returns, the peer begins to measure.
    tl::expected<void, Error> go();
    // Called when this side has measured. Waits until the peer has measured too, at most `longest`,
    // or until stopped() is not 0; then the peer verifies.
    tl::expected<void, Error> end(std::chrono::nanoseconds longest, int (*stopped)());
    // Waits for the peer's result, with the same limits.
    tl::expected<Reverse, Error> finish(std::chrono::nanoseconds longest, int (*stopped)());

    // Has the peer answer round trips until the requester ends; returns the name of the peer's export.
    // Waits until it is ready, or until stopped() is not 0.
    tl::expected<std::string, Error> begin_round_trips(const Workload& workload, bool by_runs,
                                                       int (*stopped)());
    // Why the peer no longer answers round trips, if it reports that.
    std::optional<Error> why_no_answer();
    ~Requester();

  private:
    Requester(const PathOptions& options, Session session, Memory memory);
    tl::expected<void, Error> connect();
    tl::expected<void, Error> listen();
    tl::expected<void, Error> send(const Ask& ask);
    tl::expected<void, Error> say(Verb verb);
    tl::expected<Answer, Error> read_answer();
    Error busy() const;
    tl::expected<Answer, Error> wait_for(uint64_t request, Progress progress,
                                         std::chrono::nanoseconds longest, int (*stopped)());
    Error failed(const Answer& answer) const;

    PathOptions options_;
    std::string peer_;
    Session session_;
    Memory memory_; // the answer as READ last, and on the page after it the request
    std::optional<Memory> lent_;
    Ask ask_;
    bool answered_ = false; // the peer answers round trips
    // Destroyed from the last to the first.
    Listening listening_;
    Region region_, lent_region_;
    Export lent_export_;
    Peer peer_handle_;
    Target mailbox_, answer_;
};

} // namespace kxfer::bench
