// SPDX-License-Identifier: MIT
#include "cli/measure/bench_report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "bench/stats/baseline.hpp"
#include "bench/stats/figure.hpp"
#include "cli/measure/cpus.hpp"
#include "cli/output/terminal.hpp"
#include "engine/mix.hpp"

namespace kxfer::cli {

namespace {

// Without a value NaN, so that the key still has its unit.
Nanoseconds nanoseconds(const std::optional<uint64_t>& ns) { return {ns ? static_cast<double>(*ns) : NAN}; }

// A latency for JSON; text shows "-" if there is none.
void add_latency(Record& record, const std::string& key, double ns, const std::string& label) {
    record.add(key, Nanoseconds{ns}, Show::json_only)
        .add(key, std::isnan(ns) ? Value(None{}) : Value(Nanoseconds{ns}), Show::text_only, label);
}

// NaN: too few values for that percentile.
double told(const bench::Histogram& latencies, double percent) {
    return latencies.supports(percent) ? static_cast<double>(latencies.percentile(percent)) : NAN;
}

double greatest(const bench::Histogram& latencies) {
    return latencies.count() ? static_cast<double>(latencies.max()) : NAN;
}

// Three significant digits: 0.0312, not 0.03.
void add_number(Record& record, const std::string& key, const std::optional<double>& number,
                const std::string& label) {
    record.add(key, number ? Value(*number) : Value(None{}), Show::json_only)
        .add(key, number ? Value(fmt::format("{:.3g}", *number)) : Value(None{}), Show::text_only, label);
}

std::string upper(std::string text) {
    for (char& c : text) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    return text;
}

// "23.6 k/s"
std::string short_rate(double per_second) {
    if (per_second < 1e3) return fmt::format("{:.0f}/s", per_second);
    if (per_second < 1e6) return fmt::format("{:.1f} k/s", per_second / 1e3);
    return fmt::format("{:.2f} M/s", per_second / 1e6);
}

double bandwidth(const bench::Interval& interval, uint64_t size) {
    return interval.operations_per_second() * static_cast<double>(size);
}

void add_way(Record& record, const BenchReport& report) {
    const auto& engine = report.result.engine;
    // Added only if it differs from the former fixed value, so that older baselines stay valid.
    if (!report.rig.inline_writes()) record.add("inline", Value(report.rig.inlining));
    if (engine == "verbs") {
        if (report.rig.verbs.by_tcp()) record.add("connect", Value(std::string("tcp")));
        if (!report.rig.verbs.reliable()) record.add("transport", Value(report.rig.verbs.transport));
        if (report.rig.verbs.events()) record.add("wait", Value(report.rig.verbs.wait));
        if (report.rig.verbs.gid_index) record.add("gid_index", *report.rig.verbs.gid_index);
        if (report.rig.verbs.rnr_retry) record.add("rnr_retry", report.rig.verbs.rnr_retry);
        if (report.rig.verbs.min_rnr_timer) record.add("min_rnr_timer", *report.rig.verbs.min_rnr_timer);
        if (report.rig.verbs.timestamps) record.add("timestamps", true);
        if (report.rig.verbs.qkey) record.add("qkey", *report.rig.verbs.qkey);
        return;
    }
    record.add("completion_context", report.rig.context);
    if (report.rig.context == "polled" && engine == "job") record.add("poll", report.rig.poll);
    if (engine == "job") record.add("ring", report.rig.ring);
    if (engine == "kverbs") record.add("memory", report.rig.memory);
    if (report.rig.invalidate != "deferred") record.add("invalidate", report.rig.invalidate);
    if (!report.rig.cq.empty()) record.add("cq", report.rig.cq);
    if (engine == "kverbs" && !report.rig.verbs.reliable())
        record.add("transport", Value(report.rig.verbs.transport));
    if (engine == "kverbs" && report.rig.verbs.qkey) record.add("qkey", *report.rig.verbs.qkey);
}

void add_length(Record& record, const bench::RunPlan& plan) {
    if (plan.count)
        record.add("count", plan.count);
    else
        record.add("duration", Nanoseconds{static_cast<double>(plan.duration.count())})
            .add("interval", Nanoseconds{static_cast<double>(plan.interval.count())},
                 plan.interval.count() ? Show::everywhere : Show::json_only);
    if (plan.rate > 0) record.add("rate_asked", PerSecond{plan.rate}, Show::everywhere, "on schedule");
    record.add("warm_up_operations", plan.warm_up, Show::everywhere, "operations of warm-up");
}

bool writes(const bench::Workload& workload) {
    return workload.is_mix() || workload.work == bench::Work::write_ping_pong ||
           (workload.work == bench::Work::transfer && bench::is_write(workload.operation));
}

// Parameters that text leaves out without --verbose: those that the title has, those that are as
// without options, and what follows from others.
bool is_as_always(const Field& field, const BenchReport& report) {
    static constexpr std::array<std::pair<const char*, const char*>, 8> defaults = {
        {{"signal_every", "1"},
         {"completion_context", "polled"},
         {"poll", "adaptive"},
         {"ring", "no"},
         {"memory", "lkey"},
         {"duration", "5 s"},
         {"interval", "1 s"},
         {"warm_up_operations", "100"}}};
    static constexpr std::array shown_elsewhere = {
        "engine",        "operation",          "size",
        "depth",         "local_memory",       "local_layout",
        "remote_memory", "local_registration", "remote_registration"};
    if (std::any_of(shown_elsewhere.begin(), shown_elsewhere.end(),
                    [&](const char* key) { return field.key == key; }))
        return true;
    if (field.key == "batch")
        return report.result.workload.batch == batch_of(report.rig, report.result.workload.depth, 0);
    return std::any_of(defaults.begin(), defaults.end(), [&](const auto& one) {
        return field.key == one.first && human_value(field.value) == one.second;
    });
}

// The same for scripts; for people without the fields that `hides` says.
template <typename Hides> Record without(const Record& all, Hides hides) {
    Record record;
    for (const Field& field : all.fields()) {
        if (!hides(field))
            record.add(field.key, field.value, field.show, field.label);
        else if (field.show != Show::text_only)
            record.add(field.key, field.value, Show::json_only, field.label);
    }
    return record;
}

// All parameters that have to be the same for two results to be compared.
Record parameters_record(const BenchReport& report) {
    const auto& workload = report.result.workload;
    const auto& parameters = report.parameters;
    const auto& from = report.from;
    const auto& [path_mtu, tos, gid_type] = parameters.connection;
    Record record;
    record.add("engine", report.result.engine)
        .add("operation", workload.name())
        .add("size", Bytes{workload.size});
    if (workload.is_mix()) record.add("mix", report.mix);
    record.add("depth", workload.depth)
        .add("batch", workload.batch)
        .add("signal_every", parameters.signal_every);
    add_way(record, report);
    // Added only if there are several, so that older baselines stay valid.
    if (report.rig.nr_clients > 1) record.add("clients", report.rig.nr_clients);
    if (report.rig.bidirectional) record.add("bidirectional", true);
    if (!report.rig.cpus.empty()) record.add("pinned_cpus", cpus_text(report.rig.cpus));
    add_length(record, report.plan);
    record.add("local_memory", Bytes{parameters.local_bytes})
        .add("local_layout", parameters.local_layout)
        .add("local_registration", parameters.local_registration, Show::everywhere, "local memory is named")
        .add("remote_memory", Bytes{parameters.remote_bytes})
        .add("remote_registration", parameters.remote_registration)
        .add("write_success", parameters.write_success, writes(workload) ? Show::everywhere : Show::json_only,
             "a WRITE is done when")
        .add("message_success",
             bench::has_messages(workload) ? Value(parameters.message_success) : Value(None{}),
             bench::has_messages(workload) ? Show::everywhere : Show::json_only, "a message is done when")
        .add("peer", report.rig.peer_given ? from.peer : std::string("this node"), Show::json_only)
        .add("driver", from.device.core.driver, Show::json_only)
        .add("mtu", Bytes{mtu_of(from.device)}, Show::json_only)
        .add("path_mtu_bytes", path_mtu ? Value(uint64_t{path_mtu}) : Value(None{}), Show::json_only)
        .add("tos", tos ? Value(uint64_t{*tos}) : Value(None{}), Show::json_only)
        .add("gid_type", gid_type.empty() ? Value(None{}) : Value(gid_type), Show::json_only)
        .add("cpu_model", from.environment.cpu_model, Show::json_only)
        .add("cpus", from.environment.nr_cpus, Show::json_only)
        .add("affinity", from.environment.affinity, Show::json_only)
        .add("virtual_machine", virtual_machine_text(from.environment), Show::json_only);
    return record;
}

// "latency_p99_9" for p99.9.
std::string latency_key(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return "latency_" + name;
}

// How a figure other than a latency is reported.
struct Telling {
    const char* figure;
    const char* key;
    const char* label;
};

constexpr std::array<Telling, 8> an_operation = {{
    {"cpu", "cpu_per_operation", "CPU time an operation"},
    {"syscalls", "syscalls_per_operation", "system calls an operation"},
    {"switches", "switches_per_operation", "context switches an operation"},
    {"peer_cpu", "peer_cpu_per_operation", "CPU time at the peer"},
    {"peer_switches", "peer_switches_per_operation", "context switches at the peer"},
    {"node_cpu", "node_cpu_per_operation", "CPU time of the node"},
    {"node_softirq", "node_softirq_per_operation", "of that in softirqs"},
    {"fairness", "fairness", "Jain's fairness index"},
}};

// asked: figures of the peer's process are the word of another node.
void add_figures(Record& record, const std::vector<bench::Figure>& figures, bool asked) {
    for (const auto& figure : figures) {
        const auto* telling = std::find_if(an_operation.begin(), an_operation.end(),
                                           [&](const auto& one) { return figure.name == one.figure; });
        const bool told = telling != an_operation.end();
        const std::string word = asked && figure.name.starts_with("peer_") ? ", as it says" : "";
        if (figure.kind == bench::Kind::time)
            add_latency(record, told ? telling->key : latency_key(figure.name), figure.value.value_or(NAN),
                        told ? telling->label + word : "latency " + figure.name);
        else if (told)
            add_number(record, telling->key, figure.value, telling->label + word);
    }
}

// Begin and count of each bucket that is not empty.
Table histogram_rows(const bench::Histogram& histogram) {
    Table rows;
    for (unsigned i = 0; i < bench::Histogram::nr_buckets(); i++)
        if (const uint64_t count = histogram.count_in(i))
            rows.push_back(
                Record()
                    .add("begin", Nanoseconds{static_cast<double>(bench::Histogram::bucket_first(i))})
                    .add("count", count));
    return rows;
}

// Round trips whose bytes are compared at this end.
bool compares(const bench::Workload& workload) {
    return workload.is_round_trip() && workload.work != bench::Work::write_ping_pong;
}

// Halves of round trips, as ib_send_lat and ib_write_lat print them. No clock of the other node is in it.
void add_one_way(Record& record, const bench::RunResult& result) {
    if (!result.workload.is_symmetric()) return;
    const auto& latencies = result.latencies;
    const bool any = latencies.count() > 0;
    const auto [key, label] = [&]() -> std::pair<std::string, std::string> {
        if (result.workload.work == bench::Work::send_ping_pong) return {"send_latency_", "a SEND one way, "};
        if (result.workload.work == bench::Work::write_ping_pong)
            return {"write_latency_", "a WRITE one way, "};
        return {"notify_latency_", "a WRITE with NOTIFY one way, "};
    }();
    add_latency(record, key + "min", any ? static_cast<double>(latencies.min()) / 2 : NAN, label + "min");
    add_latency(record, key + "p50", told(latencies, 50) / 2, label + "p50");
    add_latency(record, key + "mean", any ? latencies.mean() / 2 : NAN, label + "mean");
    add_latency(record, key + "p99", told(latencies, 99) / 2, label + "p99");
    add_latency(record, key + "p99_9", told(latencies, 99.9) / 2, label + "p99.9");
    add_latency(record, key + "max", greatest(latencies) / 2, label + "max");
}

// Who says what the process at the peer used.
Value peer_usage_source(const bench::RunResult& result, bool asked) {
    if (!result.footprint.peer) return None{};
    return std::string(asked ? "the peer" : "this node");
}

// asked: the peer is another node.
Record total_record(const bench::RunResult& result, bool asked) {
    Record record;
    const auto operations = static_cast<double>(std::max<uint64_t>(result.operations, 1));
    record.add("operations", result.operations)
        .add("elapsed", Nanoseconds{static_cast<double>(result.elapsed_ns)})
        .add("rate", PerSecond{result.operations_per_second()})
        .add("bandwidth", BytesPerSecond{result.bytes_per_second()})
        .add("latency_samples", result.latencies.count(), Show::json_only);
    add_figures(record, figures_of(result), asked);
    record.add("peer_usage_source", peer_usage_source(result, asked), Show::json_only);
    if (compares(result.workload))
        record.add("bytes_compared", Bytes{result.operations * result.workload.size});
    add_one_way(record, result);
    if (result.uncorrected.count()) {
        const auto& uncorrected = result.uncorrected;
        add_latency(record, "latency_uncorrected_p99", told(uncorrected, 99),
                    "p99 from hand-in, uncorrected");
        record.add("operations_overdue", result.nr_overdue, Show::everywhere, "due but not posted");
    }
    if (result.device_gaps)
        for (const double percent : {50.0, 99.0})
            add_latency(record, fmt::format("completion_gap_p{}", percent),
                        told(*result.device_gaps, percent),
                        fmt::format("completions apart by the device's clock, p{}", percent));
    if (result.work_requests)
        record.add("work_requests_per_operation", result.work_requests, Show::everywhere,
                   "work requests an operation");
    if (result.losses) {
        const auto sent = static_cast<double>(std::max<uint64_t>(result.losses->sent, 1));
        record.add("messages_sent", result.losses->sent, Show::everywhere, "messages sent, warm-up and all")
            .add("messages_lost", result.losses->lost, Show::everywhere, "of these lost")
            .add("loss_ratio", static_cast<double>(result.losses->lost) / sent, Show::json_only);
    }
    return record
        .add("cpu_user_per_operation", Nanoseconds{result.usage.user_ns / operations}, Show::json_only)
        .add("cpu_system_per_operation", Nanoseconds{result.usage.system_ns / operations}, Show::json_only)
        .add("switches_voluntary", result.usage.voluntary_switches, Show::json_only)
        .add("switches_involuntary", result.usage.involuntary_switches, Show::json_only)
        .add("histogram_ns", Value(histogram_rows(result.latencies)), Show::json_only)
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
    constexpr size_t before = 16; // indent and label
    auto width = terminal_width(STDOUT_FILENO);
    if (width) width = *width - std::min(*width, before);
    if (const auto* slowest = result.slowest())
        worst.add("slowest", interval_text(*slowest, size, width), Show::text_only, "slowest");
    if (const auto* jitteriest = result.jitteriest())
        worst.add("p99", interval_text(*jitteriest, size, width), Show::text_only, "greatest p99");
    record.add("worst", Value(std::make_shared<Record>(worst)), Show::text_only, "\nworst intervals");
}

// Changes of the device's counters during the run, including those by others.
void add_counters(Record& record, const BenchReport& report) {
    const auto& [node, peer, no_peer, counters, no_counters] = report.result.footprint;
    Record changes;

    for (const auto& counter : counters)
        changes.add(counter.name, counter.change, Show::everywhere, counter.name);
    if (!no_counters.empty()) {
        record.add("device_counters", None{}, Show::json_only);
        return;
    }
    record.add("device_counters", Value(std::make_shared<Record>(changes)),
               counters.empty() ? Show::json_only : Show::everywhere, "\ndevice counters");
}

void add_shares(Record& record, const bench::RunResult& result) {
    const double seconds = static_cast<double>(result.elapsed_ns) / 1e9;
    Table rows;
    for (const auto& [operation, operations, latencies] : result.shares) {
        const double rate = seconds > 0 ? static_cast<double>(operations) / seconds : 0;
        Record row;
        row.add("operation", bench::operation_name(operation))
            .add("operations", operations)
            .add("rate", PerSecond{rate})
            .add("bandwidth", BytesPerSecond{rate * static_cast<double>(result.workload.size)});
        add_latency(row, "latency_p50", told(latencies, 50), "p50");
        add_latency(row, "latency_p99", told(latencies, 99), "p99");
        add_latency(row, "latency_max", greatest(latencies), "max");
        rows.push_back(row);
    }
    if (!rows.empty()) record.add("mix", Value(rows), Show::everywhere, "\nmix");
}

// The rate of each client, over its own time.
void add_clients(Record& record, const bench::RunResult& result, const std::vector<unsigned>& cpus) {
    Table rows;
    for (const auto& client : result.clients) {
        const double rate = client.operations_per_second();
        Record row;
        row.add("client", rows.size() + 1);
        if (!cpus.empty()) row.add("cpu", cpus[rows.size() % cpus.size()]);
        row.add("operations", client.operations)
            .add("elapsed", Nanoseconds{static_cast<double>(client.elapsed_ns)})
            .add("rate", PerSecond{rate})
            .add("bandwidth", BytesPerSecond{rate * static_cast<double>(result.workload.size)});
        add_latency(row, "latency_p50", nanoseconds(client.p50_ns).count, "p50");
        add_latency(row, "latency_p99", nanoseconds(client.p99_ns).count, "p99");
        row.add("verified", client.verified);
        rows.push_back(row);
    }
    if (!rows.empty()) record.add("clients", Value(rows), Show::everywhere, "\nclients");
}

// The other direction; each rate is over its own time.
void add_reverse(Record& record, const BenchReport& report) {
    if (!report.reverse && report.rig.bidirectional)
        record.add("reverse", None{}, Show::json_only).add("both", None{}, Show::json_only);
    if (!report.reverse) return;
    const auto& reverse = report.reverse->result;
    const auto size = static_cast<double>(report.result.workload.size);
    const double rate = reverse.operations_per_second();
    Record other;
    other.add("operations", reverse.operations)
        .add("elapsed", Nanoseconds{static_cast<double>(reverse.elapsed_ns)})
        .add("rate", PerSecond{rate})
        .add("bandwidth", BytesPerSecond{rate * size})
        .add("latency_samples", reverse.latencies.count(), Show::json_only);
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 99.99}) {
        const std::string name = fmt::format("p{}", percent);
        add_latency(other, latency_key(name), told(reverse.latencies, percent), "latency " + name);
    }
    add_latency(other, "latency_max", greatest(reverse.latencies), "latency max");
    other.add("verified", reverse.verified, Show::everywhere, "data verified");
    const double sum = report.result.operations_per_second() + rate;
    Record both;
    both.add("rate", PerSecond{sum}).add("bandwidth", BytesPerSecond{sum * size});
    record
        .add("reverse", Value(std::make_shared<Record>(other)), Show::everywhere,
             "\nreverse, by the peer at the same time")
        .add("both", Value(std::make_shared<Record>(both)), Show::everywhere, "\nboth directions");
}

