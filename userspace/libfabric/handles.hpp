// SPDX-License-Identifier: MIT
//
// What fi_info.handle may name: passive endpoints of the fabric, and requests for connections that they have
// got. A program may keep the handle of a request that is answered, or whose endpoint is closed: it is
// looked up here before it is used.
//
// The lock is the innermost of all.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <rdma/fabric.h>

#include "libfabric/address.hpp"

namespace kxfer::fi {

class Passive;

// What is known of a request.
struct Request {
    const Passive* passive;
    Address from;  // what its sender says to be its address
    uint64_t word; // by which the sender will send
    Address at;    // of the passive endpoint
};

class Handles {
  public:
    void add(Passive& passive);
    // With all of its requests.
    void remove(const Passive& passive);
    // NULL: there is no such passive endpoint.
    Passive* passive_of(fid_t handle) const;

    // NULL: the passive endpoint has @most requests, or the same one.
    fid_t add(const Request& request, size_t most);
    std::optional<Request> find(fid_t handle) const;
    // It is answered, once.
    std::optional<Request> take(fid_t handle);

  private:
    struct Waiting {
        struct fid fid;
        Request request;
    };

    mutable std::mutex lock_;
    std::unordered_map<fid_t, Passive*> passives_;
    std::unordered_map<fid_t, std::unique_ptr<Waiting>> requests_;
};

} // namespace kxfer::fi
