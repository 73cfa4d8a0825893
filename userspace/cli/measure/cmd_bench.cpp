// SPDX-License-Identifier: MIT
//
// kxfer bench OP: one engine and one workload, for a time or a count, with an exit
// status that scripts can use. `compare` measures engines side by side. `bench all` is in bench_all.cpp.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/try.hpp"
#include "bench/run/clients.hpp"
#include "bench/run/stage_trace.hpp"
#include "bench/stats/assertion.hpp"
#include "bench/stats/baseline.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/measure/bench_all.hpp"
#include "cli/measure/bench_report.hpp"
#include "cli/measure/bench_run.hpp"
#include "cli/measure/bidirectional.hpp"
#include "cli/measure/commands.hpp"
#include "cli/measure/cpus.hpp"
#include "cli/measure/result_file.hpp"
#include "cli/node/interrupt.hpp"
#include "engine/mix.hpp"
#include "engine/verification.hpp"
#include "verbs/responder.hpp"

namespace kxfer::cli {

namespace {

constexpr uint64_t max_intervals = 10000;

tl::expected<void, Failure> check_round_trip(const BenchOptions& options) {
    const char* name = options.workload.name();
    const bool by_runs = options.wants("kverbs");
    const bool runs_can = options.workload.work == bench::Work::write_ping_pong;
    if (by_runs && !runs_can)
        return wrong_usage(fmt::format("{} can only be done by engine job", name),
                           "use --engine job, or write-ping-pong with --engine kverbs");
    if (!by_runs && !options.wants("job"))
        return runs_can
                   ? wrong_usage(fmt::format("{} can only be done by engines job and kverbs", name),
                                 "use --engine job or kverbs")
                   : wrong_usage(fmt::format("{} can only be done by engine job", name), "use --engine job");
    if (by_runs && (options.memory != "lkey" || options.own_connection() || options.rate > 0))
        return wrong_usage(fmt::format("{} of kverbs is made on a lane, one after the other", name),
                           "leave out --memory, --cq, --context direct and --rate");
    if (options.workload.depth != 1)
        return wrong_usage(fmt::format("{} runs one operation at a time", name), "use --depth 1");
    return {};
}

tl::expected<void, Failure> check_what(const BenchOptions& options) {
    const auto& workload = options.workload;
    if (bench::is_atomic(workload.operation) && workload.size != bench::atomic_bytes)
        return wrong_usage(fmt::format("an atomic operation has 8 bytes, not {}", workload.size),
                           "use --size 8, or another operation");
    if (!workload.moves() && !options.wants("kverbs"))
        return wrong_usage("register is done by engine kverbs only", "use register with --engine kverbs");
    if (!workload.moves() && options.memory != "mr-each" && options.memory != "mr-pool")
        return wrong_usage("register registers memory for each operation",
                           "use --memory mr-each or mr-pool, or leave it out");
    if (!options.inline_writes() && !workload.is_mix() && !bench::is_write(workload.operation))
        return wrong_usage("only the payload of a WRITE is carried inline",
                           "use --inline never with write, write-imm or mix");
    if (options.mix_given && !workload.is_mix())
        return wrong_usage(fmt::format("{} is not a mix", workload.name()),
                           "use --mix with the operation mix");
    if (workload.is_mix() && (options.wants("kverbs") || options.stages))
        return wrong_usage("a mix is done with engine job or verbs, and without --stages", "leave them out");
    if (workload.is_mix() && !options.verbs.reliable())
        return wrong_usage("a mix has READs, which only reliable connections carry",
                           "use --transport rc with mix");
    if (bench::has_messages(workload) && workload.is_mix() && !options.wants("job"))
        return wrong_usage("only engine job sends messages beside READs and WRITEs",
                           "use send in a mix with --engine job");
    if (options.verify && (!workload.moves() || workload.work == bench::Work::write_ping_pong))
        return wrong_usage(fmt::format("the data of {} is not verified", workload.name()),
                           "leave out --verify; ping-pong compares every byte");
    if (options.invalidate == "remote" && workload.operation != bench::Operation::send)
        return wrong_usage("only a SEND is answered", "use --invalidate remote with send");
    if (options.stored &&
        !(workload.is_mix() ? bench::has_messages(workload) : workload.operation == bench::Operation::send))
        return wrong_usage(fmt::format("{} has no SEND that could be done earlier", workload.name()),
                           "use --stored with send, or with mix and --mix that has send");
    if (options.stages && (!options.wants("job") || workload.depth != 1 || workload.is_round_trip()))
        return wrong_usage("only jobs that are done one at a time have stages",
                           "use --stages with READ, WRITE or an atomic, --engine job and --depth 1");
    return workload.is_round_trip() ? check_round_trip(options) : tl::expected<void, Failure>();
}

tl::expected<void, Failure> check_clients(const BenchOptions& options) {
    const uint64_t bytes = options.workload.bytes() * options.nr_clients;
    if (options.cpus.size() > options.nr_clients)
        return wrong_usage(
            fmt::format("there are more CPUs ({}) than clients ({}), and each client is pinned to one",
                        options.cpus.size(), options.nr_clients),
            fmt::format("use --clients {}, or --cpus with fewer", options.cpus.size()));
    if (options.nr_clients == 1) return {};
    if (options.workload.is_round_trip())
        return wrong_usage("round trips are made by two processes", "leave out --clients");
    if (options.wants("kverbs") && !options.workload.moves())
        return wrong_usage("register is done by one client", "leave out --clients");
    if (options.interval_given || options.stages)
        return wrong_usage("with --clients there are no intervals and no stages",
                           "leave out --interval and --stages");
    constexpr unsigned most = verbs::VerbsResponder::max_connections;
    if (!options.wants("job") && options.nr_clients > most)
        return wrong_usage(fmt::format("a responder of verbs has at most {} connections, and each client of "
                                       "verbs and kverbs takes one",
                                       most),
                           fmt::format("use --clients {} or less, or --engine job", most));
    if (bytes > max_rig_memory)
        return wrong_usage(
            fmt::format("too much memory is asked for, {}", human_bytes(bytes)),
            fmt::format("size times depth times clients may be {}", human_bytes(max_rig_memory)));
    return {};
}

tl::expected<void, Failure> check_options(const BenchOptions& options) {
    const auto& workload = options.workload;
    TRY(check_rig(options));
    TRY(check_what(options));
    TRY(check_clients(options));
    if (auto one_way = find_one_way(options, workload)) return failed(*one_way, exit_usage);
    if (options.batch > workload.depth)
        return wrong_usage("a batch cannot be larger than the depth",
                           fmt::format("use --batch {} or less", workload.depth));
    if (workload.bytes() > max_rig_memory)
        return wrong_usage(fmt::format("too much memory is asked for, {}", human_bytes(workload.bytes())),
                           fmt::format("size times depth may be {}", human_bytes(max_rig_memory)));
    if (!options.count && options.seconds / options.interval_seconds > static_cast<double>(max_intervals))
        return wrong_usage("too many intervals", fmt::format("a run has at most {}", max_intervals));
    if (options.signal_number() > 1 && workload.depth == 1)
        return wrong_usage("one operation at a time has a completion of its own",
                           "use --signal N with --depth N or more");
    if (options.signal_number() > 1 &&
        options.signal_number() + batch_of(options, workload.depth, options.batch) > workload.depth + 1)
        return wrong_usage("the next batch would wait for a completion that only it brings",
                           "use --signal and --batch that together are no more than the depth and one");
    if (options.rate > 0 && options.signal_number() != 1)
        return wrong_usage("operations on schedule do not come in whole batches",
                           "use --rate with --signal each");
    if (options.tolerance_given && options.baseline_file.empty())
        return wrong_usage("there is nothing to be tolerant against", "use --tolerance with --baseline");
    if (!options.report_file.empty() && options.assertions.empty() && options.baseline_file.empty())
        return wrong_usage("there is nothing to report", "use --report with --assert or --baseline");
    return {};
}

tl::expected<bench::Baseline, Failure> read_baseline(const std::string& file) {
    errno = 0;
    std::ifstream stream(file);
    if (!stream) return failed(Error("cannot read the baseline", file, errno ? errno : EIO));
    auto baseline = bench::parse_baseline({std::istreambuf_iterator<char>(stream), {}});
    if (!baseline)
        return failed(Error("cannot use the baseline", file, EINVAL,
                            "make one with: kxfer bench ... --output FILE", baseline.error()));
    if (baseline->interrupted)
        return failed(Error("cannot use the baseline", file, EINVAL,
                            "make one with: kxfer bench ... --output FILE", "its run was interrupted"));
    return std::move(*baseline);
}

// What --output would write now.
bench::Baseline as_baseline(const BenchReport& report) {
    return bench::parse_baseline(json_text(bench_record(report))).value_or(bench::Baseline());
}

tl::expected<void, Failure> check_baseline(const BenchOptions& options, const bench::Baseline& baseline,
                                           const BenchReport& report) {
    const auto differences = bench::find_differences(baseline, as_baseline(report));
    if (differences.empty()) return {};
    return failed(Error("the baseline measured something else:", options.baseline_file, EINVAL,
                        "use the same options on the same machine, or make a new baseline: kxfer bench ... "
                        "--output FILE",
                        fmt::format("{}", fmt::join(differences, "; "))));
}

void judge(const BenchOptions& options, const std::optional<bench::Baseline>& baseline, BenchReport& report) {
    const std::string obstacle = report.result.interrupted ? "the run was interrupted"
                                 : options.judge_anyway    ? ""
                                                           : report.result.conditions.obstacle();
    report.verdicts = bench::judge(options.assertions, figures_of(report.result), obstacle);
    if (!baseline) return;
    for (auto& verdict : bench::judge(*baseline, as_baseline(report), options.tolerance, obstacle))
        report.verdicts.push_back(std::move(verdict));
}

tl::expected<void, Failure> write_files(const BenchOptions& options, const BenchReport& report) {
    if (!options.output_file.empty())
        TRY(write_result_file(options.output_file, json_text(bench_record(report))));
    if (options.report_file.empty()) return {};
    return write_result_file(options.report_file,
                             bench::report_text(*bench::report_form(options.report_file),
                                                bench_title(report.result), report.verdicts));
}

// Fails before the measurement if --stages was given and jobs cannot be traced.
tl::expected<void, Failure> check_stages(const BenchOptions& options) {
    if (!options.stages) return {};
    const auto trace = bench::StageTrace::open();
    if (trace) return {};
    Error error = trace.error();
    error.hint += error.hint.empty() ? "or leave out --stages" : "; or leave out --stages";
    return failed(std::move(error));
}

// Fails if --stages was given and the run has no stages; the printed result says so too.
Result stages_or(const BenchReport& report, int status) {
    if (!report.plan.stages || report.result.stages) return status;
    return failed(Error("the stages of jobs were asked for and are not in the result", "", 0, "run it again",
                        report.result.no_stages));
}

Result measure(const BenchOptions& given, Context& context) {
    BenchOptions options = with_defaults(given);
    catch_interrupts();
    TRY(check_options(options));
    for (const auto& file : {options.output_file, options.report_file}) TRY(check_result_file(file));
    // After a failed run the old report would be mistaken for this one's.
    std::error_code stays;
    if (std::filesystem::is_regular_file(options.report_file, stays))
        std::filesystem::remove(options.report_file, stays);
    TRY_SET(const auto version, module_version(options));
    TRY(check_floor(options));
    TRY(check_stages(options));

    std::optional<bench::Baseline> baseline;
    const auto check = [&](const BenchReport& report) -> tl::expected<void, Failure> {
        if (options.baseline_file.empty()) return {};
        if (!baseline) {
            TRY_SET(baseline, read_baseline(options.baseline_file));
        }
        return check_baseline(options, *baseline, report);
    };
    TRY_SET(auto report, run_workload(options, version, check, context));
    judge(options, baseline, report);
    report.verbose = options.verbose;
    context.out.record(bench_record(report));
    TRY(write_files(options, report));
    if (report.result.interrupted) return interrupt_status();
    const bool fine = std::all_of(report.verdicts.begin(), report.verdicts.end(),
                                  [](const auto& verdict) { return verdict.fine(); });
    return stages_or(report, fine ? exit_ok : exit_failed);
}

Result measure_all(const BenchOptions& options, Context& context) {
    catch_interrupts();
    TRY(check_all(options));
    TRY(check_rig(options));
    TRY_SET(const auto version, module_version(options));
    return bench_all(options, version, check_options, context);
}

Result run_bench(const BenchOptions& given, Context& context) {
    return unless_interrupted(given.all ? measure_all(given, context) : measure(given, context));
}

std::string operation_names() {
    std::vector<std::string> names;
    for (const auto operation : bench::all_operations) names.emplace_back(bench::operation_name(operation));
    names.emplace_back("mix");
    for (const auto work : bench::other_work) names.emplace_back(bench::work_name(work));
    names.emplace_back("all");
    return fmt::format("{}", fmt::join(names, ", "));
}

void set_operation(BenchOptions& options, const std::string& name) {
    options.all = name == "all";
    if (options.all || options.set_operation(name)) return;
    throw CLI::ValidationError(
        "OP", fmt::format("'{}' is not an operation; there are: {}", name, operation_names()));
}

void add_what(CLI::App& command, BenchOptions& options) {
    command
        .add_option_function<std::string>(
            "OP", [&options](const std::string& name) { set_operation(options, name); },
            "the operation: " + operation_names())
        ->type_name("OP")
        ->required();
    add_peer_option(command, "PEER", options.peer, "the other node; none: this node serves itself")
        ->each([&options](const std::string&) { options.peer_given = true; });
    command
        .add_option_function<std::string>(
            "-e,--engine",
            [&options](const std::string& engine) {
                options.engines = {engine};
                options.engine_chosen = true;
            },
            "job (default), verbs (user space) or kverbs (a loop in the kernel, without jobs; "
            "default of register)")
        ->type_name("ENGINE")
        ->check(CLI::IsMember({"job", "verbs", "kverbs"}));
    command
        .add_option_function<std::string>(
            "-s,--size",
            [&options](const std::string& text) {
                const auto size = parse_size(text);
                if (!size) throw CLI::ValidationError("--size", size.error());
                if (*size == 0 || *size > max_rig_memory)
                    throw CLI::ValidationError("--size",
                                               "a size is 1 byte to " + human_bytes(max_rig_memory));
                options.workload.size = *size;
                options.size_given = true;
            },
            "bytes of an operation (default 64; atomics have 8)")
        ->type_name("SIZE");
}

void add_load(CLI::App& command, BenchOptions& options) {
    command
        .add_option("-d,--depth", options.workload.depth,
                    "operations in flight (default 1: each timed from the end of the one before)")
        ->type_name("N")
        ->check(from_to(1, 4096));
    command
        .add_option("--batch", options.batch,
                    "operations posted by one call (default a quarter of the depth, at most 32)")
        ->type_name("N")
        ->check(from_to(1, 256));
    command
        .add_option_function<std::string>(
            "--mix",
            [&options](const std::string& text) {
                auto mix = bench::parse_mix(text);
                if (!mix) throw CLI::ValidationError("--mix", mix.error());
                options.mix = std::move(*mix);
                options.mix_given = true;
            },
            "percent of each operation of a mix (default read=50,write=50)")
        ->type_name("OP=PERCENT,...");
    command
        .add_option("--clients", options.nr_clients,
                    "processes that do so at the same time, each on an export of its own (default 1)")
        ->type_name("N")
        ->check(from_to(1, 64));
    command.add_flag("--bidirectional", options.bidirectional,
                     "the peer does the same to this node at the same time (engine job)");
    command
        .add_option_function<std::string>(
            "--cpus",
            [&options](const std::string& text) {
                auto cpus = parse_cpus(text);
                if (!cpus) throw CLI::ValidationError("--cpus", cpus.error());
                options.cpus = std::move(*cpus);
            },
            "pin client 1 to the first CPU of the list, client 2 to the second, and so on, starting over if "
            "there are more clients than CPUs (such as 0,2-3)")
        ->type_name("LIST");
}

void add_length(CLI::App& command, BenchOptions& options) {
    auto* count =
        command.add_option("-n,--count", options.count, "operations to measure, instead of a duration")
            ->type_name("N")
            ->check(from_to(uint64_t{1}, uint64_t{1000000000000}));
    command
        .add_option("-D,--duration", options.seconds, "how long to measure (default 5; each row of all: 1)")
        ->type_name("SECONDS")
        ->check(from_to(0.01, 604800.0))
        ->excludes(count)
        ->each([&options](const std::string&) { options.duration_given = true; });
    command
        .add_option("-i,--interval", options.interval_seconds,
                    "parts of a duration (default 1), each a line on a terminal, or if this is given")
        ->type_name("SECONDS")
        ->check(from_to(0.01, 3600.0))
        ->excludes(count)
        ->each([&options](const std::string&) { options.interval_given = true; });
    command
        .add_option_function<std::string>(
            "--rate",
            [&options](const std::string& text) {
                const auto rate = bench::parse_rate(text);
                if (!rate || *rate < 0.1 || *rate > 1e9)
                    throw CLI::ValidationError("--rate",
                                               "a rate is 0.1/s to 1000M/s, such as 500/s or 10k/s");
                options.rate = *rate;
            },
            "begin so many operations a second, whether others have ended or not; latency counts "
            "from when each was due")
        ->type_name("N/s");
    command.add_flag("--stages", options.stages,
                     "where a job's time goes, traced in the kernel after the run (engine job, depth 1)");
    command.add_flag("--timestamps", options.verbs.timestamps,
                     "engine verbs: how far apart completions are by the device's clock, if it has one");
    command.add_option("--warm-up", options.warm_up, "operations before those that count (default 100)")
        ->type_name("N")
        ->check(from_to(uint64_t{0}, uint64_t{1000000000}));
}

void add_judging(CLI::App& command, BenchOptions& options) {
    command
        .add_option_function<std::string>(
            "--assert",
            [&options](const std::string& text) {
                auto parsed = bench::parse_assertions(text);
                if (!parsed)
                    throw CLI::ValidationError("--assert", fmt::format("at character {} of '{}': {}",
                                                                       parsed.error().position, text,
                                                                       parsed.error().message));
                options.assertions = std::move(*parsed);
            },
            "what has to hold, by commas, such as 'p99<80us,bw>500MiB/s'; else the exit status is 1")
        ->type_name("ASSERTION,...");
    command
        .add_option("--baseline", options.baseline_file,
                    "a result of --output: rate, bandwidth, p50 and p99 may not be worse")
        ->type_name("FILE");
    command
        .add_option_function<std::string>(
            "--tolerance",
            [&options](const std::string& text) {
                const auto tolerance = bench::parse_tolerance(text);
                if (!tolerance)
                    throw CLI::ValidationError("--tolerance", "a tolerance is 0% to 1000%, such as 5%");
                options.tolerance = *tolerance;
                options.tolerance_given = true;
            },
            "by so much they may be worse than the baseline (default 5%)")
        ->type_name("PERCENT");
    command.add_flag("--judge-anyway", options.judge_anyway,
                     "judge even if the host took more than 5 % of a CPU or the CPU frequency changed by "
                     "more than 10 %");
    command.add_option("--report", options.report_file, "verdicts as JUnit (FILE.xml) or TAP (FILE.tap)")
        ->type_name("FILE")
        ->check([](const std::string& file) {
            return bench::report_form(file) ? std::string() : "a report is FILE.xml or FILE.tap";
        });
    command.add_option("-o,--output", options.output_file, "the result as JSON, for --baseline")
        ->type_name("FILE");
}

} // namespace

void setup_bench(CLI::App& app, Program& program) {
    const auto options = std::make_shared<BenchOptions>();
    CLI::App& command =
        add_command(app, "bench", "one engine and one workload, with percentiles and verdicts",
                    "kxfer bench read 10.77.0.1 --size 4K --assert 'p99<80us'");
    add_what(command, *options);
    command.add_flag("-v,--verbose", options->verbose,
                     "also where it was measured, and all parameters (JSON always has them)");
    add_load(command, *options);
    add_length(command, *options);
    add_judging(command, *options);
    add_rig_options(command, *options);
    command.get_option("--memory")->each([options](const std::string&) { options->memory_given = true; });
    on_run(command, program, options, run_bench);
}

} // namespace kxfer::cli
