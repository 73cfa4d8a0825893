// SPDX-License-Identifier: MIT
//
// kxfer sweep: a grid of works and ways, each work measured in all its ways as `compare`
// does it. The result grows in a file, so that an interrupted sweep can be continued;
// tables and the report are made from that file.

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/measure/commands.hpp"
#include "cli/measure/provenance.hpp"
#include "cli/measure/result_file.hpp"
#include "cli/measure/sweep_file.hpp"
#include "cli/measure/sweep_report.hpp"
#include "cli/measure/sweep_rig.hpp"
#include "cli/measure/sweep_summary.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

using bench::Grid;
using bench::Task;

const std::vector<std::string> all_engines = {"verbs", "kverbs", "job"};
const std::vector<std::string> all_contexts = {"polled", "workqueue", "softirq", "unbound", "direct"};
const std::vector<std::string> all_memories = {"lkey", "mr", "mr-each", "mr-pool", "rw"};
const std::vector<std::string> all_signals = {"each", "batch"};
const std::vector<std::string> all_polls = {"adaptive", "always", "never"};

struct SweepOptions {
    RigOptions rig;
    Grid given; // axes that were given; the others are empty
    bool full = false, quick = false, plan_only = false;
    std::optional<unsigned> rounds, block_ms;
    std::optional<uint64_t> count;
    std::string from_file, output_file, csv_file, html_file;

    bool has_grid() const { return !(given == Grid()) || full || quick; }
    bool says_how() const {
        return rig.peer_given || rig.export_given || !rig.common.device.empty() || rounds || block_ms ||
               count;
    }
};

constexpr uint64_t kib = 1024;

Grid default_grid() {
    return {all_engines, {"read", "write"}, {64, kib, 4 * kib, 16 * kib, 64 * kib},
            {1, 32},     all_contexts,      all_memories,
            all_signals, {"adaptive"}};
}

Grid full_grid() {
    Grid grid = default_grid();
    grid.sizes = {64, 256, kib, 4 * kib, 16 * kib, 64 * kib, 256 * kib, 1024 * kib};
    grid.depths = {1, 4, 16, 64};
    grid.polls = all_polls;
    return grid;
}

Grid quick_grid() {
    return {all_engines,           {"read", "write"}, {64, 4 * kib}, {1, 8},
            {"polled", "softirq"}, {"lkey", "mr"},    {"each"},      {"adaptive"}};
}

template <typename Axis> void take(Axis& axis, const Axis& given) {
    if (!given.empty()) axis = given;
}

// The engines in the usual order, each once.
std::vector<std::string> in_order(const std::vector<std::string>& engines) {
    std::vector<std::string> sorted = all_engines;
    std::erase_if(sorted,
                  [&](const auto& engine) { return std::ranges::find(engines, engine) == engines.end(); });
    return sorted;
}

Grid grid_of(const SweepOptions& options) {
    const Grid& given = options.given;
    Grid grid = options.full ? full_grid() : options.quick ? quick_grid() : default_grid();
    take(grid.engines, given.engines);
    take(grid.operations, given.operations);
    take(grid.sizes, given.sizes);
    take(grid.depths, given.depths);
    take(grid.contexts, given.contexts);
    take(grid.memories, given.memories);
    take(grid.signals, given.signals);
    take(grid.polls, given.polls);
    grid.engines = in_order(grid.engines);
    return grid;
}

bench::SweepPlan plan_of(const SweepOptions& options) {
    bench::SweepPlan plan;
    if (options.quick) plan = {2, 40, std::chrono::milliseconds(100)};
    plan.rounds = options.rounds.value_or(plan.rounds);
    plan.count = options.count.value_or(plan.count);
    if (options.block_ms) plan.block = std::chrono::milliseconds(*options.block_ms);
    return plan;
}

bool has(const std::vector<std::string>& axis, const std::string& value) {
    return std::ranges::find(axis, value) != axis.end();
}

