// SPDX-License-Identifier: MIT
//
// An event queue: of connections (of passive endpoints and of FI_EP_MSG), of addresses that were inserted,
// and what fi_eq_write() puts in. Reading it, and waiting for it, drives progress of the domains whose
// connections it is for.
//
// Locks. Events come from within calls and progress of a domain, with its lock held, so `lock_` is within
// that. `watch_lock_` is around both: it keeps a domain from being closed while the queue looks after it.
// watch() and unwatch() are called with no domain's lock held.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include "libfabric/wait.hpp"

namespace kxfer::fi {

class Domain;
class Fabric;

class Eq : public fid_eq {
  public:
    using Base = fid_eq;

    // fi_ops_fabric.eq_open
    static int open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);

    explicit Eq(Fabric& fabric) : Base{}, fabric_(fabric) {}

    void push(uint32_t event, const void* data, size_t length);
    // Of a connection: FI_CONNREQ (with @info, which the event takes over), FI_CONNECTED, FI_SHUTDOWN.
    void push_connection(uint32_t event, fid_t of, fi_info* info, const void* data, size_t length);
    // It could not be made. @status: a negative errno.
    void push_failure(fid_t of, int status, const void* data, size_t length);

    // What is queued of an object that is being closed is dropped.
    void forget(fid_t of);

    // Looks after a domain too, once for each call, until unwatch().
    int watch(Domain& domain);
    void unwatch(Domain& domain);

    int try_wait();

    std::atomic<unsigned> users{0}; // address vectors and endpoints that are bound to it

  private:
    struct Event {
        uint32_t number;
        std::vector<char> data; // what the program reads; of a failure: what came with it
        fid_t of = nullptr;     // whose connection
        fi_info* info = nullptr;
        int status = 0; // of a failure
    };

    struct Watched {
        Domain* domain;
        unsigned users;
    };

    static int close(struct ::fid* handle);
    static int control(struct ::fid* handle, int command, void* argument);
    static ssize_t read(fid_eq* handle, uint32_t* event, void* data, size_t length, uint64_t flags);
    static ssize_t read_error(fid_eq* handle, fi_eq_err_entry* entry, uint64_t flags);
    static ssize_t write(fid_eq* handle, uint32_t event, const void* data, size_t length, uint64_t flags);
    static ssize_t wait_read(fid_eq* handle, uint32_t* event, void* data, size_t length, int timeout,
                             uint64_t flags);
    static const char* text(fid_eq* handle, int prov_errno, const void* data, char* to, size_t length);
    static fi_ops_eq make_eq_ops();

    void push(Event event);
    void progress(bool before_sleep);
    ssize_t take(uint32_t* event, void* data, size_t length, uint64_t flags);
    void fill(const Event& event, fi_eq_err_entry& entry);

    Fabric& fabric_;
    std::mutex watch_lock_;
    std::vector<Watched> watched_;
    std::mutex lock_;
    Wait wait_;
    std::deque<Event> events_;
    std::vector<char> error_data_; // of the failure that was read last
};

} // namespace kxfer::fi
