// SPDX-License-Identifier: MIT
#include "cli/bench_report.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/baseline.hpp"
#include "bench/figure.hpp"

namespace kxfer::cli {

namespace {

// NaN, so that the key has its unit even if there is no value.
Nanoseconds nanoseconds(const std::optional<uint64_t>& ns) { return {ns ? static_cast<double>(*ns) : NAN}; }

// A latency for JSON and, where there is none, "-" for people.
void add_latency(Record& record, const std::string& key, double ns, const std::string& label) {
    record.add(key, Nanoseconds{ns}, Show::json_only)
        .add(key, std::isnan(ns) ? Value(None{}) : Value(Nanoseconds{ns}), Show::text_only, label);
}

// Three digits that tell something: 0.0312, not 0.03.
void add_number(Record& record, const std::string& key, const std::optional<double>& number,
                const std::string& label) {
    record.add(key, number ? Value(*number) : Value(None{}), Show::json_only)
        .add(key, number ? Value(fmt::format("{:.3g}", *number)) : Value(None{}), Show::text_only, label);
}

double bandwidth(const bench::Interval& interval, uint64_t size) {
    return interval.operations_per_second() * static_cast<double>(size);
}

void add_way(Record& record, const BenchReport& report) {
    const auto& engine = report.result.engine;
    if (engine == "verbs") {
        // Told if it is not what it has always been, so that older baselines are still good.
        if (report.rig.verbs.by_tcp()) record.add("connect", Value(report.rig.verbs.connect));
        if (report.rig.verbs.events()) record.add("wait", Value(report.rig.verbs.wait));
        return;
    }
    record.add("completion_context", report.rig.context);
    if (report.rig.context == "polled" && engine == "job") record.add("poll", report.rig.poll);
    if (engine == "job") record.add("ring", report.rig.ring);
    if (engine == "kverbs") record.add("memory", report.rig.memory);
}

void add_length(Record& record, const bench::RunPlan& plan) {
    if (plan.count)
        record.add("count", plan.count);
    else
        record.add("duration", Nanoseconds{static_cast<double>(plan.duration.count())})
            .add("interval", Nanoseconds{static_cast<double>(plan.interval.count())});
    if (plan.rate > 0) record.add("rate_asked", PerSecond{plan.rate}, Show::everywhere, "on schedule");
    record.add("warm_up_operations", plan.warm_up, Show::everywhere, "operations of warm-up");
}

// All that has to be the same for two results to be compared.
Record parameters_record(const BenchReport& report) {
    const auto& workload = report.result.workload;
    const auto& parameters = report.parameters;
    const auto& from = report.from;
    Record record;
    record.add("engine", report.result.engine)
        .add("operation", workload.name())
        .add("size", Bytes{workload.size})
        .add("depth", workload.depth)
        .add("batch", workload.batch)
        .add("signal_every", parameters.signal_every);
    add_way(record, report);
    add_length(record, report.plan);
    record.add("local_memory", Bytes{parameters.local_bytes})
        .add("local_layout", parameters.local_layout)
        .add("local_registration", parameters.local_registration, Show::everywhere, "local memory is named")
        .add("remote_memory", Bytes{parameters.remote_bytes})
        .add("remote_registration", parameters.remote_registration)
        .add("write_success", parameters.write_success, Show::everywhere, "a WRITE is done when")
        .add("peer", report.rig.peer_given ? from.peer : std::string("this node"), Show::json_only)
        .add("driver", from.device.core.driver, Show::json_only)
        .add("mtu", Bytes{mtu_of(from.device)}, Show::json_only)
        .add("cpu_model", from.environment.cpu_model, Show::json_only)
        .add("cpus", from.environment.nr_cpus, Show::json_only)
        .add("affinity", from.environment.affinity, Show::json_only)
        .add("virtual_machine", virtual_machine_text(from.environment), Show::json_only);
    return record;
}

// "latency_p99_9" of p99.9
std::string latency_key(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return "latency_" + name;
}

void add_figures(Record& record, const std::vector<bench::Figure>& figures) {
    for (const auto& figure : figures) {
        if (figure.kind == bench::Kind::time && figure.name != "cpu")
            add_latency(record, latency_key(figure.name), figure.value.value_or(NAN),
                        "latency " + figure.name);
        if (figure.name == "cpu")
            add_latency(record, "cpu_per_operation", figure.value.value_or(NAN), "CPU time an operation");
        if (figure.name == "syscalls")
            add_number(record, "syscalls_per_operation", figure.value, "system calls an operation");
        if (figure.name == "switches")
            add_number(record, "switches_per_operation", figure.value, "context switches an operation");
    }
}

Record total_record(const bench::RunResult& result) {
    Record record;
    const auto operations = static_cast<double>(std::max<uint64_t>(result.operations, 1));
    record.add("operations", result.operations)
        .add("elapsed", Nanoseconds{static_cast<double>(result.elapsed_ns)})
        .add("rate", PerSecond{result.operations_per_second()})
        .add("bandwidth", BytesPerSecond{result.bytes_per_second()})
        .add("latency_samples", result.latencies.count(), Show::json_only);
    add_figures(record, figures_of(result));
    if (result.workload.work == bench::Work::ping_pong)
        record.add("bytes_compared", Bytes{result.operations * result.workload.size});
    if (result.workload.work == bench::Work::write_ping_pong)
        add_latency(record, "write_latency_p50", static_cast<double>(result.latencies.percentile(50)) / 2,
                    "a WRITE one way, p50");
    if (result.uncorrected.count()) {
        const auto& uncorrected = result.uncorrected;
        add_latency(record, "latency_uncorrected_p99",
                    uncorrected.supports(99) ? static_cast<double>(uncorrected.percentile(99)) : NAN,
                    "p99 from hand-in, uncorrected");
        record.add("operations_overdue", result.nr_overdue, Show::everywhere, "due but not handed in");
    }
    return record
        .add("cpu_user_per_operation", Nanoseconds{result.usage.user_ns / operations}, Show::json_only)
        .add("cpu_system_per_operation", Nanoseconds{result.usage.system_ns / operations}, Show::json_only)
        .add("switches_voluntary", result.usage.voluntary_switches, Show::json_only)
        .add("switches_involuntary", result.usage.involuntary_switches, Show::json_only)
        .add("verified", result.verified, Show::everywhere, "data verified");
}

Value interval_value(const bench::Interval* interval, uint64_t size) {
    if (!interval) return None{};
    return std::make_shared<Record>(interval_record(*interval, size));
}

void add_intervals(Record& record, const bench::RunResult& result) {
    const uint64_t size = result.workload.size;
    Table intervals;
    for (const auto& one : result.intervals) intervals.push_back(interval_record(one, size));
    record.add("intervals", Value(intervals), Show::json_only)
        .add("slowest_interval", interval_value(result.slowest(), size), Show::json_only)
        .add("worst_p99_interval", interval_value(result.jitteriest(), size), Show::json_only);
    if (result.intervals.size() < 2) return;
    Record worst;
    if (const auto* slowest = result.slowest())
        worst.add("slowest", interval_text(*slowest, size), Show::text_only, "slowest");
    if (const auto* jitteriest = result.jitteriest())
        worst.add("p99", interval_text(*jitteriest, size), Show::text_only, "greatest p99");
    record.add("worst", Value(std::make_shared<Record>(worst)), Show::text_only, "\nworst intervals");
}

void add_verdicts(Record& record, const std::vector<bench::Verdict>& verdicts) {
    Table rows;
    for (const auto& verdict : verdicts)
        rows.push_back(Record()
                           .add("verdict", verdict.word())
                           .add("name", verdict.name, Show::everywhere, "of")
                           .add("detail", verdict.detail, Show::everywhere, "measured"));
    record.add("verdicts", Value(rows), rows.empty() ? Show::json_only : Show::everywhere, "\nverdicts");
}

// Why figures are missing, each reason once.
Words missing_words(const bench::RunResult& result) {
    Words words;
    for (const auto& figure : figures_of(result))
        if (!figure.value && std::find(words.begin(), words.end(), figure.missing) == words.end())
            words.push_back(figure.missing);
    return words;
}

Words notes_of(const BenchReport& report) {
    Words notes = missing_words(report.result);
    const auto work = report.result.workload.work;
    if (work == bench::Work::ping_pong)
        notes.emplace_back("latency is of round trips; filling and comparing their bytes is in it");
    else if (work == bench::Work::write_ping_pong)
        notes.emplace_back(
            "latency is of round trips, a WRITE there and one back; only the last byte is looked at");
    else if (work == bench::Work::registration)
        notes.emplace_back("nothing is moved: memory is registered (REG_MR) and invalidated (LOCAL_INV)");
    else if (!report.result.verified)
        notes.emplace_back("data was not verified: the peer's memory was opened for READ only");
    if (report.from.device.software())
        notes.push_back(fmt::format("{} is software: this says nothing about hardware, and TCP is faster",
                                    report.from.device.core.driver));
    return notes;
}

void add_notes(Record& record, const BenchReport& report) {
    const Words notes = notes_of(report);
    Record lines;
    for (size_t i = 0; i < notes.size(); i++)
        lines.add(fmt::format("note_{}", i + 1), notes[i], Show::everywhere, fmt::format("{}.", i + 1));
    record.add("notes", Value(notes), Show::json_only);
    if (!notes.empty())
        record.add("notes", Value(std::make_shared<Record>(lines)), Show::text_only, "\nnotes");
}

} // namespace

Record bench_record(const BenchReport& report) {
    Record record;
    record.add("result", Value(std::string(bench::Baseline::result)), Show::json_only)
        .add("format", bench::Baseline::format, Show::json_only);
    add_provenance(record, report.from);
    add_conditions(record, report.result.conditions);
    record.add("parameters", Value(std::make_shared<Record>(parameters_record(report))), Show::everywhere,
               "\n" + bench_title(report.result));
    record.add("total", Value(std::make_shared<Record>(total_record(report.result))), Show::everywhere,
               "\ntotal");
    add_intervals(record, report.result);
    add_verdicts(record, report.verdicts);
    add_notes(record, report);
    return record;
}

std::string bench_title(const bench::RunResult& result) {
    const auto& workload = result.workload;
    std::string operation = workload.name();
    for (char& c : operation) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    return fmt::format("{} of {}, {}, engine {}", operation, human_bytes(workload.size),
                       workload.depth == 1 ? "one at a time" : fmt::format("{} deep", workload.depth),
                       result.engine);
}

std::string interval_text(const bench::Interval& interval, uint64_t size) {
    const auto latency = [](const std::optional<uint64_t>& ns) {
        return ns ? human_nanoseconds(static_cast<double>(*ns)) : std::string("-");
    };
    return fmt::format("{:>6.1f} to {:.1f} s  {:>8.0f}/s  {:>11}  p50 {:>8}  p99 {:>8}  max {:>8}",
                       static_cast<double>(interval.begin_ns) / 1e9,
                       static_cast<double>(interval.begin_ns + interval.elapsed_ns) / 1e9,
                       interval.operations_per_second(),
                       human_value(BytesPerSecond{bandwidth(interval, size)}), latency(interval.p50_ns),
                       latency(interval.p99_ns), latency(interval.max_ns));
}

Record interval_record(const bench::Interval& interval, uint64_t size) {
    return Record()
        .add("index", interval.index)
        .add("begin", Nanoseconds{static_cast<double>(interval.begin_ns)})
        .add("elapsed", Nanoseconds{static_cast<double>(interval.elapsed_ns)})
        .add("operations", interval.operations)
        .add("rate", PerSecond{interval.operations_per_second()})
        .add("bandwidth", BytesPerSecond{bandwidth(interval, size)})
        .add("latency_p50", nanoseconds(interval.p50_ns))
        .add("latency_p99", nanoseconds(interval.p99_ns))
        .add("latency_max", nanoseconds(interval.max_ns));
}

} // namespace kxfer::cli
