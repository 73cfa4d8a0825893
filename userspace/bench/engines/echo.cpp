// SPDX-License-Identifier: MIT
#include "bench/engines/echo.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/try.hpp"
#include "bench/engines/bench_call.hpp"

namespace kxfer::bench {

kxfer_bench Echo::request(const KernelPath& path, uint64_t count, std::chrono::nanoseconds budget) const {
    kxfer_bench bench = {};

    bench.flags = flag_ | (path.options().inline_writes ? 0 : KXFER_BENCH_F_NO_INLINE);
    bench.op = KXFER_OP_WRITE;
    bench.region = path.region().id();
    bench.target = path.target().id();
    bench.depth = bench.list = bench.signal = 1;
    bench.target_offset = bench.echo_offset = workload_.bytes();
    bench.length = workload_.size;
    bench.echo = next_;
    // The answer to a round trip that the call before gave up may be there already.
    bench.warm_up = flag_ == KXFER_BENCH_F_PING ? 1 : 0;
    bench.count = static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, UINT32_MAX));
    bench.time_limit_ms = time_limit_ms(budget);
    return bench;
}

tl::expected<void, Error> Echo::run(KernelPath& path, kxfer_bench& bench) {
    const int ret = kxfer_bench_run(path.session().get(), &bench);

    if (ret == -EINTR) return tl::unexpected(Error("stopped measuring", "", EINTR));
    if (ret < 0)
        return tl::unexpected(Error("cannot run round trips on", path.on(), -ret,
                                    ret == -EBUSY   ? "others have jobs on the link; try again later"
                                    : ret == -EPERM ? "runs of the kernel need CAP_NET_ADMIN"
                                                    : "see: kxfer link list, dmesg"));
    next_ = bench.echo;
    return {};
}

tl::expected<std::unique_ptr<EchoEngine>, Error>
EchoEngine::connect(const PathOptions& options, const Memory& memory, const Workload& workload) {
    TRY_SET(auto met, PingPongEngine::connect(options, memory, workload));
    return std::unique_ptr<EchoEngine>(new EchoEngine(std::move(met), workload));
}

Parameters EchoEngine::parameters(const Workload& workload) const {
    const KernelPath& path = met_->path();
    Parameters parameters = met_->parameters(workload);

    parameters.local_registration =
        path.options().inline_writes && path.is_inline(workload) ? local_in_request : local_lkey;
    return parameters;
}

// A latency is a whole round trip, as the kernel here sees it.
tl::expected<Block, Error> EchoEngine::run_block(const Workload&, Mode, const Limits& limits) {
    KernelPath& path = met_->path();
    kxfer_bench bench = echo_.request(path, limits.count, limits.budget);
    std::vector<uint32_t> samples(std::min<uint32_t>(bench.count, KXFER_BENCH_MAX_SAMPLES));

    bench.samples = reinterpret_cast<uintptr_t>(samples.data());
    bench.nr_samples = static_cast<uint32_t>(samples.size());
    TRY(echo_.run(path, bench));
    if (bench.operations == 0) { // the time was over before the first was back
        const uint32_t nr = static_cast<uint32_t>(samples.size());
        bench = echo_.request(path, 1, path.options().timeout);
        bench.samples = reinterpret_cast<uintptr_t>(samples.data());
        bench.nr_samples = nr;
        TRY(echo_.run(path, bench));
    }
    if (!limits.keep && limits.stopped && limits.stopped())
        return tl::unexpected(Error("stopped measuring", "", EINTR));
    if (bench.operations == 0)
        return tl::unexpected(Error("no WRITE from the partner on", path.on(), ETIMEDOUT,
                                    "a longer --timeout; see: kxfer link list, dmesg"));
    return block_of(bench, samples);
}

} // namespace kxfer::bench
