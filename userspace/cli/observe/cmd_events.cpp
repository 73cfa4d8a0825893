// SPDX-License-Identifier: MIT
//
// kxfer events: what happens to links, peers, exports, listeners and devices of this node, as it
// happens. It looks at the lists of the module twice a second: the module has no events to wait
// for.

#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/observe/change.hpp"
#include "cli/observe/commands.hpp"

namespace kxfer::cli {

namespace {

struct EventsOptions {
    double interval_seconds = 0.5;
    uint64_t count = 0; // 0: until a signal
};

void print(const Change& change, Context& context) {
    Record record;
    const std::string time = utc_text();
    record.add("time", time.c_str());
    for (const Field& field : change.record.fields()) record.add(field.key, field.value, field.show);
    record.add("text", change.text.c_str());
    context.out.sample(record, fmt::format("{}  {}", time, change.text));
}

Result run_events(const EventsOptions& options, Context& context) {
    const auto interval = std::chrono::nanoseconds(std::llround(options.interval_seconds * 1e9));
    catch_interrupts();
    TRY_SET(auto session, open_session());
    TRY_SET(View before, view_of(session));
    context.out.note("waiting for events; Ctrl-C ends this");
    for (uint64_t nr = 0;;) {
        wait_events(-1, 0, interval);
        if (interrupted()) return interrupt_status();
        TRY_SET(View now, view_of(session));
        for (const Change& change : changes_between(before, now)) {
            print(change, context);
            if (++nr == options.count || context.out.write_error() != 0) return exit_ok;
        }
        before = std::move(now);
    }
}

} // namespace

void setup_events(CLI::App& app, Program& program) {
    const auto options = std::make_shared<EventsOptions>();
    CLI::App& command =
        add_command(app, "events", "links that come, go and move, exports, refusals; as it happens",
                    "kxfer events --json | jq -r .text");
    command.add_option("-i,--interval", options->interval_seconds, "time between two looks (default 0.5)")
        ->type_name("SECONDS")
        ->check(from_to(0.05, 3600.0));
    command.add_option("-c,--count", options->count, "end after so many events (default: Ctrl-C)")
        ->type_name("N")
        ->check(from_to(1, 1000000000));
    on_run(command, program, options, run_events);
}

} // namespace kxfer::cli
