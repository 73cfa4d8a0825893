// SPDX-License-Identifier: MIT
#include "bench/engines/kverbs_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/engines/bench_call.hpp"
#include "engine/runner.hpp"

namespace kxfer::bench {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_run{KXFER_BENCH_MAX_TIME_MS};
// REG_MR for each operation, and LOCAL_INV unless the peer invalidates.
unsigned registering_requests(uint32_t invalidation) {
    return invalidation == KXFER_BENCH_INVALIDATE_REMOTE ? 1 : 2;
}

const char* registered_for_each(uint32_t invalidation) {
    switch (invalidation) {
    case KXFER_BENCH_INVALIDATE_LOCAL:
        return local_each_local;
    case KXFER_BENCH_INVALIDATE_REMOTE:
        return local_each_remote;
    default:
        return local_each;
    }
}

constexpr double ps_per_second = 1e12;

// The module has the same buckets.
void add_buckets(const std::vector<uint32_t>& buckets, Histogram& histogram) {
    for (uint32_t i = 0; i < buckets.size(); i++) histogram.add_bucket(i, buckets[i]);
}

} // namespace

std::optional<Error> KverbsEngine::obstacle() {
    auto session = Session::open();
    if (!session) return session.error();
    kxfer_bench bench = {};
    bench.op = KXFER_OP_NOP;
    bench.depth = bench.list = bench.signal = bench.count = bench.time_limit_ms = 1;
    Error error("engine kverbs cannot be used", "", kxfer_bench_run(session->get(), &bench),
                "use --engine job or verbs");
    if (error.number == 0) return std::nullopt;
    if (error.number == EPERM) {
        error.why = "it needs CAP_NET_ADMIN";
        error.hint = "run it as root, or use --engine job or verbs";
    } else if (error.number == EOPNOTSUPP) {
        error.why = "kxfer_bench.ko is not loaded, or is of another release than kxfer.ko";
        error.hint = "try: modprobe kxfer_bench (or, from a build: insmod kxfer_bench.ko); "
                     "or use --engine job or verbs";
    } else if (error.number == ENOTTY) {
        error.why = "the loaded module is older than this tool";
        error.hint = "install both of one version; see: kxfer --version, modinfo kxfer";
    }
    return error;
}

tl::expected<std::unique_ptr<KverbsEngine>, Error>
KverbsEngine::connect(const PathOptions& options, const kxfer_addr& responder, const Memory& memory) {
    TRY_SET(auto path, KernelPath::open(options, memory));
    return std::unique_ptr<KverbsEngine>(new KverbsEngine(std::move(path), responder, memory));
}

uint32_t KverbsEngine::memory_of(const Workload& workload) const {
    const uint32_t memory = path_.options().memory;
    if (!workload.moves()) return KXFER_BENCH_MEMORY_MR_EACH;
    // As in the module: the sink of a READ needs an STag.
    if (memory == KXFER_BENCH_MEMORY_DEFAULT && path_.iwarp() && workload.operation == Operation::read)
        return KXFER_BENCH_MEMORY_MR;
    // A message is one work request of scattered pages; operations that verify it have its depth.
    const bool messages = is_message(workload.operation) || (dedicated_ && dedicated_->has_messages());
    if (memory == KXFER_BENCH_MEMORY_DEFAULT && messages &&
        workload.stride() / page_bytes > path_.write_sges())
        return KXFER_BENCH_MEMORY_MR;
    return memory;
}

// Operations that verify have the workload's depth, and may need too many work requests. Then
// memory is named in the way that needs the fewest.
uint32_t KverbsEngine::memory_in_run(const Workload& workload) const {
    const bool fits = workload.depth <= parameters(workload).max_depth;
    return fits || workload.size > path_.max_registration() ? memory_of(workload)
                                                            : static_cast<uint32_t>(KXFER_BENCH_MEMORY_MR);
}

uint32_t KverbsEngine::invalidation_of(const Workload& workload) const {
    const uint32_t wanted = path_.options().invalidate;
    const bool each = memory_of(workload) == KXFER_BENCH_MEMORY_MR_EACH;
    const bool answered = wanted != KXFER_BENCH_INVALIDATE_REMOTE || workload.operation == Operation::send;

    if (each && answered) return wanted;
    return KXFER_BENCH_INVALIDATE_DEFERRED;
}

