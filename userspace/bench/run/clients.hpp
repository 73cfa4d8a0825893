// SPDX-License-Identifier: MIT
//
// Clients: processes of this node that measure the same at the same time, each with a
// session or connection and memory of its own. The process that starts them is the first
// client. They meet twice: before they measure, and when all have measured; between the
// meetings they only measure.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <kxfer/error.hpp>
#include <sys/types.h>
#include <tl/expected.hpp>

#include "bench/run/run.hpp"

namespace kxfer::bench {

class Clients {
  public:
    using Meet = std::function<tl::expected<void, Error>()>;
    // The work of a client, which meets the others twice unless it fails.
    using Work = std::function<tl::expected<RunResult, Error>(unsigned index, const Meet& meet)>;

    // Forks clients 1 to nr - 1: must be called while the process has one thread and no
    // session. SIGTERM ends them, also when this process dies.
    static tl::expected<std::unique_ptr<Clients>, Error> start(unsigned nr, const Work& work);
    Clients(const Clients&) = delete;
    Clients& operator=(const Clients&) = delete;
    // Takes a limited time: a client that does not end in time is killed.
    ~Clients();

    // Waits until the others have come to the meeting. Fails with the error of the first one that
    // fails; EINTR: stopped() is not 0.
    tl::expected<void, Error> gather(int (*stopped)());
    // After gather(): lets them go on.
    tl::expected<void, Error> release();
    // gather() and release().
    tl::expected<void, Error> meet(int (*stopped)());
    // The second meeting. When stopped() is not 0, the others get SIGINT, which they catch, and come to
    // the meeting with what they have measured.
    tl::expected<void, Error> finish(int (*stopped)());
    // After finish(): the results of the others, in their order.
    tl::expected<std::vector<RunResult>, Error> collect(int (*stopped)());

  private:
    struct Client {
        pid_t process = 0;
        int socket = -1; // one end of the pair; in the client, the client's end
    };

    Clients() = default;
    tl::expected<void, Error> add(unsigned index, const Work& work);

    std::vector<Client> clients_;
};

// Joins the first client's result with the others': operations and histograms added up, the
// time of the slowest, the worst conditions, and the figures of each (RunResult::clients).
RunResult join_clients(RunResult first, const std::vector<RunResult>& others);

} // namespace kxfer::bench