Record stage_row(const char* name, const char* meaning, double p50, double mean, double share) {
    return Record()
        .add("stage", name)
        .add("p50", Nanoseconds{p50})
        .add("mean", Nanoseconds{mean})
        .add("share", share, Show::json_only)
        .add("share", fmt::format("{:.1f} %", share * 100), Show::text_only, "of the mean")
        .add("meaning", std::string(meaning), Show::text_only);
}

// The means of the stages add up to the total mean; medians need not.
void add_stages(Record& record, const bench::RunResult& result) {
    if (!result.stages) return;
    const auto& [stages, total, left_out] = *result.stages;
    double p50s = 0, means = 0;
    Table rows;
    for (size_t i = 0; i < stages.size(); i++) {
        const auto p50 = static_cast<double>(stages[i].percentile(50));
        p50s += p50;
        means += stages[i].mean();
        rows.push_back(stage_row(bench::stage_names[i].name, bench::stage_names[i].meaning, p50,
                                 stages[i].mean(), stages[i].mean() / total.mean()));
    }
    Table shown = rows;
    const auto p50 = static_cast<double>(total.percentile(50));
    shown.push_back(stage_row("sum", "of the above", p50s, means, means / total.mean()));
    shown.push_back(stage_row("total", "as the caller sees it", p50, total.mean(), 1));
    Record whole;
    whole.add("jobs", total.count())
        .add("jobs_left_out", left_out)
        .add("p50", Nanoseconds{p50})
        .add("p50_sum", Nanoseconds{p50s})
        .add("mean", Nanoseconds{total.mean()});
    record.add("stages", Value(rows), Show::json_only)
        .add("stages_total", Value(std::make_shared<Record>(whole)), Show::json_only)
        .add("stages", Value(shown), Show::text_only, "\nstages of a job");
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

std::string interrupted_words(const BenchReport& report) {
    const auto& [operations, count] = std::pair(report.result.operations, report.plan.count);
    if (count) return fmt::format("{} of {} operations were measured", operations, count);
    return fmt::format("{:.1f} of {:g} s were measured", static_cast<double>(report.result.elapsed_ns) / 1e9,
                       std::chrono::duration<double>(report.plan.duration).count());
}

Words notes_of(const BenchReport& report) {
    Words notes = missing_words(report.result);
    if (report.result.interrupted) notes.insert(notes.begin(), "Interrupted: " + interrupted_words(report));
    if (report.result.interrupted && report.rig.bidirectional && !report.reverse)
        notes.emplace_back("interrupted: what the peer measured the other way round is not known");
    const auto work = report.result.workload.work;
    if (compares(report.result.workload))
        notes.emplace_back("latency is of round trips; filling and comparing their bytes is in it");
    else if (work == bench::Work::write_ping_pong)
        notes.emplace_back(
            "latency is of round trips, a WRITE there and one back; only the last byte is looked at");
    else if (work == bench::Work::registration)
        notes.emplace_back("nothing is moved: memory is registered (REG_MR) and invalidated (LOCAL_INV)");
    else if (!report.result.verified && report.result.interrupted)
        notes.emplace_back(
            "data was not verified: the interrupt broke the engine's last operations off, or the "
            "peer's memory was opened for READ only");
    else if (!report.result.verified && report.result.losses && report.result.losses->lost)
        notes.emplace_back("data was not verified: no try arrived as a whole");
    else if (!report.result.verified)
        notes.emplace_back(
            "data was not verified: the peer's memory was opened for READ only (--verify overwrites it, and "
            "verifies)");
    if (report.result.workload.is_symmetric())
        notes.emplace_back("one way is half of a round trip; the clocks of the two ends are never compared");
    const auto& shares = report.result.shares;
    if (!shares.empty() && shares.front().latencies.count() == 0)
        notes.emplace_back(
            "jobs of iWARP, and messages beside other jobs, do not complete in the order of posting: which "
            "of a mix took how long is not known but with --depth 1; latency pairs each completion with "
            "the operation that has been in flight longest, which may be another");
    if (!report.result.clients.empty())
        notes.emplace_back("rate and bandwidth are of all clients together, over the time of the slowest; "
                           "Jain's index of their n rates x is (sum of x)^2 / (n * sum of x^2)");
    if (report.plan.rate > 0 && report.result.engine != "kverbs")
        notes.emplace_back("CPU time has up to 200 us in it of each operation that was waited for to be due: "
                           "the last of that wait looks at the clock");
    if (report.reverse)
        notes.emplace_back("both directions: two rates added up, each over its own time; the CPU time at "
                           "the peer is also that of what it began itself");
    if (const auto& stages = report.result.stages)
        notes.push_back(fmt::format("stages are of {} jobs after the run ({} were left out); tracing takes "
                                    "time, so that their total is more than the latency above",
                                    stages->total.count(), stages->left_out));
    else if (!report.result.no_stages.empty())
        notes.push_back("no stages: " + report.result.no_stages);
    if (!report.result.footprint.no_counters.empty())
        notes.push_back(fmt::format("no device counters: {}", report.result.footprint.no_counters));
    else if (!report.rig.peer_given)
        notes.emplace_back("device counters count both ends, which are on one device");
    const auto& transport = report.rig.verbs.transport;
    if (!report.rig.verbs.reliable() && report.result.engine != "job")
        notes.push_back(fmt::format("{} acknowledges nothing: an operation ends when it is sent, and latency "
                                    "is how long that took",
                                    transport == "uc" ? "UC" : "UD"));
    if (!report.rig.verbs.reliable() && work == bench::Work::transfer && !report.result.losses)
        notes.emplace_back("WRITEs that were lost are not counted");
    if (report.from.device.software())
        notes.push_back(fmt::format("{} is software: this says nothing about hardware, and TCP is faster",
                                    report.from.device.core.driver));
    return notes;
}

void add_notes(Record& record, const BenchReport& report) {
    const Words notes = notes_of(report);
    record.add("notes", Value(notes), Show::json_only);
    if (!notes.empty())
        record.add("notes", Value(std::make_shared<Record>(numbered(notes))), Show::text_only, "\nnotes");
}

// What is "4 KiB" elsewhere, and "64 B" here.
std::string short_size(uint64_t bytes) {
    return bytes < 1024 ? fmt::format("{} B", bytes) : human_bytes(bytes);
}

// The most wanted figures in one line, printed last, where the eye is at the end.
std::string summary_of(const BenchReport& report) {
    const auto& result = report.result;
    const auto& workload = result.workload;
    const auto latency = [](double ns) { return std::isnan(ns) ? std::string("-") : human_nanoseconds(ns); };
    std::string text = upper(workload.name()) + ' ' + short_size(workload.size);
    if (workload.depth > 1) text += fmt::format(" x{}", workload.depth);
    if (result.engine != "job") text += " by " + result.engine;
    if (result.interrupted) text += " INTERRUPTED, " + interrupted_words(report);
    text += fmt::format(": p50 {}, p99 {}, {}", latency(told(result.latencies, 50)),
                        latency(told(result.latencies, 99)), short_rate(result.operations_per_second()));
    if (workload.moves() && workload.size >= 1024)
        text += ", " + human_value(BytesPerSecond{result.bytes_per_second()});
    return text + (result.verified ? ", verified" : ", NOT verified");
}

// Where and how it was measured.
void add_where(Record& record, const BenchReport& report) {
    Record where;
    add_provenance(where, report.from);
    add_conditions(where, report.result.conditions);
    const Record shown = without(where, [&report](const Field&) { return !report.verbose; });
    for (const Field& field : shown.fields()) record.add(field.key, field.value, field.show, field.label);
}

} // namespace

