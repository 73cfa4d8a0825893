// SPDX-License-Identifier: MIT
#include "bench/kverbs_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

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

kxfer_bench bench_of(const Workload& workload, Mode mode, const Limits& limits, bool signal_batch) {
    const bool single = mode == Mode::single;
    kxfer_bench bench = {};

    bench.op = workload.operation == Operation::read ? KXFER_OP_READ : KXFER_OP_WRITE;
    if (!workload.moves()) bench.op = KXFER_OP_NOP;
    bench.depth = single ? 1 : workload.depth;
    bench.list = single ? 1 : workload.batch;
    bench.signal = signal_batch ? bench.list : 1;
    bench.length = workload.size;
    bench.stride = workload.stride();
    bench.count = static_cast<uint32_t>(std::clamp<uint64_t>(limits.count, bench.depth, UINT32_MAX));
    bench.time_limit_ms = time_limit_ms(limits.budget);
    return bench;
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
    return std::unique_ptr<KverbsEngine>(new KverbsEngine(std::move(*path)));
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

tl::expected<void, Error> KverbsEngine::make_ready(const Workload& workload) {
    if (auto able = supports(workload.operation); !able) return able;
    if (memory_of(workload) == KXFER_BENCH_MEMORY_DEFAULT || workload.size <= path_.max_registration())
        return {};
    return tl::unexpected(Error("engine kverbs cannot register an operation's memory at once", "", EOPNOTSUPP,
                                fmt::format("use --size {} or less", path_.max_registration()),
                                fmt::format("{} registers at most {} bytes at once",
                                            parameters(workload).device, path_.max_registration())));
}

tl::expected<Block, Error> KverbsEngine::run_block(const Workload& workload, Mode mode,
                                                   const Limits& limits) {
    if (auto able = supports(workload.operation); !able) return tl::unexpected(able.error());
    kxfer_bench bench = bench_of(workload, mode, limits, path_.options().signal_batch);
    std::vector<uint32_t> samples, histogram;

    bench.memory = memory_of(workload);
    bench.region = path_.region().id();
    bench.target = path_.target().id();
    if (mode == Mode::single) {
        samples.resize(std::min<uint32_t>(bench.count, KXFER_BENCH_MAX_SAMPLES));
        bench.samples = reinterpret_cast<uintptr_t>(samples.data());
        bench.nr_samples = static_cast<uint32_t>(samples.size());
    } else if (limits.timed) {
        histogram.resize(KXFER_BENCH_NR_BUCKETS);
        bench.histogram = reinterpret_cast<uintptr_t>(histogram.data());
        bench.nr_buckets = KXFER_BENCH_NR_BUCKETS;
    }
    int ret = kxfer_bench_run(path_.session().get(), &bench);
    // The time was over before each slot was used.
    if (ret == 0 && mode == Mode::deep && bench.operations < bench.depth) {
        bench.count = bench.depth;
        bench.time_limit_ms = time_limit_ms(longest_run);
        ret = kxfer_bench_run(path_.session().get(), &bench);
    }
    if (ret == 0 && bench.operations < bench.depth) ret = -ETIMEDOUT;
    if (ret == -EINTR || (limits.stopped && limits.stopped()))
        return tl::unexpected(Error("stopped measuring", "", EINTR));
    if (ret < 0)
        return tl::unexpected(Error("cannot run work requests on", path_.on(), -ret,
                                    ret == -EBUSY ? "others have jobs on the link; try again later"
                                                  : "see: kxfer link list, dmesg"));
    Block block;
    block.operations = bench.operations;
    block.elapsed_ns = bench.total_ns;
    for (uint32_t i = 0; i < bench.nr_samples; i++) block.latencies.add(samples[i]);
    // The buckets are the same ones.
    for (uint32_t i = 0; i < bench.nr_buckets; i++) block.latencies.add_bucket(i, histogram[i]);
    return block;
}

} // namespace kxfer::bench