// Fails if an axis was given that no engine has.
tl::expected<void, Failure> check_axes(const SweepOptions& options) {
    const Grid grid = grid_of(options);
    const bool job = has(grid.engines, "job"), kverbs = has(grid.engines, "kverbs");
    if (!options.given.memories.empty() && !kverbs)
        return wrong_usage("only engine kverbs chooses how local memory is named",
                           "use --memory with --engine kverbs");
    if (!options.given.contexts.empty() && !job && !kverbs)
        return wrong_usage("user-space verbs have no completion context",
                           "use --context with --engine job or kverbs");
    if (has(options.given.contexts, "direct") && !kverbs)
        return wrong_usage("only engine kverbs has its completions in context direct",
                           "use --context direct with --engine kverbs");
    if (!options.given.polls.empty() && !(job && has(grid.contexts, "polled")))
        return wrong_usage("only the caller of a job chooses how it waits, in context polled",
                           "use --poll with --engine job and --context polled");
    const bool atomics_alone = std::ranges::all_of(
        grid.operations, [](const auto& name) { return bench::is_atomic(*bench::operation_from(name)); });
    if (atomics_alone && !options.given.sizes.empty() &&
        options.given.sizes != std::vector<uint64_t>{bench::atomic_bytes})
        return wrong_usage("an atomic operation has 8 bytes", "use --size 8, or leave it out");
    return {};
}

tl::expected<void, Failure> check_options(const SweepOptions& options) {
    const bool reports = !options.csv_file.empty() || !options.html_file.empty();
    if (!options.from_file.empty() &&
        (options.has_grid() || options.says_how() || !options.output_file.empty() || options.plan_only))
        return wrong_usage("--from makes reports of what was measured", "use it with --csv and --html alone");
    if (options.plan_only && (reports || !options.output_file.empty()))
        return wrong_usage("--plan measures nothing", "leave out --output, --csv and --html");
    if (options.rig.export_given && !options.rig.peer_given)
        return wrong_usage("without a peer there is no export to choose", "use --export with PEER");
    if (options.from_file.empty() && options.output_file.empty() && !reports && !options.plan_only)
        return wrong_usage("there is nowhere to keep the result",
                           "use --output FILE, --csv FILE or --html FILE");
    TRY(check_axes(options));
    RigOptions rig = options.rig;
    rig.engines = grid_of(options).engines;
    TRY(check_of_module(rig));
    for (const auto& work : bench::works_of(grid_of(options)))
        if (work.bytes() > max_rig_memory)
            return wrong_usage(fmt::format("too much memory is asked for, {}", human_bytes(work.bytes())),
                               fmt::format("size times depth may be {}", human_bytes(max_rig_memory)));
    return {};
}

