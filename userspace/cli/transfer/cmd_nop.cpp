// SPDX-License-Identifier: MIT
//
// kxfer nop: the cost of a call into the module that does nothing. Each call is
// timed on its own; the cost of the clock is reported separately, not subtracted.

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/node/device_file.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/quantile.hpp"

namespace kxfer::cli {

namespace {

struct NopOptions {
    uint32_t count = 10000;
};

// The time of each of `count` calls in nanoseconds, sorted.
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

Nanoseconds nanoseconds(uint64_t ns) { return {static_cast<double>(ns)}; }

Result run_nop(const NopOptions& options, Context& context) {
    TRY_SET(const auto session, open_session());
    int failure = session.nop();
    const auto times = time_each(options.count, [&] {
        const int ret = session.nop();
        if (ret < 0) failure = ret;
    });
    if (failure < 0) return failed(Error("the call failed on", KXFER_DEVICE_PATH, failure));
    const auto clock = time_each(options.count, [] {});
    Record record;
    record.add("calls", options.count).add("min", nanoseconds(times.front()));
    add_quantile(record, "median", quantile_ns(times, 50));
    add_quantile(record, "p99", quantile_ns(times, 99));
    record.add("max", nanoseconds(times.back()));
    record.add("clock_median", Nanoseconds{quantile_ns(clock, 50)}, Show::everywhere, "clock alone");
    context.out.record(record);
    return exit_ok;
}

} // namespace

void setup_nop(CLI::App& app, Program& program) {
    const auto options = std::make_shared<NopOptions>();
    CLI::App& command = add_command(app, "nop", "the price of a call into the module", "kxfer nop -n 100000");
    command.add_option("-n,--count", options->count, "calls to make (default 10000)")
        ->type_name("N")
        ->check(from_to(1, 10000000));
    on_run(command, program, options, run_nop);
}

} // namespace kxfer::cli