Parameters KverbsEngine::parameters(const Workload& workload) const {
    const uint32_t memory = memory_of(workload);
    const bool rw = memory == KXFER_BENCH_MEMORY_RW;
    const bool rw_each = rw && path_.iwarp() && workload.operation == Operation::read;
    const bool each = memory == KXFER_BENCH_MEMORY_MR_EACH;
    const bool by_mr = rw ? rw_each : memory != KXFER_BENCH_MEMORY_DEFAULT;
    const uint32_t invalidation = invalidation_of(workload);
    const std::string of_pool = path_.options().mr_pool ? ", of the QP's pool" : "";
    Parameters parameters =
        path_.parameters(workload, {by_mr, each || rw_each ? registering_requests(invalidation) : 0});

    if (dedicated_) parameters.connection = dedicated_->connection();
    if (!is_reliable()) parameters.write_success = parameters.message_success = write_sent;
    const bool carried = path_.options().inline_writes && path_.is_inline(workload);
    parameters.local_registration = rw_each ? local_rw_each
                                    : rw    ? local_rw
                                    : each  ? registered_for_each(invalidation) + of_pool
                                    : memory == KXFER_BENCH_MEMORY_MR ? local_once
                                    : carried                         ? local_in_request
                                                                      : local_lkey;
    if (invalidation == KXFER_BENCH_INVALIDATE_REMOTE) parameters.message_success = message_invalidated;
    return parameters;
}

Error KverbsEngine::cannot(Operation operation, const std::string& why) const {
    return Error(fmt::format("engine kverbs cannot do {}", operation_name(operation)), "", EOPNOTSUPP, {},
                 why);
}

tl::expected<void, Error> KverbsEngine::supports(Operation operation) const {
    if (is_beyond_kernel(operation)) return tl::unexpected(cannot(operation, why_beyond_kernel(operation)));
    if (path_.options().tos && (is_message(operation) || path_.options().dedicated))
        return tl::unexpected(cannot(operation, "with --tos: the module's dedicated connections, which that "
                                                "needs, have the device's type of service"));
    if (has_immediate(operation) && path_.iwarp())
        return tl::unexpected(
            cannot(operation, fmt::format("{}: iWARP has no immediate data", path_.device())));
    const bool moves = operation == Operation::read || operation == Operation::write;
    if (!moves && path_.options().memory == KXFER_BENCH_MEMORY_RW)
        return tl::unexpected(cannot(operation, "rdma_rw does READ and WRITE only"));
    if (!is_atomic(operation)) return {};
    if (const auto why = path_.no_atomics(); !why.empty()) return tl::unexpected(cannot(operation, why));
    return {};
}

// Whether a UD QP can do the operation; the connection can do more.
tl::expected<void, Error> KverbsEngine::carries(Operation operation) const {
    if (is_reliable()) return {};
    if (path_.iwarp())
        return tl::unexpected(
            cannot(operation, fmt::format("{}: iWARP has reliable connections alone", path_.device())));
    if (operation != Operation::send && operation != Operation::send_imm)
        return tl::unexpected(cannot(operation, "UD has SEND and SEND with immediate alone"));
    if (path_.options().memory == KXFER_BENCH_MEMORY_MR_EACH)
        return tl::unexpected(cannot(operation, "a UD QP registers no memory"));
    return {};
}

// A run of one operation at a time uses one slot; messages use those of the responder.
unsigned KverbsEngine::slots(const Workload& workload, Mode mode) const {
    return mode == Mode::single && !is_message(workload.operation) ? 1 : workload.depth;
}

tl::expected<void, Error> KverbsEngine::check_registration(const Workload& workload) const {
    const uint32_t memory = memory_of(workload);
    if (memory == KXFER_BENCH_MEMORY_RW && path_.options().signal != 1 && workload.depth > 1)
        return tl::unexpected(Error("engine kverbs cannot signal one operation of several", "", EOPNOTSUPP,
                                    "use --signal each", "rdma_rw asks for a completion of each operation"));
    // rdma_rw uses several MRs if necessary.
    if (memory == KXFER_BENCH_MEMORY_DEFAULT || memory == KXFER_BENCH_MEMORY_RW ||
        workload.size <= path_.max_registration())
        return {};
    return tl::unexpected(Error("engine kverbs cannot register an operation's memory at once", "", EOPNOTSUPP,
                                fmt::format("use --size {} or less", path_.max_registration()),
                                fmt::format("{} registers at most {} bytes at once",
                                            parameters(workload).device, path_.max_registration())));
}

