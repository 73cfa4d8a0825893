// SPDX-License-Identifier: MIT
//
// Clients: processes of this node that measure the same at the same time, each with a
// session or connection and memory of its own. Who makes them is the first of them. They
// meet twice: before they measure, and when all have measured; in between nobody
// does anything else.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <kxfer/error.hpp>
#include <sys/types.h>
#include <tl/expected.hpp>

#include "bench/run.hpp"

namespace kxfer::bench {

class Clients {
  public:
    using Meet = std::function<tl::expected<void, Error>()>;
    // What a client does; it meets the others twice, unless it fails.
    using Work = std::function<tl::expected<RunResult, Error>(unsigned index, const Meet& meet)>;

    // Forks clients 1 to nr - 1: to be called while the process has one thread and no
    // session. They are ended by SIGTERM, also when this process dies.
    static tl::expected<std::unique_ptr<Clients>, Error> start(unsigned nr, const Work& work);
    Clients(const Clients&) = delete;
    Clients& operator=(const Clients&) = delete;
    // Bounded: who does not end in time is killed.
    ~Clients();

    // Waits until the others are there. Fails as the first of them that fails; EINTR: stopped()
    // is not 0.
    tl::expected<void, Error> gather(int (*stopped)());
    // Behind that: lets them go on.
    tl::expected<void, Error> release();
    // Both.
    tl::expected<void, Error> meet(int (*stopped)());
    // The second meeting. When stopped() is not 0, the others get SIGINT, which they catch, and come to
    // the meeting with what they have measured.
    tl::expected<void, Error> finish(int (*stopped)());
    // Behind the second meeting: what the others found, in their order.
    tl::expected<std::vector<RunResult>, Error> collect(int (*stopped)());

  private:
    struct Client {
        pid_t process = 0;
        int socket = -1; // of the pair, its own end in the client
    };

    Clients() = default;
    tl::expected<void, Error> add(unsigned index, const Work& work);

    std::vector<Client> clients_;
};

// The first one's result with those of the others: operations and histograms added up, the
// time of the slowest, the worst of the conditions, and each one's own figures (RunResult::clients).
RunResult join_clients(RunResult first, const std::vector<RunResult>& others);

} // namespace kxfer::bench
