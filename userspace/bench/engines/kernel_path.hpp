// SPDX-License-Identifier: MIT
//
// The common base of the engines that go through /dev/kxfer: a session with the
// local memory as a region, and a target on an export of the peer.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <kxfer/kxfer.hpp>

#include "engine/workload.hpp"

namespace kxfer::bench {

// The op by which a job or a run moves the bytes of an operation; a WRITE with immediate is a WRITE.
inline kxfer_op op_of(Operation operation) {
    switch (operation) {
    case Operation::read:
        return KXFER_OP_READ;
    case Operation::compare_swap:
        return KXFER_OP_COMPARE_SWAP;
    case Operation::fetch_add:
        return KXFER_OP_FETCH_ADD;
    case Operation::send:
    case Operation::send_imm:
        return KXFER_OP_SEND;
    default:
        return KXFER_OP_WRITE;
    }
}

struct PathOptions {
    kxfer_addr peer = {};        // address of a listener
    kxfer_addr local = {};       // own address; family 0: any
    std::string device;          // empty: any
    std::string key;             // the key both ends have to prove; empty: none
    std::optional<uint32_t> tos; // type of service; none: the device's default
    Patience patience;           // of the module's links
    uint32_t in_flight_kib = 0;  // of the module's links; 0: the module's choice
    std::string export_name;     // an export at least as long as the memory
    uint32_t context = KXFER_CONTEXT_POLLED;
    uint32_t wait_flags = 0;                               // KXFER_WAIT_F_*
    bool ring = false;                                     // job: completions come into shared memory
    uint32_t memory = KXFER_BENCH_MEMORY_DEFAULT;          // kverbs: enum kxfer_bench_memory
    bool mr_pool = false;                                  // kverbs: MRs for each operation are from a pool
    uint32_t invalidate = KXFER_BENCH_INVALIDATE_DEFERRED; // kverbs: how such MRs become invalid
    bool dedicated = false;       // kverbs: use a dedicated connection for everything, not a lane
    bool cq_pool = false;         // the dedicated connection's CQ is from the kernel's pool
    bool inline_writes = true;    // kverbs: a short WRITE's payload goes in its work request
    unsigned signal = 1;          // one completion for so many operations; 0: for each batch
    bool writable = true;         // ask for the right to write to the export
    bool atomic = false;          // ask for atomics, but do without if the peer does not grant them
    bool stored = false;          // job: messages are done when they are in the mailbox, or received
    bool messages = false;        // job: use the export's mailbox, but do without if there is none
    bool ud = false;              // kverbs: send messages by UD
    std::optional<uint32_t> qkey; // kverbs: Q_Key of UD messages in place of the responder's
    std::chrono::milliseconds timeout{10000};

    bool signal_batch() const { return signal == 0; }
    unsigned signal_every(const Workload& workload) const { return signal ? signal : workload.batch; }
};

// Opens the peer of these options, and an export or mailbox of that peer.
tl::expected<Peer, Error> open_peer(Session& session, const PathOptions& options);
tl::expected<Target, Error> open_beside(Peer& peer, const PathOptions& options, const std::string& name,
                                        uint32_t rights);
// The link of a connected peer; ECONNRESET: it is not connected any more.
tl::expected<kxfer_info_link, Error> link_of(Session& session, const Peer& peer, const PathOptions& options);

// The connection of a link, as its lanes report it; if data lanes differ, the least path MTU.
tl::expected<Connection, Error> connection_of(const Session& session, uint64_t link);

// type: enum ib_gid_type. Empty: no GID type, as on iWARP.
std::string gid_type_name(uint32_t type);

// The work requests that an engine needs for an operation.
struct Requests {
    bool registered = false; // local memory is one piece, in an MR
    unsigned extra = 0;      // work requests besides those that move data
};

class KernelPath {
  public:
    // The memory has to outlive the path.
    static tl::expected<KernelPath, Error> open(const PathOptions& options, const Memory& memory);

    const PathOptions& options() const { return options_; }
    Session& session() { return session_; }
    const Region& region() const { return region_; }
    const Target& target() const { return target_; }
    const std::string& peer() const { return peer_; }
    std::string on() const { return peer_ + '/' + options_.export_name; }
    bool iwarp() const { return iwarp_; }
    // Short messages need no answer: the link's modules, and the device here, let them.
    bool eager() const { return eager_ && write_sges_ > 1; }
    // Opens another export of the peer.
    tl::expected<Target, Error> open_another(const std::string& name, uint32_t rights) {
        return open_beside(peer_handle_, options_, name, rights);
    }
    // Why there are no atomics; empty: there are.
    std::string no_atomics() const;
    const std::string& device() const { return device_; }
    const Registration& registration() const { return registration_; }
    // The payload of these WRITEs fits into the work requests.
    bool is_inline(const Workload& workload) const { return workload.is_inline(max_inline_); }
    // SGEs, one for each scattered page, of a work request other than a READ.
    unsigned write_sges() const { return write_sges_; }
    uint64_t remote_bytes() const { return target_.length(); }
    // Most bytes that the device registers at once.
    uint64_t max_registration() const { return max_registration_; }
    // KXFER_FEATURE_* of the module.
    uint64_t features() const { return features_; }
    unsigned max_jobs() const { return max_jobs_; }
    unsigned max_submit() const { return max_submit_; } // jobs of one SUBMIT
    // max_depth is what the lane has room for.
    Parameters parameters(const Workload& workload, const Requests& how = {}) const;

  private:
    KernelPath(const PathOptions& options, const Memory& memory, Session session);
    tl::expected<void, Error> connect(const Memory& memory);
    tl::expected<void, Error> open_target();
    tl::expected<Target, Error> open_timed(uint32_t rights);
    tl::expected<void, Error> find_limits();
    unsigned max_sges(Operation operation) const {
        return operation == Operation::read ? read_sges_ : write_sges_;
    }
    unsigned count_requests(const Workload& workload, const Requests& how) const;

    PathOptions options_;
    uint64_t local_bytes_;
    std::string peer_;
    // Destroyed from the last to the first.
    Session session_;
    Region region_;
    Peer peer_handle_;
    Target target_;
    Registration registration_;
    std::string device_;
    Connection connection_;
    bool iwarp_ = false;
    bool eager_ = false;   // KXFER_LINK_EAGER
    bool atomics_ = false; // the device has them
    uint64_t max_registration_ = 0;
    uint64_t features_ = 0;
    unsigned max_jobs_ = 0;
    unsigned max_submit_ = 1;
    unsigned credits_ = 0;   // work requests for which the link's data lanes have room
    unsigned read_sges_ = 1; // SGEs of a work request
    unsigned write_sges_ = 1;
    unsigned max_inline_ = 0; // inline bytes of a WRITE's work request
};

} // namespace kxfer::bench