// True if any operation for the workload runs without rdma_rw.
bool KverbsEngine::leaves_rw(const Workload& workload) const {
    Workload one = workload;
    for (const auto operation : {Operation::read, Operation::write}) {
        one.operation = operation;
        if (memory_in_run(one) != KXFER_BENCH_MEMORY_RW) return true;
    }
    return false;
}

// With real DMA, rdma_rw on a region that is mapped already fails with EBUSY (KXFER_BENCH).
tl::expected<void, Error> KverbsEngine::add_mapped_region(const Workload& workload) {
    if (memory_of(workload) != KXFER_BENCH_MEMORY_RW || mapped_ || !leaves_rw(workload)) return {};
    TRY_SET(mapped_, path_.session().add_region(memory_.bytes(), KXFER_REGION_F_WRITE));
    return {};
}

// Atomics count up from zero.
tl::expected<void, Error> KverbsEngine::make_ready(const Workload& workload) {
    TRY(supports(workload.operation));
    TRY(carries(workload.operation));
    TRY(check_registration(workload));
    TRY(add_mapped_region(workload));
    if (path_.options().invalidate == KXFER_BENCH_INVALIDATE_REMOTE && workload.operation != Operation::send)
        return tl::unexpected(Error(fmt::format("{} is not answered", workload.name()), "", EOPNOTSUPP,
                                    "use --invalidate remote with send",
                                    "the responder invalidates by its answer to a SEND"));
    dedicated_.reset();
    if (is_message(workload.operation) || path_.options().dedicated) {
        auto dedicated = DedicatedPath::open(path_, responder_, workload);
        if (!dedicated && dedicated.error().number == EMSGSIZE)
            return tl::unexpected(
                cannot(workload.operation, fmt::format("{}: {}", path_.device(), dedicated.error().why)));
        if (!dedicated) return tl::unexpected(dedicated.error());
        dedicated_ = std::move(*dedicated);
    }
    if (!is_atomic(workload.operation)) return {};
    words_.assign(workload.depth, 0);
    memset(memory_.data(), 0, workload.bytes());
    return sweep(*this, workload, Operation::write);
}

tl::expected<void, Error> KverbsEngine::settle() {
    return dedicated_ ? dedicated_->settle(path_.options().timeout) : tl::expected<void, Error>();
}

std::optional<Losses> KverbsEngine::losses() const {
    return dedicated_ ? dedicated_->losses() : std::nullopt;
}

kxfer_bench KverbsEngine::bench_of(const Workload& workload, Mode mode, const Limits& limits) {
    const bool single = mode == Mode::single;
    kxfer_bench bench = {};

    bench.op = workload.moves() ? op_of(workload.operation) : KXFER_OP_NOP;
    bench.memory = memory_in_run(workload);
    bench.region = mapped_ && bench.memory != KXFER_BENCH_MEMORY_RW ? mapped_.id() : path_.region().id();
    if (dedicated_)
        bench.dedicated = dedicated_->id();
    else
        bench.target = path_.target().id();
    if (has_immediate(workload.operation)) bench.flags = KXFER_BENCH_F_IMM;
    if (bench.op == KXFER_OP_WRITE && !path_.options().inline_writes) bench.flags |= KXFER_BENCH_F_NO_INLINE;
    if (bench.memory == KXFER_BENCH_MEMORY_MR_EACH && path_.options().mr_pool)
        bench.flags |= KXFER_BENCH_F_MR_POOL;
    if (bench.memory == memory_of(workload)) bench.invalidate = invalidation_of(workload);
    bench.depth = single ? 1 : workload.depth;
    bench.list = single ? 1 : workload.batch;
    bench.signal = single ? 1 : path_.options().signal_every(workload);
    bench.length = workload.size;
    bench.stride = workload.stride();
    bench.count =
        static_cast<uint32_t>(std::clamp<uint64_t>(limits.count, limits.rest ? 1 : bench.depth, UINT32_MAX));
    bench.time_limit_ms = time_limit_ms(limits.budget);
    if (bench.op == KXFER_OP_COMPARE_SWAP) bench.words = reinterpret_cast<uintptr_t>(words_.data());
    return bench;
}

