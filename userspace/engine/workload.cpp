// SPDX-License-Identifier: MIT
#include "engine/workload.hpp"

#include <cerrno>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

namespace kxfer::bench {

const char* operation_name(Operation operation) {
    switch (operation) {
    case Operation::read:
        return "read";
    case Operation::write:
        return "write";
    case Operation::write_imm:
        return "write-imm";
    case Operation::send:
        return "send";
    case Operation::send_imm:
        return "send-imm";
    case Operation::compare_swap:
        return "compare-swap";
    case Operation::fetch_add:
        return "fetch-add";
    case Operation::atomic_write:
        return "atomic-write";
    case Operation::flush:
        return "flush";
    }
    return "?";
}

// As of Linux 6.12: for these operations init_send_wr() of rxe, the only driver that has them, takes
// neither address nor rkey from struct ib_rdma_wr; other values that a FLUSH needs have no field.
const char* why_beyond_kernel(Operation operation) {
    if (operation == Operation::flush)
        return "kernel verbs: struct ib_rdma_wr has no fields for the placement and the range of a FLUSH";
    return "kernel verbs: no driver takes the address and the rkey of an ATOMIC_WRITE from the kernel";
}

std::optional<Operation> operation_from(const std::string& name) {
    for (const Operation operation : all_operations)
        if (name == operation_name(operation)) return operation;
    return std::nullopt;
}

const char* work_name(Work work) {
    switch (work) {
    case Work::transfer:
        return "";
    case Work::registration:
        return "register";
    case Work::ping_pong:
        return "ping-pong";
    case Work::write_ping_pong:
        return "write-ping-pong";
    case Work::send_ping_pong:
        return "send-ping-pong";
    case Work::notify_ping_pong:
        return "notify-ping-pong";
    }
    return "?";
}

std::optional<Work> work_from(const std::string& name) {
    for (const Work work : other_work)
        if (name == work_name(work)) return work;
    return std::nullopt;
}

std::optional<Error> find_mismatch(const std::string& name_a, const Parameters& a, const std::string& name_b,
                                   const Parameters& b, unsigned depth) {
    const auto differ = [&](const std::string& what, const auto& value_a, const auto& value_b) {
        return Error("the engines do not do the same work; they differ in", what, EINVAL,
                     "leave one of them out: --engine",
                     fmt::format("{}: {}; {}: {}", name_a, value_a, name_b, value_b));
    };

    for (const auto& [name, engine] : {std::pair{name_a, &a}, std::pair{name_b, &b}}) {
        if (engine->max_depth == 0)
            return Error(fmt::format("engine {} cannot do one such operation", name), "", EINVAL,
                         "ask for a smaller --size; what the device takes: kxfer device show",
                         "it takes more work requests than this device keeps in flight");
        if (engine->max_depth < depth)
            return Error(fmt::format("engine {} cannot keep {} operations in flight", name, depth), "",
                         EINVAL, fmt::format("use --depth {} or less", engine->max_depth),
                         fmt::format("{} is the most for this size and device", engine->max_depth));
    }
    if (a.local_layout != b.local_layout) return differ("local memory", a.local_layout, b.local_layout);
    if (a.local_bytes != b.local_bytes) return differ("bytes of local memory", a.local_bytes, b.local_bytes);
    if (a.remote_registration != b.remote_registration)
        return differ("registration of the remote memory", a.remote_registration, b.remote_registration);
    if (a.remote_bytes != b.remote_bytes)
        return differ("bytes of remote memory", a.remote_bytes, b.remote_bytes);
    if (a.signal_every != b.signal_every)
        return differ("signalling interval", a.signal_every, b.signal_every);
    if (a.write_success != b.write_success)
        return differ("what a completed WRITE proves", a.write_success, b.write_success);
    if (a.device != b.device) return differ("device", a.device, b.device);
    return std::nullopt;
}

std::string find_difference(const std::string& name_a, const Connection& a, const std::string& name_b,
                            const Connection& b) {
    const auto differ = [&](const std::string& what, const auto& value_a, const auto& value_b) {
        return fmt::format("{}: {} {}, {} {}", what, name_a, value_a, name_b, value_b);
    };

    if (a.path_mtu && b.path_mtu && a.path_mtu != b.path_mtu)
        return differ("path MTU", a.path_mtu, b.path_mtu);
    if (a.tos && b.tos && *a.tos != *b.tos) return differ("type of service", *a.tos, *b.tos);
    if (!a.gid_type.empty() && !b.gid_type.empty() && a.gid_type != b.gid_type)
        return differ("GID type", a.gid_type, b.gid_type);
    return {};
}

tl::expected<Memory, Error> Memory::create(uint64_t length) {
    const uint64_t rounded = (length + page_bytes - 1) / page_bytes * page_bytes;
    void* at =
        mmap(nullptr, rounded + spare_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return tl::unexpected(Error("cannot allocate memory", fmt::format("{} bytes", rounded), errno,
                                    "ask for a smaller --size or --depth"));
    Memory memory(static_cast<std::byte*>(at), rounded);
    // Huge pages would be contiguous; a kernel without them refuses the hint, which is fine.
    madvise(at, rounded + spare_bytes, MADV_NOHUGEPAGE);

    std::vector<uint64_t> pages(rounded / page_bytes);
    std::iota(pages.begin(), pages.end(), 0);
    std::minstd_rand random(1);
    for (uint64_t left = pages.size(); left > 1; left--) std::swap(pages[left - 1], pages[random() % left]);
    for (uint64_t page : pages) memory.data_[page * page_bytes] = std::byte{0};
    return memory;
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), length_(std::exchange(other.length_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(length_, other.length_);
    return *this;
}

Memory::~Memory() {
    if (data_) munmap(data_, length_ + spare_bytes);
}

} // namespace kxfer::bench