Record bench_record(const BenchReport& report) {
    Record record;
    record.add("result", Value(std::string(bench::Baseline::result)), Show::json_only)
        .add("format", bench::Baseline::format, Show::json_only);
    add_where(record, report);
    record.add("interrupted", report.result.interrupted, Show::json_only);
    if (report.registration) {
        Record cost;
        add_registration(cost, *report.registration);
        record.add("registration", Value(std::make_shared<Record>(cost)), Show::json_only);
        if (report.verbose)
            record.add("registration", Value(registration_text(*report.registration)), Show::text_only);
    }
    const Record parameters = without(parameters_record(report), [&report](const Field& field) {
        return !report.verbose && is_as_always(field, report);
    });
    record.add("parameters", Value(std::make_shared<Record>(parameters)), Show::everywhere,
               "\n" + bench_title(report.result));
    record.add("total", Value(std::make_shared<Record>(total_record(report.result, report.rig.peer_given))),
               Show::everywhere, "\ntotal");
    add_reverse(record, report);
    add_intervals(record, report.result);
    add_shares(record, report.result);
    add_clients(record, report.result, report.rig.cpus);
    add_counters(record, report);
    add_stages(record, report.result);
    add_verdicts(record, report.verdicts);
    add_notes(record, report);
    record.add("summary", Value(std::make_shared<Record>()), Show::text_only, '\n' + summary_of(report));
    return record;
}

