// SPDX-License-Identifier: MIT
//
// kxfer compare: the same work through /dev/kxfer, by kernel verbs without jobs,
// and through user-space verbs, side by side. Without a peer a child process serves: it offers the
// memory on the first usable RDMA device of this node.

#include <algorithm>
#include <cerrno>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/try.hpp"
#include "bench/stats/comparison.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/measure/commands.hpp"
#include "cli/measure/compare_report.hpp"
#include "cli/measure/rig.hpp"
#include "cli/node/interrupt.hpp"
#include "engine/verification.hpp"

namespace kxfer::cli {

namespace {

constexpr unsigned default_depth = 128;
// Without --depth, limits the memory and so the depth of large operations.
constexpr uint64_t default_memory = 64ULL << 20;
constexpr uint64_t self_test_size = 4096;
constexpr unsigned self_test_depth = 4;

struct CompareOptions : RigOptions {
    std::vector<std::string> operations{"read", "write"};
    std::vector<uint64_t> sizes{64, 4096, 65536};
    bool sizes_given = false;
    bool self_test = false;
    bool judge_anyway = false;
    bool wide = false;
    unsigned depth = 0; // 0: see workload_of()
    unsigned batch = 0; // 0: see batch_of()
    unsigned rounds = 5;
    uint64_t count = 1000;
    double seconds = 1;

    CompareOptions() {
        engines = {"verbs", "kverbs", "job"};
        export_name = "compare";
    }