std::string time_text(double seconds) {
    const auto whole = static_cast<uint64_t>(std::lround(seconds));
    return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

Result print_plan(const Grid& grid, const bench::SweepPlan& plan, Context& context) {
    const auto works = bench::works_of(grid);
    const auto ways = bench::ways_of(grid);
    const double seconds = plan.seconds_of(ways.size());
    Table work_rows;
    Words way_names;
    for (const auto& work : works)
        work_rows.push_back(Record()
                                .add("operation", bench::operation_name(work.operation))
                                .add("size", Bytes{work.size})
                                .add("depth", work.depth)
                                .add("signal", Value(work.signal))
                                .add("cells", uint64_t{ways.size()})
                                .add("time", Nanoseconds{std::round(seconds * 1e9)}));
    for (const auto& way : ways) way_names.push_back(way.name());
    const double total = seconds * static_cast<double>(works.size());
    context.out.record(Record()
                           .add("ways", Value(way_names), Show::json_only)
                           .add("ways", Value(Lines{way_names}), Show::text_only, "each work is done by")
                           .add("works", Value(work_rows), Show::everywhere, "\nworks")
                           .add("cells", uint64_t{works.size() * ways.size()}, Show::everywhere, "\ncells")
                           .add("time", Nanoseconds{std::round(total * 1e9)}, Show::json_only)
                           .add("time", Value("about " + time_text(total)), Show::text_only, "time"));
    return exit_ok;
}

// Where and how the sweep is measured: the facts that must stay the same.
tl::expected<std::string, Failure> facts_of_sweep(const SweepOptions& options, const SweepRig& rig,
                                                  const std::string& version) {
    const auto parameters = rig.parameters();
    TRY_SET(auto device, facts_of(parameters.device));
    const bool software = device.software();
    // A server on this node may have another port the next time.
    Provenance from{bench::find_environment(),
                    std::move(device),
                    version,
                    options.rig.peer_given ? rig.peer_text() : std::string("this node"),
                    parameters.connection,
                    rig.peer_node()};
    Record record;
    add_provenance(record, from);
    record.add("software", Value(software), Show::json_only);
    return json_text(record);
}

// Rows done and time left; the planned time is corrected by the measured times.
class SweepProgress {
  public:
    SweepProgress(const Context& context, const SweepFile& file)
        : line_(context.out, "sweep"), file_(file), ways_(bench::ways_of(file.result().grid).size()) {}

    void show(const Task& next, size_t nr_missing) {
        const auto& result = file_.result();
        const double planned = result.plan.seconds_of(ways_);
        double taken = 0;
        for (const auto& row : result.rows) taken += row.seconds;
        const double each = result.rows.empty() ? planned : taken / static_cast<double>(result.rows.size());
        const size_t all = result.rows.size() + nr_missing;
        const double part = static_cast<double>(result.rows.size()) / static_cast<double>(all);
        line_.show(part, fmt::format("{} of {} cells, {} left: {} of {}", result.rows.size() * ways_,
                                     all * ways_, time_text(each * static_cast<double>(nr_missing)),
                                     next.kind(), human_bytes(next.size)));
    }

  private:
    ProgressLine line_;
    const SweepFile& file_;
    size_t ways_;
};

Failure stopped_at(const SweepOptions& options, const SweepFile& file) {
    Failure failure = interrupt_failure("stopped measuring", "");
    const size_t done = file.result().rows.size(), all = done + file.result().missing().size();
    failure.error.on = fmt::format("after {} of {} works", done, all);
    if (!options.output_file.empty())
        failure.error.hint =
            fmt::format("the same command goes on with the others; what there is: kxfer sweep "
                        "--from {} --html report.html",
                        options.output_file);
    failure.details.add("works_done", uint64_t{done}).add("works", uint64_t{all});
    return failure;
}

tl::expected<void, Failure> measure_missing(const SweepOptions& options, SweepRig& rig, SweepFile& file,
                                            Context& context) {
    const auto missing = file.result().missing();
    SweepProgress progress(context, file);
    for (size_t i = 0; i < missing.size(); i++) {
        progress.show(missing[i], missing.size() - i);
        TRY(rig.connect(missing[i].signal));
        auto row = rig.measure(missing[i], file.result().plan);
        if (interrupted()) return tl::make_unexpected(stopped_at(options, file));
        if (!row) return tl::make_unexpected(row.error());
        TRY(file.append(std::move(*row)));
    }
    return {};
}

// The signalling to connect first, because the head of the file needs connected engines.
std::string first_signal(const Grid& grid) { return grid.signals.front(); }

tl::expected<bench::SweepResult, Failure> measure(const SweepOptions& options, Context& context) {
    const Grid grid = grid_of(options);
    RigOptions rig_options = options.rig;
    rig_options.engines = grid.engines;
    rig_options.engines_given = !options.given.engines.empty();
    rig_options.writes =
        std::ranges::any_of(grid.operations, [](const auto& name) { return name != "read"; });
    rig_options.atomics = std::ranges::any_of(
        grid.operations, [](const auto& name) { return bench::is_fetch(*bench::operation_from(name)); });
    rig_options.messages = std::ranges::any_of(
        grid.operations, [](const auto& name) { return bench::is_message(*bench::operation_from(name)); });
    catch_interrupts();
    for (const auto& path : {options.csv_file, options.html_file}) TRY(check_result_file(path));
    TRY_SET(const auto version, module_version(rig_options));
    TRY_SET(auto rig, SweepRig::set_up(rig_options, grid, bench::works_of(grid)));
    TRY(rig.connect(first_signal(grid)));
    TRY_SET(const auto facts, facts_of_sweep(options, rig, version));
    TRY_SET(auto file, SweepFile::open(options.output_file, bench::head_line(facts, grid, plan_of(options))));
    if (file.result().missing().empty()) {
        context.out.note(fmt::format("{} is complete; nothing is measured", options.output_file));
        return file.result();
    }
    if (const size_t there = file.result().rows.size())
        context.out.note(fmt::format("{} has {} of {} works; going on with the others", options.output_file,
                                     there, bench::works_of(grid).size()));
    TRY(measure_missing(options, rig, file, context));
    return file.result();
}

void add_summary(Record& record, const bench::SweepResult& result) {
    Table summary;
    const Words notes = notes_of(result);
    for (const auto& [title, answers] : summary_of(result)) {
        Record section;
        for (const auto& [kind, sentences] : answers) {
            summary.push_back(Record()
                                  .add("question", Value(title))
                                  .add("work", Value(kind))
                                  .add("answers", Value(Words(sentences))));
            section.add("answers", Value(Lines{sentences}), Show::text_only, kind);
        }
        record.add("answers", Value(std::make_shared<Record>(section)), Show::text_only, "\n" + title);
    }
    record.add("summary", Value(summary), Show::json_only)
        .add("notes", Value(notes), Show::json_only)
        .add("notes", Value(std::make_shared<Record>(numbered(notes))), Show::text_only, "\nnotes");
}

Record sweep_record(const SweepOptions& options, const bench::SweepResult& result) {
    size_t measured = 0, refused = 0;
    for (const auto& row : result.rows) {
        measured += row.cells.size();
        refused += row.refusals.size();
    }
    Record record;
    record.add("works", uint64_t{result.rows.size()})
        .add("cells_measured", uint64_t{measured})
        .add("cells_refused", uint64_t{refused});
    for (const auto& [key, file] :
         {std::pair{"output", options.output_file}, {"csv", options.csv_file}, {"html", options.html_file}})
        if (!file.empty()) record.add(key, Value(file));
    add_summary(record, result);
    return record;
}

Result plan_measure_or_read(const SweepOptions& options, Context& context) {
    TRY(check_options(options));
    if (options.plan_only) return print_plan(grid_of(options), plan_of(options), context);
    TRY_SET(const auto result,
            options.from_file.empty() ? measure(options, context) : read_sweep(options.from_file));
    if (!options.csv_file.empty()) TRY(write_result_file(options.csv_file, bench::csv_text(result)));
    if (!options.html_file.empty()) TRY(write_result_file(options.html_file, html_of(result)));
    context.out.record(sweep_record(options, result));
    return exit_ok;
}

Result run_sweep(const SweepOptions& options, Context& context) {
    return unless_interrupted(plan_measure_or_read(options, context));
}

// Adds the value unless the list has it already.
template <typename T> void remember(std::vector<T>& axis, const T& value) {
    if (std::ranges::find(axis, value) == axis.end()) axis.push_back(value);
}

void add_axis(CLI::App& command, const std::string& name, std::vector<std::string>& axis,
              const std::vector<std::string>& values, const std::string& what) {
    command
        .add_option_function<std::vector<std::string>>(
            name,
            [&axis](const std::vector<std::string>& given) {
                for (const auto& value : given) remember(axis, value);
            },
            what)
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember(values));
}

