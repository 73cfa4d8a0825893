// SPDX-License-Identifier: MIT
#include "bench/kverbs_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "bench/runner.hpp"

namespace kxfer::bench {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_run{KXFER_BENCH_MAX_TIME_MS};
// REG_MR and LOCAL_INV of an operation.
constexpr unsigned registering_requests = 2;

// At least a millisecond, for that is the module's unit.
uint32_t time_limit_ms(std::chrono::nanoseconds budget) {
    const auto limit =
        std::chrono::ceil<milliseconds>(std::min<std::chrono::nanoseconds>(budget, longest_run));
    return static_cast<uint32_t>(std::max<milliseconds::rep>(limit.count(), 1));
}

uint32_t op_of(const Workload& workload) {
    if (!workload.moves()) return KXFER_OP_NOP;
    switch (workload.operation) {
    case Operation::read:
        return KXFER_OP_READ;
    case Operation::compare_swap:
        return KXFER_OP_COMPARE_SWAP;
    case Operation::fetch_add:
        return KXFER_OP_FETCH_ADD;
    default:
        return KXFER_OP_WRITE;
    }
}

} // namespace

std::optional<Error> KverbsEngine::obstacle() {
    auto session = Session::open();
    if (!session) return session.error();
    kxfer_bench bench = {};
    bench.op = KXFER_OP_NOP;
    bench.depth = bench.list = bench.signal = bench.count = bench.time_limit_ms = 1;
    const int ret = kxfer_bench_run(session->get(), &bench);
    if (ret == 0) return std::nullopt;
    return Error("the floor cannot be measured", "", -ret,
                 ret == -EPERM    ? "it needs CAP_NET_ADMIN"
                 : ret == -ENOTTY ? "it needs a newer module"
                                  : "");
}

tl::expected<std::unique_ptr<KverbsEngine>, Error> KverbsEngine::connect(const PathOptions& options,
                                                                         const Memory& memory) {
    auto path = KernelPath::open(options, memory);
    if (!path) return tl::unexpected(path.error());
    return std::unique_ptr<KverbsEngine>(new KverbsEngine(std::move(*path), memory));
}

uint32_t KverbsEngine::memory_of(const Workload& workload) const {
    const uint32_t memory = path_.options().memory;
    if (!workload.moves()) return KXFER_BENCH_MEMORY_MR_EACH;
    // As the module does it: the sink of a READ needs an STag.
    if (memory == KXFER_BENCH_MEMORY_DEFAULT && path_.iwarp() && workload.operation == Operation::read)
        return KXFER_BENCH_MEMORY_MR;
    return memory;
}

Parameters KverbsEngine::parameters(const Workload& workload) const {
    const uint32_t memory = memory_of(workload);
    const bool each = memory == KXFER_BENCH_MEMORY_MR_EACH;
    Parameters parameters =
        path_.parameters(workload, {memory != KXFER_BENCH_MEMORY_DEFAULT, each ? registering_requests : 0});

    parameters.local_registration = each                              ? local_each
                                    : memory == KXFER_BENCH_MEMORY_MR ? local_once
                                                                      : local_lkey;
    return parameters;
}

tl::expected<void, Error> KverbsEngine::supports(Operation operation) const {
    const auto cannot = [&](const std::string& why) {
        return tl::unexpected(Error(fmt::format("engine kverbs cannot do {}", operation_name(operation)), "",
                                    EOPNOTSUPP, {}, why));
    };

    if (operation == Operation::read || operation == Operation::write) return {};
    if (!is_atomic(operation)) return cannot("runs are of READ, WRITE and atomics");
    if (const auto why = path_.no_atomics(); !why.empty()) return cannot(why);
    return {};
}

// A run of one operation at a time has one.
unsigned KverbsEngine::slots(const Workload& workload, Mode mode) const {
    return mode == Mode::single ? 1 : workload.depth;
}

tl::expected<void, Error> KverbsEngine::check_registration(const Workload& workload) const {
    if (memory_of(workload) == KXFER_BENCH_MEMORY_DEFAULT || workload.size <= path_.max_registration())
        return {};
    return tl::unexpected(Error("engine kverbs cannot register an operation's memory at once", "", EOPNOTSUPP,
                                fmt::format("use --size {} or less", path_.max_registration()),
                                fmt::format("{} registers at most {} bytes at once",
                                            parameters(workload).device, path_.max_registration())));
}

// Atomics count up from zero.
tl::expected<void, Error> KverbsEngine::make_ready(const Workload& workload) {
    if (auto able = supports(workload.operation); !able) return able;
    if (auto fine = check_registration(workload); !fine) return fine;
    if (!is_atomic(workload.operation)) return {};
    words_.assign(workload.depth, 0);
    memset(memory_.data(), 0, workload.bytes());
    return sweep(*this, workload, Operation::write);
}

kxfer_bench KverbsEngine::bench_of(const Workload& workload, Mode mode, const Limits& limits) {
    const bool single = mode == Mode::single;
    kxfer_bench bench = {};

    bench.op = op_of(workload);
    bench.region = path_.region().id();
    bench.target = path_.target().id();
    bench.memory = memory_of(workload);
    bench.depth = single ? 1 : workload.depth;
    bench.list = single ? 1 : workload.batch;
    bench.signal = path_.options().signal_batch ? bench.list : 1;
    bench.length = workload.size;
    bench.stride = workload.stride();
    bench.count = static_cast<uint32_t>(std::clamp<uint64_t>(limits.count, bench.depth, UINT32_MAX));
    bench.time_limit_ms = time_limit_ms(limits.budget);
    if (bench.op == KXFER_OP_COMPARE_SWAP) bench.words = reinterpret_cast<uintptr_t>(words_.data());
    return bench;
}

// Done so far is in bench.operations and bench.total_ns; more is added to it.
tl::expected<void, Error> KverbsEngine::run(kxfer_bench& bench, const Limits& limits) {
    const uint64_t elapsed_ns = bench.total_ns;
    const uint32_t operations = bench.operations;
    const int ret = kxfer_bench_run(path_.session().get(), &bench);

    if (ret == -EINTR || (limits.stopped && limits.stopped()))
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
    if (auto able = supports(workload.operation); !able) return tl::unexpected(able.error());
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
    if (auto ran = run(bench, limits); !ran) return tl::unexpected(ran.error());
    // The time was over before each slot was used.
    if (bench.operations < bench.depth) {
        bench.count = bench.depth;
        bench.nr_samples = static_cast<uint32_t>(samples.size());
        bench.time_limit_ms = time_limit_ms(longest_run);
        if (auto ran = run(bench, limits); !ran) return tl::unexpected(ran.error());
    }
    if (bench.operations < bench.depth)
        return tl::unexpected(Error("no work request was carried out in time by", path_.on(), ETIMEDOUT,
                                    "see: kxfer link list, dmesg"));
    Block block;
    block.operations = bench.operations;
    block.elapsed_ns = bench.total_ns;
    for (uint32_t i = 0; i < bench.nr_samples; i++) block.latencies.add(samples[i]);
    // The buckets are the same ones.
    for (uint32_t i = 0; i < bench.nr_buckets; i++) block.latencies.add_bucket(i, histogram[i]);
    return block;
}

} // namespace kxfer::bench
