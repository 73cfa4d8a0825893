// SPDX-License-Identifier: MIT
//
// A domain is a session of kxfer, the program's or that of a passive endpoint: its regions, targets, peers
// and jobs, and the lock of all that is opened from it. Completions come through a ring in shared memory, so
// progress() without anything to do makes no system call.
//
// Lock. Each call of libfabric takes `lock` once, at its begin, and everything below runs with it. Calls
// of the kernel that wait for a peer's kernel (PEER_OPEN, TARGET_OPEN; ten seconds at most) are made with
// it, too: other threads of the domain wait meanwhile. No call waits for a process of a peer. An event
// queue's watch_lock_ is around it (Eq), the queue's lock_ and that of Handles are within.
//
// Progress is manual. A timer of one second wakes those who sleep on a descriptor of the domain, so that
// peers of whom something is expected are asked whether they are still there (Member::look_after()).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <rdma/fi_domain.h>

#include "libfabric/address.hpp"
#include "libfabric/pending.hpp"
#include "libfabric/registration.hpp"

namespace kxfer::fi {

class Fabric;
class Member;

class Domain : public fid_domain {
  public:
    using Base = fid_domain;

    // fi_ops_fabric.domain
    static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

    explicit Domain(Fabric& fabric) : Base{}, fabric_(fabric) {}
    ~Domain();

    // Opens the session.
    int start(const fi_info& info);

    Fabric& fabric() const { return fabric_; }
    int session_fd() const { return kxfer_session_fd(session); }
    int timer_fd() const { return timer_; }

    // Hands a job in. 0; -FI_EAGAIN: no room now; else it is wrong, or its target has ended.
    int submit(kxfer_job job, Pending& pending);

    // Takes completions, and lets the members go on.
    void progress();

    // Before a thread sleeps: a timer that has expired meanwhile does not wake it.
    void quiet_timer();

    // Waits a moment for a completion, and takes what there is.
    void doze();

    // The peer of the session for a node; connects with it the first time.
    int connect_node(const Address& node, uint32_t* peer);

    // Pins memory. *region gets the id.
    int add_region(const void* at, size_t length, bool writable, uint32_t* region);
    // The same of a dma-buf.
    int import_region(const Source& source, bool writable, uint32_t* region);
    // Waits for jobs that use it.
    void remove_region(uint32_t region);

    // Publishes a range of a region. *id gets the id of the export.
    int add_export(const std::string& name, uint32_t region, uint64_t offset, uint64_t length,
                   uint32_t rights, uint64_t cookie, uint32_t* id);

    // Opens an export or a mailbox of a node.
    int open_target(const Address& node, const std::string& name, uint32_t rights, uint64_t word,
                    kxfer_target_open* opened);

    // Who may reach what is published: processes of the own user, or with FI_KXFER_ANY_USER all. With
    // these rights, in storage of the caller; NULL: no rule.
    const kxfer_rule* rule_for(uint32_t rights, kxfer_rule& rule) const;

    bool is_virtual() const { return (mr_mode_ & FI_MR_VIRT_ADDR) != 0; }
    bool has_atomics() const { return has_atomics_; }
    bool has_device_memory() const { return has_device_memory_; }
    bool chooses_keys() const { return (mr_mode_ & FI_MR_PROV_KEY) != 0; }

    void add(Member& member) { members_.push_back(&member); }
    void remove(Member& member);

    std::mutex lock;
    kxfer_session* session = nullptr;
    uint64_t id = 0;                // what other processes know it by: part of the names of its exports
    uint64_t serial = 0;            // of exports and keys
    std::atomic<unsigned> users{0}; // objects that were opened from it
    uint32_t address_format = 0;

  private:
    struct Node {
        Address address;
        uint32_t peer;
    };

    static int close(struct ::fid* handle);

    int start_timer();
    void tick();

    Fabric& fabric_;
    int timer_ = -1;
    uint64_t next_tick_ns_ = 0;
    int mr_mode_ = 0;
    bool has_atomics_ = false;       // FI_ATOMIC was asked for
    bool has_device_memory_ = false; // FI_HMEM was
    std::vector<Node> nodes_;
    std::vector<Member*> members_;
};

// fi_ops_domain.query_atomic
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attr, uint64_t flags);

// A random number, for what other processes must not have by chance.
uint64_t random_number();

} // namespace kxfer::fi
