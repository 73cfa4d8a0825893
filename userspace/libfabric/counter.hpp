// SPDX-License-Identifier: MIT
//
// A counter of operations that ended well, and of those that failed. All calls drive progress.
#pragma once

#include <atomic>

#include <rdma/fi_eq.h>

#include "libfabric/wait.hpp"

namespace kxfer::fi {

class Domain;

class Counter : public fid_cntr {
  public:
    using Base = fid_cntr;

    // fi_ops_domain.cntr_open
    static int open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);

    explicit Counter(Domain& domain) : Base{}, domain_(domain) {}

    // Called with the domain's lock held.
    void count(bool failed);

    int try_wait();

    std::atomic<unsigned> users{0}; // endpoints that are bound to it

  private:
    static int close(struct ::fid* handle);
    static int control(struct ::fid* handle, int command, void* argument);
    static uint64_t read(fid_cntr* handle);
    static uint64_t read_errors(fid_cntr* handle);
    static int add(fid_cntr* handle, uint64_t value);
    static int set(fid_cntr* handle, uint64_t value);
    static int add_errors(fid_cntr* handle, uint64_t value);
    static int set_errors(fid_cntr* handle, uint64_t value);
    static int wait(fid_cntr* handle, uint64_t threshold, int timeout);
    static fi_ops_cntr make_counter_ops();

    int change(uint64_t& value, uint64_t to);

    Domain& domain_;
    Wait wait_;
    uint64_t value_ = 0;
    uint64_t errors_ = 0;
    uint64_t seen_ = 0; // the sum of both when a thread last looked
};

} // namespace kxfer::fi