std::string bench_title(const bench::RunResult& result) {
    const auto& workload = result.workload;
    return fmt::format("{} of {}, {}, engine {}", upper(workload.name()), human_bytes(workload.size),
                       workload.depth == 1 ? "one at a time" : fmt::format("{} deep", workload.depth),
                       result.engine);
}

std::string interval_text(const bench::Interval& interval, uint64_t size, std::optional<size_t> width) {
    const auto latency = [](const std::optional<uint64_t>& ns) {
        return ns ? human_nanoseconds(static_cast<double>(*ns)) : std::string("-");
    };
    const double cpu = interval.cpu_per_operation_ns();
    std::string text = fmt::format("{:>6.1f} to {:.1f} s", static_cast<double>(interval.begin_ns) / 1e9,
                                   static_cast<double>(interval.begin_ns + interval.elapsed_ns) / 1e9);
    // The most wanted first.
    for (const std::string& part :
         {fmt::format("  {:>8.0f}/s", interval.operations_per_second()),
          fmt::format("  {:>11}", human_value(BytesPerSecond{bandwidth(interval, size)})),
          fmt::format("  p50 {:>8}", latency(interval.p50_ns)),
          fmt::format("  p99 {:>8}", latency(interval.p99_ns)),
          fmt::format("  max {:>8}", latency(interval.max_ns)),
          fmt::format("  CPU {:>8}", std::isnan(cpu) ? "-" : human_nanoseconds(cpu))}) {
        if (width && text.size() + part.size() > *width) break;
        text += part;
    }
    return text;
}