    bool all_operations() const {
        return std::find(operations.begin(), operations.end(), "all") != operations.end();
    }
};

// The names for the command line: "read", "write" and so on.
std::vector<std::string> operation_names() {
    std::vector<std::string> names;
    for (const auto operation : bench::all_operations) names.emplace_back(bench::operation_name(operation));
    return names;
}

// Atomics have one size, whatever sizes the other operations have.
std::vector<uint64_t> sizes_of(const CompareOptions& options, bench::Operation operation) {
    const bool fixed = bench::is_atomic(operation) && (options.all_operations() || !options.sizes_given);
    return fixed ? std::vector<uint64_t>{bench::atomic_bytes} : options.sizes;
}

bench::Workload workload_of(const CompareOptions& options, bench::Operation operation, uint64_t size) {
    bench::Workload workload{operation, size, 1, 1};
    const uint64_t room = std::max<uint64_t>(default_memory / workload.stride(), 1);
    workload.depth =
        options.depth ? options.depth : static_cast<unsigned>(std::min<uint64_t>(default_depth, room));
    return workload;
}

std::vector<bench::Workload> workloads_of(const CompareOptions& options) {
    std::vector<bench::Workload> workloads;
    for (const auto& name : options.all_operations() ? operation_names() : options.operations) {
        const auto operation = *bench::operation_from(name);
        for (const uint64_t size : sizes_of(options, operation))
            workloads.push_back(workload_of(options, operation, size));
    }
    return workloads;
}

uint64_t memory_of(const std::vector<bench::Workload>& workloads) {
    uint64_t bytes = 0;
    for (const auto& workload : workloads) bytes = std::max(bytes, workload.bytes());
    return bytes;
}

std::vector<bench::Engine*> able(const Rig& rig, bench::Operation operation) {
    std::vector<bench::Engine*> engines = rig.pointers();
    std::erase_if(engines, [&](const auto* engine) { return !engine->supports(operation); });
    return engines;
}

// Limits each workload to what all its engines can do, or fails with the reason.
tl::expected<void, Failure> fit(const CompareOptions& options, const Rig& rig,
                                std::vector<bench::Workload>& workloads) {
    for (auto& workload : workloads) {
        const auto engines = able(rig, workload.operation);
        if (!options.depth)
            for (const auto* engine : engines)
                workload.depth = std::clamp(engine->parameters(workload).max_depth, 1U, workload.depth);
        workload.batch = batch_of(options, workload.depth, options.batch);
        for (const auto* b : engines)
            if (const auto* a = engines.front();
                auto mismatch = bench::find_mismatch(a->name(), a->parameters(workload), b->name(),
                                                     b->parameters(workload), workload.depth))
                return failed(*mismatch);
    }
    return {};
}

tl::expected<Rig, Failure> set_up(const CompareOptions& options, std::vector<bench::Workload>& workloads) {
    unsigned depth = 1, batch = 1;

    for (const auto& workload : workloads) {
        depth = std::max(depth, workload.depth);
        batch = std::max(batch, batch_of(options, workload.depth, options.batch));
    }
    auto rig = set_up(options, memory_of(workloads), depth, batch);
    if (!rig) return rig;
    TRY(fit(options, *rig, workloads));
    return rig;
}

template <typename Wanted> bool some(const CompareOptions& options, Wanted wanted) {
    const auto workloads = workloads_of(options);
    return std::ranges::any_of(workloads, [&](const auto& workload) { return wanted(workload.operation); });
}

// Fails for options that exclude each other, and names them.
tl::expected<void, Failure> check_options(const CompareOptions& options) {
    TRY(check_rig(options));
    for (const auto& workload : workloads_of(options))
        if (bench::is_atomic(workload.operation) && workload.size != bench::atomic_bytes)
            return wrong_usage(fmt::format("an atomic operation has 8 bytes, not {}", workload.size),
                               "use --size 8, or another --op");
    if (!options.inline_writes() && !some(options, bench::is_write))
        return wrong_usage("only the payload of a WRITE is carried inline",
                           "use --inline never with --op write or write-imm");
    if (options.stored && !some(options, [](auto operation) { return operation == bench::Operation::send; }))
        return wrong_usage("none of these operations is a SEND that could be done earlier",
                           "use --stored with --op send");
    if (options.depth && options.batch > options.depth)
        return wrong_usage("a batch cannot be larger than the depth",
                           fmt::format("use --batch {} or less", options.depth));
    if (const uint64_t bytes = memory_of(workloads_of(options)); bytes > max_rig_memory)
        return wrong_usage(fmt::format("too much memory is asked for, {}", human_bytes(bytes)),
                           fmt::format("size times depth may be {}", human_bytes(max_rig_memory)));
    return {};
}

// Causes each kind of damage in data that the engines really move.
Result run_self_test(const Rig& rig, const bench::Workload& workload, Context& context) {
    Table rows;
    uint64_t nr_missed = 0;
    for (bench::Engine* engine : rig.pointers()) {
        TRY_SET(const auto trials, bench::self_test(*engine, *rig.memory, workload));
        for (const bench::Trial& trial : trials) {
            rows.push_back(trial_record(engine->name(), trial));
            nr_missed += trial.caught ? 0 : 1;
        }
    }
    const auto cost = bench::verification_cost(*rig.memory);
    context.out.record(
        Record()
            .add("trials", Value(rows))
            .add("nr_missed", nr_missed, Show::everywhere, "missed")
            .add("fill_per_kib", Nanoseconds{cost.fill_ns}, Show::everywhere, "to fill a KiB")
            .add("check_per_kib", Nanoseconds{cost.check_ns}, Show::everywhere, "to check a KiB"));
    return nr_missed == 0 ? exit_ok : exit_failed;
}

// The first refusal, if no engine did anything.
const bench::Refusal* nothing_done(const CompareReport& report) {
    for (const auto& cell : report.cells)
        if (!cell.engines.empty()) return nullptr;
    return report.cells.empty() ? nullptr : &report.cells.front().refusals.front();
}

// Adds to the report what holds for all cells.
void describe(const CompareOptions& options, CompareReport& report) {
    report.judge_anyway = options.judge_anyway;
    report.context = options.wants_module() ? options.context : "";
    report.memory = options.wants("kverbs") ? options.memory : "";
    report.cq = options.cq;
    report.inlining = options.inlining;
    report.poll = options.wants("job") ? options.poll : "";
    report.ring = options.ring;
    report.verbs_events = options.verbs.events();
}

// The values that all known connections have in common; all GID types.
bench::Connection common_connection(const std::vector<bench::Cell>& cells) {
    std::set<uint32_t> path_mtus;
    std::set<unsigned> services;
    std::set<std::string> types;
    bench::Connection common;
    for (const auto& cell : cells)
        for (const auto& [path_mtu, tos, gid_type] : cell.connections()) {
            if (path_mtu) path_mtus.insert(path_mtu);
            if (tos) services.insert(*tos);
            if (!gid_type.empty()) types.insert(gid_type);
        }
    if (path_mtus.size() == 1) common.path_mtu = *path_mtus.begin();
    if (services.size() == 1) common.tos = *services.begin();
    common.gid_type = fmt::format("{}", fmt::join(types, " and "));
    return common;
}

std::vector<EngineRegistration> registrations_of(const Rig& rig) {
    std::vector<EngineRegistration> all;
    for (const auto& engine : rig.engines)
        if (const auto cost = engine->registration()) all.push_back({engine->name(), *cost});
    return all;
}

Result measure(const CompareOptions& given, Context& context) {
    CompareOptions options = given;
    CompareReport report;
    catch_interrupts();
    if (options.self_test) {
        options.sizes = {self_test_size};
        options.depth = self_test_depth;
        options.operations = {"write"};
    }
    for (const auto& workload : workloads_of(options)) {
        options.atomics = options.atomics || bench::is_fetch(workload.operation);
        options.messages = options.messages || bench::is_message(workload.operation);
    }
    options.writes = std::any_of(options.operations.begin(), options.operations.end(),
                                 [](const auto& operation) { return operation != "read"; });
    TRY(check_options(options));
    TRY_SET(const auto version, module_version(options));
    TRY_SET(const auto no_floor, check_floor(options));

    auto workloads = workloads_of(options);
    TRY_SET(const auto rig, set_up(options, workloads));
    explain(options.verbs, rig.steps, context.out);
    if (options.self_test) return run_self_test(rig, workloads.front(), context);
    report.parameters = rig.engines.front()->parameters(workloads.front());
    TRY_SET(const auto device, facts_of(report.parameters.device));

    report.from = {bench::find_environment(), device, version,
                   rig.peer_text(options),    {},     find_peer_node(options, rig)};
    report.registrations = registrations_of(rig);
    report.no_floor = no_floor;
    describe(options, report);
    report.plan = {options.rounds, options.count,
                   std::chrono::nanoseconds(static_cast<int64_t>(options.seconds * 1e9)), interrupted};
    report.nr_wanted = workloads.size();
    bench::ConditionsWatch watch;
    for (const auto& workload : workloads) {
        if (isatty(STDERR_FILENO))
            context.out.note(fmt::format("{} {} ...", bench::operation_name(workload.operation),
                                         human_bytes(workload.size)));
        auto cell = bench::run_cell(rig.pointers(), *rig.memory, workload, report.plan);
        if (interrupted() && report.cells.empty())
            return tl::make_unexpected(interrupt_failure("stopped measuring", ""));
        if (interrupted()) break;
        if (!cell) return failed(cell.error());
        report.cells.push_back(std::move(*cell));
        watch.sample();
    }
    report.conditions = watch.finish();
    report.from.connection = common_connection(report.cells);
    if (const auto* refusal = nothing_done(report)) return failed(refusal->error);
    context.out.offer_wide(options.wide);
    context.out.record(report_record(report));
    return report.is_whole() ? exit_ok : interrupt_status();
}

Result run_compare(const CompareOptions& given, Context& context) {
    return unless_interrupted(measure(given, context));
}

void add_sizes(CLI::App& command, CompareOptions& options) {
    command
        .add_option_function<std::vector<std::string>>(
            "--size",
            [&options](const std::vector<std::string>& texts) {
                options.sizes.clear();
                options.sizes_given = true;
                for (const auto& text : texts) {
                    const auto size = parse_size(text);
                    if (!size) throw CLI::ValidationError("--size", size.error());
                    if (*size == 0 || *size > max_rig_memory)
                        throw CLI::ValidationError("--size",
                                                   "a size is 1 byte to " + human_bytes(max_rig_memory));
                    options.sizes.push_back(*size);
                }
            },
            "sizes of an operation, by commas (default 64,4K,64K; atomics have 8)")
        ->type_name("SIZE,...")
        ->delimiter(',')
        ->allow_extra_args(false);
}

void add_measuring(CLI::App& command, CompareOptions& options) {
    command
        .add_option("--depth", options.depth,
                    "operations in flight in the deep runs (default 128, or less "
                    "where an engine cannot)")
        ->type_name("N")
        ->check(from_to(1, 4096));
    command
        .add_option("--batch", options.batch,
                    "operations posted at once (default a quarter of the depth, "
                    "at most 32)")
        ->type_name("N")
        ->check(from_to(1, 256));
    command.add_option("--rounds", options.rounds, "rounds of A B C C B A (default 5)")
        ->type_name("N")
        ->check([](const std::string& text) {
            return text == "0" || text == "1" ? std::string("an interval needs two rounds or more") : "";
        })
        ->check(from_to(2, 1000));
    command
        .add_option("--count", options.count,
                    "most operations of a block, two of each engine a round (default 1000)")
        ->type_name("N")
        ->check(from_to(uint64_t{1}, uint64_t{1000000000}));
    command.add_option("--seconds", options.seconds, "most time of an operation and size (default 1)")
        ->type_name("SECONDS")
        ->check(from_to(0.01, 3600.0));
}

} // namespace

void setup_compare(CLI::App& app, Program& program) {
    const auto options = std::make_shared<CompareOptions>();
    CLI::App& command = add_command(app, "compare", "the kernel job path beside user-space verbs",
                                    "kxfer compare --op read --size 64,4K");
    add_peer_option(command, "PEER", options->peer, "the other node; none: this node serves itself")
        ->each([options](const std::string&) { options->peer_given = true; });
    auto names = operation_names();
    names.emplace_back("all");
    command
        .add_option("--op", options->operations,
                    fmt::format("operations, by commas: {}, or all (default read,write)",
                                fmt::join(operation_names(), ", ")))
        ->type_name("OP,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember(names));
    add_sizes(command, *options);
    add_measuring(command, *options);
    command
        .add_option("--engine", options->engines,
                    "by commas: verbs, kverbs (a loop in the kernel: the floor), job "
                    "(default all)")
        ->type_name("ENGINE,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember({"verbs", "kverbs", "job"}))
        ->each([options](const std::string&) { options->engines_given = true; });
    command.add_flag("--judge-anyway", options->judge_anyway,
                     "also if the host took CPU time, the CPU's frequency changed, or the engines' "
                     "connections differ");
    command.add_flag("--wide", options->wide, "all columns, also on a terminal that is too narrow for them");
    auto* self_test = command.add_flag("--self-test", options->self_test,
                                       "damages what each engine moves, in every way, and tells whether "
                                       "verification finds it");
    for (const char* name : {"--op", "--size", "--depth", "--rounds", "--count", "--seconds"})
        self_test->excludes(command.get_option(name));
    add_rig_options(command, *options);
    on_run(command, program, options, run_compare);
}

} // namespace kxfer::cli
