// SPDX-License-Identifier: MIT
//
// An event queue. Endpoints without connections have only one kind of event: that addresses were
// inserted. fi_eq_write() puts others in.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include <rdma/fi_eq.h>

#include "libfabric/wait.hpp"

namespace kxfer::fi {

class Fabric;

class Eq : public fid_eq {
  public:
    using Base = fid_eq;

    // fi_ops_fabric.eq_open
    static int open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);

    explicit Eq(Fabric& fabric) : Base{}, fabric_(fabric) {}

    void push(uint32_t event, const void* data, size_t length);
    int try_wait();

    std::atomic<unsigned> users{0}; // address vectors that are bound to it

  private:
    struct Event {
        uint32_t number;
        std::vector<char> data;
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

    ssize_t take(uint32_t* event, void* data, size_t length, uint64_t flags);

    Fabric& fabric_;
    std::mutex lock_;
    Wait wait_;
    std::deque<Event> events_;
};

} // namespace kxfer::fi
