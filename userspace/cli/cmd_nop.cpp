// SPDX-License-Identifier: MIT
//
// kxfer nop: what a call into the module costs that does nothing. Every call
// is timed on its own; the clock's own price is told beside, not subtracted.

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/device_file.hpp"

namespace kxfer::cli {

namespace {

struct NopOptions {
    uint32_t count = 10000;
};

// Each of `count` runs in nanoseconds, sorted.
template <typename Call> std::vector<uint64_t> time_each(uint32_t count, Call call) {
    std::vector<uint64_t> times(count);
    for (uint64_t& time : times) {
        const uint64_t began = kxfer_clock_ns();
        call();
        time = kxfer_clock_ns() - began;
    }
    std::sort(times.begin(), times.end());
    return times;
}

Nanoseconds at(const std::vector<uint64_t>& sorted, double quantile) {
    const auto last = static_cast<double>(sorted.size() - 1);
    return {static_cast<double>(sorted[static_cast<size_t>(last * quantile)])};
}

Result run_nop(const NopOptions& options, Context& context) {
    const auto session = open_session();
    if (!session) return tl::make_unexpected(session.error());
    int failure = session->nop();
    const auto times = time_each(options.count, [&] {
        const int ret = session->nop();
        if (ret < 0) failure = ret;
    });
    if (failure < 0) return failed(Error("the call failed on", KXFER_DEVICE_PATH, failure));
    const auto clock = time_each(options.count, [] {});
    context.out.record(Record()
                           .add("calls", options.count)
                           .add("min", at(times, 0))
                           .add("median", at(times, 0.5))
                           .add("p99", at(times, 0.99))
                           .add("max", at(times, 1))
                           .add("clock_median", at(clock, 0.5), Show::everywhere, "of it clock"));
    return exit_ok;
}

} // namespace

void setup_nop(CLI::App& app, Program& program) {
    const auto options = std::make_shared<NopOptions>();
    CLI::App& command = add_command(app, "nop", "the price of a call into the module", "kxfer nop -n 100000");
    command.add_option("-n,--count", options->count, "calls to make (default 10000)")
        ->type_name("N")
        ->check(CLI::Range(1, 10000000));
    on_run(command, program, options, run_nop);
}

} // namespace kxfer::cli
