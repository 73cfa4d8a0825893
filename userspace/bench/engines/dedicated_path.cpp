// SPDX-License-Identifier: MIT
#include "bench/engines/dedicated_path.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Receives as in engine verbs: as many as perftest posts (-r), or more than can be in flight.
constexpr uint32_t least_receives = 512;
// As in engine verbs: messages not counted within that time are lost.
constexpr auto grace = std::chrono::milliseconds(200);

// The op that the responder has to allow; READ and WRITE are allowed in any case.
uint32_t op_to_allow(Operation operation) {
    switch (operation) {
    case Operation::read:
    case Operation::write:
        return KXFER_OP_READ;
    case Operation::write_imm:
        return KXFER_OP_WRITE;
    case Operation::compare_swap:
        return KXFER_OP_COMPARE_SWAP;
    case Operation::fetch_add:
        return KXFER_OP_FETCH_ADD;
    default:
        return KXFER_OP_SEND;
    }
}

kxfer_dedicated_open request_of(const KernelPath& path, const kxfer_addr& responder,
                                const Workload& workload) {
    const auto& options = path.options();
    kxfer_dedicated_open open = {};

    open.remote = responder;
    open.local = options.local;
    static_cast<void>(set_text(open.device, options.device)); // fits: the path was opened with it
    open.context = options.context;
    open.timeout_ms = static_cast<uint32_t>(options.timeout.count());
    open.length = path.remote_bytes();
    open.op = op_to_allow(workload.operation);
    if (options.writable) open.flags |= KXFER_DEDICATED_F_WRITE;
    if (options.cq_pool) open.flags |= KXFER_DEDICATED_F_CQ_POOL;
    if (!is_message(workload.operation)) return open;
    if (has_immediate(workload.operation)) open.flags |= KXFER_DEDICATED_F_IMM;
    if (options.invalidate == KXFER_BENCH_INVALIDATE_REMOTE) open.flags |= KXFER_DEDICATED_F_ANSWERED;
    open.receives = std::clamp<uint32_t>(4 * workload.depth, least_receives, KXFER_DEDICATED_MAX_RECEIVES);
    open.slots = workload.depth;
    open.bytes = static_cast<uint32_t>(workload.size);
    open.transport = options.ud ? KXFER_TRANSPORT_UD : KXFER_TRANSPORT_RC;
    open.qkey = options.qkey.value_or(0);
    if (options.qkey) open.flags |= KXFER_DEDICATED_F_QKEY;
    return open;
}

std::string advice(int error) {
    switch (error) {
    case ECONNREFUSED:
        return "start a responder there: kxfer serve SOURCE --verbs";
    case EBUSY:
        return "it serves others; try again later";
    case EPROTO:
    case EPROTONOSUPPORT:
    case EOPNOTSUPP:
        return "is it of this version of kxfer?";
    case EDQUOT:
    case ENOMEM:
        return "ask for less: a smaller --size or --depth";
    default:
        return "see: kxfer link list, dmesg";
    }
}

} // namespace

tl::expected<DedicatedPath, Error> DedicatedPath::open(KernelPath& path, const kxfer_addr& responder,
                                                       const Workload& workload) {
    const auto request = request_of(path, responder, workload);
    const auto give_up = Clock::now() + std::chrono::seconds(1);

    for (;;) {
        auto connection = path.session().dedicate(request);
        if (connection) {
            TRY_SET(auto of, connection_of(path.session(), connection->link()));
            return DedicatedPath(std::move(*connection), std::move(of), to_string(responder),
                                 is_message(workload.operation), path.options().ud);
        }
        Error error = connection.error();
        error.hint = advice(error.number);
        // EADDRINUSE: the port that rdma_cm chose is in use by TCP (siw); another try gets another port.
        const bool passes = error.number == EBUSY || error.number == EDQUOT || error.number == EADDRINUSE;
        if (!passes || Clock::now() > give_up) return tl::unexpected(error);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

tl::expected<void, Error> DedicatedPath::settle(std::chrono::milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    auto give_up = Clock::now() + grace;
    uint64_t received = 0;

    if (!messages_) return {};
    for (;;) {
        TRY_SET(const auto status, connection_.status());
        if (status.wrong)
            return tl::unexpected(Error(
                fmt::format("the responder was sent {} wrong messages of {}", status.wrong, status.received),
                peer_, EBADMSG, "keep this result: it is a defect of engine or stack"));
        if (losses_) losses_ = Losses{status.sent, status.sent - status.received};
        if (status.received == status.sent) return {};
        const auto now = Clock::now();
        if (std::exchange(received, status.received) != status.received) give_up = now + grace;
        if (losses_ && now > give_up) return {};
        if (now > deadline)
            return tl::unexpected(
                Error(fmt::format("only {} of {} messages were received", status.received, status.sent),
                      peer_, ETIMEDOUT, "is the responder still there? try a longer --timeout"));
        std::this_thread::yield();
    }
}

} // namespace kxfer::bench
