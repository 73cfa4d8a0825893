// SPDX-License-Identifier: MIT
#include "cli/measure/bench_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "base/try.hpp"
#include "bench/run/clients.hpp"
#include "cli/measure/bidirectional.hpp"
#include "cli/measure/cpus.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/terminal.hpp"
#include "engine/verification.hpp"

namespace kxfer::cli {

namespace {

std::chrono::nanoseconds nanoseconds_of(double seconds) {
    return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

bench::RunPlan plan_of(const BenchOptions& options, Context& context) {
    const bool live = options.tells_intervals && context.out.progress_wanted() &&
                      (options.interval_given || isatty(STDOUT_FILENO));
    const bool divided = options.count == 0 && options.nr_clients == 1;
    bench::RunPlan plan{nanoseconds_of(options.seconds),
                        options.count,
                        divided ? nanoseconds_of(options.interval_seconds) : std::chrono::nanoseconds{},
                        options.warm_up,
                        options.rate,
                        interrupted};
    if (live)
        plan.on_interval = [&context, size = options.workload.size](const bench::Interval& interval) {
            context.out.event(interval_record(interval, size),
                              interval_text(interval, size, terminal_width(STDOUT_FILENO)));
        };
    return plan;
}

tl::expected<BenchReport, Failure> begin_report(const BenchOptions& options, const std::string& version,
                                                const Rig& rig, Context& context) {
    BenchReport report;
    const auto& engine = *rig.engines.front();
    report.result.workload = options.workload;
    report.result.workload.batch = batch_of(options, options.workload.depth, options.batch);
    report.result.engine = engine.name();
    report.parameters = engine.parameters(report.result.workload);
    if (const auto mismatch = bench::find_mismatch(engine.name(), report.parameters, engine.name(),
                                                   report.parameters, options.workload.depth))
        return failed(*mismatch);
    TRY_SET(auto device, facts_of(report.parameters.device));
    report.from = {bench::find_environment(),    std::move(device),           version, rig.peer_text(options),
                   report.parameters.connection, find_peer_node(options, rig)};
    report.registration = engine.registration();
    report.rig = options;
    report.plan = plan_of(options, context);
    if (options.workload.is_mix()) report.mix = bench::mix_text(options.mix);
    report.plan.stages = options.stages;
    report.plan.count_calls = !options.all; // there is no time for a block of its own
    report.plan.surroundings = surroundings_of(rig, report.from.device);
    return report;
}

tl::expected<void, Error> pin_client(const BenchOptions& options) {
    if (options.cpus.empty()) return {};
    return pin_to_cpu(options.cpus[options.client % options.cpus.size()]);
}

// One of the other clients, in its process.
tl::expected<bench::RunResult, Error> run_client(BenchOptions options, const Place& place, unsigned index,
                                                 const bench::Clients::Meet& meet) {
    const unsigned depth = options.workload.depth;
    options.client = index;
    TRY(pin_client(options));
    options.workload.batch = batch_of(options, depth, options.batch);
    const auto rig = set_up_client(options, place, options.workload.bytes(), depth, options.workload.batch);
    if (!rig) return tl::unexpected(rig.error().error);
    bench::begin_sequences(uint64_t{index} << 32);
    bench::RunPlan plan{
        nanoseconds_of(options.seconds), options.count, {}, options.warm_up, options.rate, interrupted};
    plan.together = {{}, meet, meet};
    return bench::run(*rig->engines.front(), *rig->memory, options.workload, plan);
}

// Runs with the other clients, if there are any, and the peer.
tl::expected<bench::RunResult, Error> run_all(const Rig& rig, bench::Clients& clients, BenchReport& report) {
    if (report.rig.nr_clients > 1)
        report.plan.together = {[&] { return clients.gather(interrupted); },
                                [&] { return clients.release(); },
                                [&] { return clients.finish(interrupted); }};
    auto result = bench::run(*rig.engines.front(), *rig.memory, report.result.workload, report.plan);
    if (!result || report.rig.nr_clients == 1) return result;
    TRY_SET(const auto others, clients.collect(result->interrupted ? nullptr : interrupted));
    return bench::join_clients(std::move(*result), others);
}

// Adds the peer's result. After an interrupt there is none: the peer goes on until this process ends.
tl::expected<void, Failure> add_reverse(bench::Requester& requester, BenchReport& report) {
    if (report.result.interrupted) return {};
    auto other = requester.finish(std::chrono::minutes(1), interrupted);
    if (!other && interrupted()) return {};
    if (!other) return failed(other.error());
    report.reverse = std::move(*other);
    // The peer could not be asked during the run; its result has its process's usage while it measured.
    report.result.footprint.peer = report.reverse->usage;
    return {};
}

} // namespace

bool BenchOptions::set_operation(const std::string& name) {
    const bool is_mix = name == "mix";
    const auto operation = is_mix ? bench::Operation::read : bench::operation_from(name);
    workload.work = bench::work_from(name).value_or(bench::Work::transfer);
    if (!operation && workload.work == bench::Work::transfer) return false;
    workload.operation = operation.value_or(bench::Operation::read);
    workload.turns = is_mix ? bench::turns_of(mix) : std::vector<bench::Operation>();
    return true;
}

BenchOptions with_defaults(BenchOptions options) {
    auto& workload = options.workload;
    // A mix is verified by the data that its WRITEs leave.
    if (workload.is_mix()) workload.operation = bench::Operation::write;
    if (workload.is_mix()) workload.turns = bench::turns_of(options.mix);
    if (bench::is_atomic(workload.operation) && !options.size_given) workload.size = bench::atomic_bytes;
    if (!workload.moves() && !options.memory_given) options.memory = "mr-each";
    if (!workload.moves() && !options.engine_chosen) options.engines = {"kverbs"};
    options.writes = workload.operation != bench::Operation::read;
    options.atomics = bench::is_fetch(workload.operation);
    options.messages = bench::has_messages(workload);
    if (workload.is_round_trip()) options.round_trip = workload;
    return options;
}

tl::expected<BenchReport, Failure> run_workload(const BenchOptions& options, const std::string& version,
                                                const CheckReport& check, Context& context) {
    const unsigned depth = options.workload.depth;
    const uint64_t bytes = options.workload.bytes() * (options.round_trip ? 2 : 1);
    TRY_SET(auto rig, set_up_place(options, bytes));
    const auto clients =
        bench::Clients::start(options.nr_clients, [&](unsigned index, const bench::Clients::Meet& meet) {
            return run_client(options, rig.place, index, meet);
        });
    if (!clients) return failed(clients.error());
    TRY(pin_client(options));
    TRY(connect_engines(options, rig, depth, batch_of(options, depth, options.batch)));
    explain(options.verbs, rig.steps, context.out);
    TRY_SET(auto report, begin_report(options, version, rig, context));
    TRY(check(report));

    TRY_SET(const auto requester, involve_peer(options, rig, report.result.workload, report.plan));
    TRY_SET(report.result, run_all(rig, **clients, report));
    // The engine may have connected anew for the workload.
    report.parameters.connection = rig.engines.front()->parameters(report.result.workload).connection;
    report.from.connection = report.parameters.connection;
    TRY(check(report));
    if (options.bidirectional) TRY(add_reverse(*requester, report));
    report.result.interrupted = report.result.interrupted || interrupted();
    return report;
}

} // namespace kxfer::cli
