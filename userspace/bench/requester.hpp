// SPDX-License-Identifier: MIT
//
// Who asks the counterpart at the other end (counterpart.hpp). For a workload the other way round
// it lends memory of its own under a name that only that request has, and listens where the
// peer finds it. For round trips it listens, too, for the memory of who makes them. Nothing is asked while
// operations of this process are measured.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <kxfer/kxfer.hpp>

#include "bench/counterpart_wire.hpp"
#include "bench/kernel_path.hpp"
#include "bench/listening.hpp"
#include "bench/run.hpp"

namespace kxfer::bench {

struct Reverse {
    ReverseResult result;
    ProcessUsage usage; // of all of the peer's process meanwhile
};

class Requester {
  public:
    // ENOENT: nobody is to be asked beside that export.
    static tl::expected<std::unique_ptr<Requester>, Error> open(const PathOptions& options);

    // What node the peer says it is.
    tl::expected<PeerNode, Error> node();

    // Since the peer's process began.
    tl::expected<ProcessUsage, Error> usage();

    // Memory for the workload, as the peer does it by the plan; ERANGE and others: it would not.
    tl::expected<void, Error> lend(const Workload& workload, const RunPlan& plan);
    // The peer connects and warms up, and has done so when this returns; unless stopped() is not 0.
    tl::expected<void, Error> prepare(int (*stopped)());
    // It begins when this returns.
    tl::expected<void, Error> go();
    // This side has measured. Waits until the peer has, too, but no longer than so long, or until
    // stopped() is not 0; then it verifies.
    tl::expected<void, Error> end(std::chrono::nanoseconds longest, int (*stopped)());
    // Likewise: what it found.
    tl::expected<Reverse, Error> finish(std::chrono::nanoseconds longest, int (*stopped)());

    // The peer answers round trips from now on, in memory of the name that is returned, until this
    // ends; unless stopped() is not 0.
    tl::expected<std::string, Error> begin_round_trips(const Workload& workload, int (*stopped)());
    // Why the peer no longer answers them, if it says so.
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
    Memory memory_; // the answer as it was READ, and on the page behind it what is asked
    std::optional<Memory> lent_;
    Ask ask_;
    bool answered_ = false; // round trips are
    // Destroyed from the last to the first.
    Listening listening_;
    Region region_, lent_region_;
    Export lent_export_;
    Peer peer_handle_;
    Target mailbox_, answer_;
};

} // namespace kxfer::bench