Record interval_record(const bench::Interval& interval, uint64_t size) {
    return Record()
        .add("index", interval.index)
        .add("begin", Nanoseconds{static_cast<double>(interval.begin_ns)})
        .add("elapsed", Nanoseconds{static_cast<double>(interval.elapsed_ns)})
        .add("operations", interval.operations)
        .add("rate", PerSecond{interval.operations_per_second()})
        .add("bandwidth", BytesPerSecond{bandwidth(interval, size)})
        .add("latency_min", nanoseconds(interval.min_ns))
        .add("latency_p50", nanoseconds(interval.p50_ns))
        .add("latency_p90", nanoseconds(interval.p90_ns))
        .add("latency_p99", nanoseconds(interval.p99_ns))
        .add("latency_p99_9", nanoseconds(interval.p99_9_ns))
        .add("latency_p99_99", nanoseconds(interval.p99_99_ns))
        .add("latency_max", nanoseconds(interval.max_ns))
        .add("cpu", Nanoseconds{interval.usage.cpu_ns()})
        .add("cpu_per_operation", Nanoseconds{interval.cpu_per_operation_ns()})
        .add("switches_voluntary", interval.usage.voluntary_switches)
        .add("switches_involuntary", interval.usage.involuntary_switches);
}

} // namespace kxfer::cli
