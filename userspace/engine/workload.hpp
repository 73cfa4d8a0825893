// SPDX-License-Identifier: MIT
//
// A workload says what is done; every engine does the same. Words:
//   slot    one operation's local and remote bytes; as many as `depth`, each
//           on pages of its own, at the same offset on both sides
//   batch   operations handed in by one call: a list of work requests with one
//           doorbell, or jobs of one SUBMIT
//   signal  completions asked for: one of every `signal_every` operations
// Each engine reports what it really does (Parameters). Engines that differ there must not be
// compared, see find_mismatch(); if their connections differ, the comparison is not judged. How
// they name local memory and what a completed message proves may differ: these are part of their
// cost, and are reported for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>

namespace kxfer::bench {

constexpr uint64_t page_bytes = 4096;

// Values of Parameters that several engines use.
constexpr char standing_readable[] = "once, before the measurement, for READ";
constexpr char standing_writable[] = "once, before the measurement, for READ and WRITE";
constexpr char local_once[] = "by an MR, registered once, before the measurement";
constexpr char local_in_request[] = "not at all: the work request carries the bytes (inline)";
constexpr char local_lkey[] = "by the PD's local_dma_lkey, without an MR";
constexpr char local_each[] = "by an MR that is registered for each operation";
constexpr char local_each_local[] =
    "by an MR that is registered for each operation, and invalidated before that is done";
constexpr char local_each_remote[] =
    "by an MR that is registered for each operation, and invalidated by the peer";
constexpr char local_rw[] = "by rdma_rw, mapped for each operation, without an MR";
constexpr char local_rw_each[] = "by rdma_rw, mapped and by an MR that is registered for each operation";
constexpr char local_each_request[] = "by an MR that is registered for each work request";
constexpr char local_copied[] = "copied by the CPU into a message of the lane";
constexpr char write_acknowledged[] = "placed in the peer's memory";
constexpr char write_sent[] = "sent, not acknowledged";
constexpr char write_handed_to_tcp[] = "handed to TCP";
constexpr char message_invalidated[] = "answered by the peer, by SEND_WITH_INV";
constexpr char message_placed[] = "at the peer's device, with a place in the mailbox";
constexpr char message_answered[] = "in the peer's mailbox, as its kernel has answered";
constexpr char message_taken[] = "in the memory of the mailbox's receiver, as its kernel has answered";

// The numbers are part of the verbs engine's protocol (verbs/wire.hpp).
enum class Operation : uint8_t {
    read,
    write,
    write_imm,
    send,
    send_imm,
    compare_swap,
    fetch_add,
    atomic_write,
    flush,
};

inline constexpr std::array all_operations = {
    Operation::read,      Operation::write,        Operation::write_imm,
    Operation::send,      Operation::send_imm,     Operation::compare_swap,
    Operation::fetch_add, Operation::atomic_write, Operation::flush};
// Operations that change 8 bytes as one, and no other size.
constexpr uint64_t atomic_bytes = 8;

// The kind of work that an operation does.
enum class Work : uint8_t {
    transfer,         // one of Operation
    registration,     // local memory is registered, and nothing moved: kverbs only
    ping_pong,        // a round trip of data, compared: see ping_pong.hpp
    write_ping_pong,  // a WRITE there and one back: see ping_pong.hpp
    send_ping_pong,   // a message there and the same one back, compared: see ping_pong.hpp
    notify_ping_pong, // a WRITE with its NOTIFY there and one back, compared: see ping_pong.hpp
};

constexpr Work last_work = Work::notify_ping_pong;
inline constexpr std::array other_work = {Work::registration, Work::ping_pong, Work::write_ping_pong,
                                          Work::send_ping_pong, Work::notify_ping_pong};

// "register" and so on; for transfers the operation has the name.
const char* work_name(Work work);
std::optional<Work> work_from(const std::string& name);

const char* operation_name(Operation operation);
std::optional<Operation> operation_from(const std::string& name);
// The reason, for an operation with is_beyond_kernel().
const char* why_beyond_kernel(Operation operation);

// Operations that return the old value, and need the right to do atomics.
constexpr bool is_fetch(Operation operation) {
    return operation == Operation::compare_swap || operation == Operation::fetch_add;
}
constexpr bool is_atomic(Operation operation) {
    return is_fetch(operation) || operation == Operation::atomic_write;
}
// Posted by user space alone, if at all.
constexpr bool is_beyond_kernel(Operation operation) {
    return operation == Operation::atomic_write || operation == Operation::flush;
}
constexpr bool has_immediate(Operation operation) {
    return operation == Operation::write_imm || operation == Operation::send_imm;
}
constexpr bool is_write(Operation operation) {
    return operation == Operation::write || operation == Operation::write_imm;
}
// Operations that take one of the peer's receives.
constexpr bool is_message(Operation operation) {
    return operation == Operation::send || has_immediate(operation);
}

struct Workload {
    Operation operation = Operation::read;
    uint64_t size = 64;
    unsigned depth = 1;
    unsigned batch = 1;
    Work work = Work::transfer;
    std::vector<Operation> turns = {}; // mix: the order of operations, repeated; else empty