// Adds its results to bench.operations and bench.total_ns.
tl::expected<void, Error> KverbsEngine::run(kxfer_bench& bench, const Limits& limits) {
    const uint64_t elapsed_ns = bench.total_ns;
    const uint32_t operations = bench.operations;
    const int ret = kxfer_bench_run(path_.session().get(), &bench);

    if (ret == -EINTR || (!limits.keep && limits.stopped && limits.stopped()))
        return tl::unexpected(Error("stopped measuring", "", EINTR));
    if (ret < 0)
        return tl::unexpected(Error("cannot run work requests on", path_.on(), -ret,
                                    ret == -EBUSY ? "others have jobs on the link; try again later"
                                                  : "see: kxfer link list, dmesg"));
    bench.operations += operations;
    bench.total_ns += elapsed_ns;
    return {};
}

tl::expected<Block, Error> KverbsEngine::run_block(const Workload& workload, Mode mode,
                                                   const Limits& limits) {
    TRY(supports(workload.operation));
    if (limits.rate > 0) return run_at_rate(workload, mode, limits);
    kxfer_bench bench = bench_of(workload, mode, limits);
    std::vector<uint32_t> samples, histogram;

    if (mode == Mode::single) {
        samples.resize(std::min<uint32_t>(bench.count, KXFER_BENCH_MAX_SAMPLES));
        bench.samples = reinterpret_cast<uintptr_t>(samples.data());
        bench.nr_samples = static_cast<uint32_t>(samples.size());
    } else if (limits.timed) {
        histogram.resize(KXFER_BENCH_NR_BUCKETS);
        bench.histogram = reinterpret_cast<uintptr_t>(histogram.data());
        bench.nr_buckets = KXFER_BENCH_NR_BUCKETS;
    }
    TRY(run(bench, limits));
    // The time was over before each slot was used, or before anything was begun.
    const uint32_t least = limits.rest ? 1 : bench.depth;
    if (bench.operations < least) {
        bench.count = least;
        bench.nr_samples = static_cast<uint32_t>(samples.size());
        bench.time_limit_ms = time_limit_ms(longest_run);
        TRY(run(bench, limits));
    }
    if (bench.operations < least)
        return tl::unexpected(Error("no work request was carried out in time by", path_.on(), ETIMEDOUT,
                                    "see: kxfer link list, dmesg"));
    Block block = block_of(bench, samples);
    add_buckets(histogram, block.latencies);
    return block;
}

// It is no error if no operation is due before the time is over.
tl::expected<Block, Error> KverbsEngine::run_at_rate(const Workload& workload, Mode mode,
                                                     const Limits& limits) {
    std::vector<uint32_t> since_due(KXFER_BENCH_NR_BUCKETS), since_post(KXFER_BENCH_NR_BUCKETS);
    kxfer_bench bench = bench_of(workload, mode, limits);

    bench.count = static_cast<uint32_t>(std::clamp<uint64_t>(limits.count, 1, UINT32_MAX));
    bench.interval_ps = static_cast<uint64_t>(ps_per_second / limits.rate);
    bench.late_ns = limits.late.count();
    bench.nr_buckets = KXFER_BENCH_NR_BUCKETS;
    bench.histogram = reinterpret_cast<uintptr_t>(since_due.data());
    bench.posted_histogram = reinterpret_cast<uintptr_t>(since_post.data());
    TRY(run(bench, limits));
    Block block;
    block.operations = bench.operations;
    block.elapsed_ns = bench.total_ns;
    block.work_requests = bench.nr_wr;
    if (bench.late_ns > 0)
        block.nr_overdue = 1 + static_cast<uint64_t>(bench.late_ns) * 1000 / bench.interval_ps;
    add_buckets(since_due, block.latencies);
    add_buckets(since_post, block.uncorrected);
    return block;
}

} // namespace kxfer::bench