void add_sizes(CLI::App& command, std::vector<uint64_t>& sizes) {
    command
        .add_option_function<std::vector<std::string>>(
            "--size",
            [&sizes](const std::vector<std::string>& texts) {
                for (const auto& text : texts) {
                    const auto size = parse_size(text);
                    if (!size) throw CLI::ValidationError("--size", size.error());
                    if (*size == 0 || *size > max_rig_memory)
                        throw CLI::ValidationError("--size",
                                                   "a size is 1 byte to " + human_bytes(max_rig_memory));
                    remember(sizes, *size);
                }
            },
            "bytes of an operation (default 64,1K,4K,16K,64K; atomics have 8)")
        ->type_name("SIZE,...")
        ->delimiter(',')
        ->allow_extra_args(false);
}

void add_grid(CLI::App& command, SweepOptions& options) {
    Grid& grid = options.given;
    std::vector<std::string> operations;
    for (const auto operation : bench::all_operations)
        operations.emplace_back(bench::operation_name(operation));
    add_axis(command, "--engine", grid.engines, all_engines, "verbs, kverbs, job (default all)");
    add_axis(command, "--op", grid.operations, operations,
             fmt::format("{} (default read,write)", fmt::join(operations, ", ")));
    add_sizes(command, grid.sizes);
    command
        .add_option("--depth", grid.depths,
                    "operations in flight (default 1,32); 1: one at a time, with latencies")
        ->type_name("N,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(from_to(1, 4096));
    add_axis(command, "--context", grid.contexts, all_contexts,
             "completion contexts of kverbs and job: polled, workqueue, softirq, unbound and, of kverbs, "
             "direct (default all)");
    add_axis(command, "--memory", grid.memories, all_memories,
             "registration of local memory by kverbs: lkey, mr, mr-each, mr-pool, rw (default all)");
    add_axis(command, "--signal", grid.signals, all_signals,
             "a completion for each operation or for each batch (default both)");
    add_axis(command, "--poll", grid.polls, all_polls,
             "how the caller of a job waits in context polled: adaptive, always, never (default adaptive)");
}

void add_measuring(CLI::App& command, SweepOptions& options) {
    auto* full = command.add_flag("--full", options.full, "more sizes and depths, and every way to wait");
    command.add_flag("--quick", options.quick, "a small grid in seconds, to see whether it works")
        ->excludes(full);
    command.add_option("--rounds", options.rounds, "rounds of A B C C B A (default 5)")
        ->type_name("N")
        ->check([](const std::string& text) {
            return text == "0" || text == "1" ? std::string("an interval needs two rounds or more") : "";
        })
        ->check(from_to(2, 1000));
    command
        .add_option("--count", options.count,
                    "most operations of a block, two of each cell a round (default 1000)")
        ->type_name("N")
        ->check(from_to(uint64_t{1}, uint64_t{1000000000}));
    command.add_option("--block", options.block_ms, "most time of a block (default 25)")
        ->type_name("MILLISECONDS")
        ->check(from_to(1U, 60000U));
    command.add_flag("--plan", options.plan_only,
                     "prints the cells and the time they will take, and measures nothing");
}

void add_files(CLI::App& command, SweepOptions& options) {
    command
        .add_option("--output", options.output_file,
                    "the result, as JSON lines; if it is there, the sweep goes on with what is missing in it")
        ->type_name("FILE");
    command.add_option("--from", options.from_file, "makes reports of this result, and measures nothing")
        ->type_name("FILE");
    command.add_option("--csv", options.csv_file, "a line for each cell")->type_name("FILE");
    command.add_option("--html", options.html_file, "a report with plots, in one file")->type_name("FILE");
}

} // namespace

void setup_sweep(CLI::App& app, Program& program) {
    const auto options = std::make_shared<SweepOptions>();
    options->rig.export_name = "sweep";
    CLI::App& command = add_command(app, "sweep", "a grid of engines, sizes and ways, with a report",
                                    "kxfer sweep --output sweep.jsonl --html sweep.html");
    add_peer_option(command, "PEER", options->rig.peer, "the other node; none: this node serves itself")
        ->each([options](const std::string&) { options->rig.peer_given = true; });
    add_grid(command, *options);
    add_measuring(command, *options);
    add_files(command, *options);
    command
        .add_option("--export", options->rig.export_name,
                    "export of the peer that is read and overwritten (default sweep)")
        ->type_name("NAME")
        ->each([options](const std::string&) { options->rig.export_given = true; });
    add_common_options(command, options->rig.common);
    on_run(command, program, options, run_sweep);
}

} // namespace kxfer::cli