    // "read" and so on, or "register", or "mix".
    const char* name() const {
        if (is_mix()) return "mix";
        return work == Work::transfer ? operation_name(operation) : work_name(work);
    }
    bool is_mix() const { return !turns.empty(); }
    Operation operation_at(uint64_t index) const {
        return is_mix() ? turns[index % turns.size()] : operation;
    }
    bool moves() const { return work != Work::registration; }
    // All operations are WRITEs, none longer than the inline bytes of a work request.
    bool is_inline(uint64_t max_inline) const {
        return moves() && !is_mix() && is_write(operation) && size <= max_inline;
    }
    // Round trips, in which both ends are active.
    bool is_round_trip() const { return work != Work::transfer && work != Work::registration; }
    // Round trips of which both ways are alike, so that half of one is one way.
    bool is_symmetric() const { return is_round_trip() && work != Work::ping_pong; }
    uint64_t stride() const { return (size + page_bytes - 1) / page_bytes * page_bytes; }
    uint64_t bytes() const { return stride() * depth; }
    uint64_t slot_offset(uint64_t index) const { return index % depth * stride(); }
};

// Path attributes of a connection's QP; they stay when those of the port change.
struct Connection {
    uint32_t path_mtu = 0;            // bytes; 0: unknown, or none, as on iWARP
    std::optional<unsigned> tos = {}; // type of service; empty: unknown
    std::string gid_type = {};        // empty: unknown, or none
};

// "path MTU: verbs 4096, job 1024"; empty if all values known for both are the same.
std::string find_difference(const std::string& name_a, const Connection& a, const std::string& name_b,
                            const Connection& b);

// What an engine really does, in the respects in which engines could differ.
struct Parameters {
    uint64_t local_bytes = 0;
    std::string local_layout;
    std::string local_registration = local_once; // how work requests name local memory
    uint64_t remote_bytes = 0;
    std::string remote_registration;
    unsigned max_depth = 0; // operations that it can have in flight
    unsigned signal_every = 1;
    std::string write_success;   // what a completed WRITE proves
    std::string message_success; // what a completed message proves; it is part of the cost
    std::string device;
    Connection connection; // may differ: then figures are reported, but not judged
};

// The cost of registering an engine's memory before use.
struct Registration {
    uint64_t bytes = 0;
    double local_ns = 0;            // REGION_ADD, which pins memory; in user space ibv_reg_mr()
    std::optional<double> grant_ns; // TARGET_OPEN; empty in user space: the responder does it, unseen
};

// Why two engines do not do the same work at this depth; empty if they do.
std::optional<Error> find_mismatch(const std::string& name_a, const Parameters& a, const std::string& name_b,
                                   const Parameters& b, unsigned depth);

// Anonymous memory of 4 KiB pages that were touched in shuffled order, so that
// they are not contiguous in physical memory: the layout of every buffer here.
class Memory {
  public:
    static tl::expected<Memory, Error> create(uint64_t length);
    Memory(Memory&& other) noexcept;
    Memory& operator=(Memory&& other) noexcept;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    std::byte* data() const { return data_; }
    uint64_t length() const { return length_; }
    // After the bytes, for MRs of user space only: rxe of 6.1 reads a pointer
    // past its table when an MR that fills its last table (256 pages) is used to
    // its end (rxe_mr_copy(), found by KASAN).
    static constexpr uint64_t spare_bytes = 4096;
    std::span<std::byte> bytes() const { return {data_, length_}; }
    static const char* layout() { return "4 KiB pages, scattered"; }

  private:
    Memory(std::byte* data, uint64_t length) : data_(data), length_(length) {}

    std::byte* data_ = nullptr;
    uint64_t length_ = 0;
};

} // namespace kxfer::bench
