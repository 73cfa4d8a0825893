// SPDX-License-Identifier: MIT
//
// A completion queue: what the operations of its endpoints have become, in the order in which they
// ended. It grows as needed, so it cannot overrun: there are as many entries as operations that were
// accepted. An error stops fi_cq_read() until fi_cq_readerr() takes it.
//
// All calls drive progress, by Domain::progress(), and take the domain's lock.
#pragma once

#include <atomic>
#include <deque>

#include <rdma/fi_eq.h>

#include "libfabric/wait.hpp"

namespace kxfer::fi {

class Domain;

class Cq : public fid_cq {
  public:
    using Base = fid_cq;

    // fi_ops_domain.cq_open
    static int open(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context);

    explicit Cq(Domain& domain) : Base{}, domain_(domain) {}

    // Called with the domain's lock held. @source: FI_ADDR_NOTAVAIL if unknown.
    void push(const fi_cq_err_entry& entry, fi_addr_t source);

    int try_wait();

    std::atomic<unsigned> users{0}; // endpoints that are bound to it

  private:
    struct Entry {
        fi_cq_err_entry what;
        fi_addr_t source;
    };

    static int close(struct ::fid* handle);
    static int control(struct ::fid* handle, int command, void* argument);
    static ssize_t read(fid_cq* handle, void* entries, size_t count);
    static ssize_t read_from(fid_cq* handle, void* entries, size_t count, fi_addr_t* sources);
    static ssize_t read_error(fid_cq* handle, fi_cq_err_entry* entry, uint64_t flags);
    static ssize_t wait_read(fid_cq* handle, void* entries, size_t count, const void* condition, int timeout);
    static ssize_t wait_read_from(fid_cq* handle, void* entries, size_t count, fi_addr_t* sources,
                                  const void* condition, int timeout);
    static int signal(fid_cq* handle);
    static const char* text(fid_cq* handle, int prov_errno, const void* data, char* to, size_t length);
    static fi_ops_cq make_cq_ops();

    ssize_t take(void* entries, size_t count, fi_addr_t* sources);

    Domain& domain_;
    Wait wait_;
    std::deque<Entry> entries_;
    size_t entry_size_ = 0;
    bool signalled_ = false;
};

} // namespace kxfer::fi
