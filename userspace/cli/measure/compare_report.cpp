// SPDX-License-Identifier: MIT
#include "cli/measure/compare_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kxfer::cli {

namespace {

// From this size on the deep figure is shown as bandwidth.
constexpr uint64_t bandwidth_from = 4096;
// Values in the JSON that identify it.
constexpr char result_name[] = "kxfer compare";
constexpr unsigned format = 1;

const char* engine_words(const std::string& engine) {
    if (engine == "job") return "kernel job path";
    return engine == "kverbs" ? "kernel verbs without jobs" : "user-space verbs";
}

const bench::EngineResult* find_result(const bench::Cell& cell, const std::string& engine) {
    const auto found = std::find_if(cell.engines.begin(), cell.engines.end(),
                                    [&](const auto& result) { return result.engine == engine; });
    return found == cell.engines.end() ? nullptr : &*found;
}

// NaN: too few samples.
double percentile(const bench::Histogram& histogram, double percent) {
    if (!histogram.supports(percent)) return NAN;
    return static_cast<double>(histogram.percentile(percent));
}

// For JSON, where the key needs its unit even without a value.
Value percentile_json(const bench::Histogram& histogram, double percent) {
    return Nanoseconds{percentile(histogram, percent)};
}

Value percentile_text(const bench::Histogram& histogram, double percent) {
    const double ns = percentile(histogram, percent);
    return std::isnan(ns) ? Value(None{}) : Value(Nanoseconds{ns});
}

Value calls_json(const std::optional<double>& syscalls) {
    return syscalls ? Value(*syscalls) : Value(None{});
}

Value calls_text(const std::optional<double>& syscalls) {
    if (!syscalls) return None{};
    return *syscalls > 0 && *syscalls < 0.01 ? Value("<0.01") : Value(fmt::format("{:.3g}", *syscalls));
}

Record mode_json(const bench::ModeResult& result) {
    return Record()
        .add("operations", result.operations)
        .add("blocks", uint64_t{result.blocks.size()})
        .add("median", Nanoseconds{result.ns_per_operation()})
        .add("syscalls_per_operation", calls_json(result.syscalls))
        .add("cpu_per_operation", Nanoseconds{result.cpu_ns_per_operation()})
        .add("switches_per_operation", Value(result.switches_per_operation()));
}

Record engine_json(const bench::EngineResult& result, const bench::Workload& workload) {
    const auto& latencies = result.latencies;
    const auto& [path_mtu, tos, gid_type] = result.connection;
    Record single = mode_json(result.single);
    single.add("latency_min", Nanoseconds{static_cast<double>(latencies.min())})
        .add("latency_mean", Nanoseconds{latencies.mean()})
        .add("latency_p50", percentile_json(latencies, 50))
        .add("latency_p90", percentile_json(latencies, 90))
        .add("latency_p99", percentile_json(latencies, 99))
        .add("latency_p99_9", percentile_json(latencies, 99.9))
        .add("latency_p99_99", percentile_json(latencies, 99.99))
        .add("latency_max", Nanoseconds{static_cast<double>(latencies.max())});
    Record deep = mode_json(result.deep);
    const double rate = result.deep.operations_per_second();
    deep.add("rate", PerSecond{rate})
        .add("bandwidth", BytesPerSecond{rate * static_cast<double>(workload.size)});
    Record record;
    record.add("engine", result.engine)
        .add("verified", result.verified)
        .add("path_mtu_bytes", path_mtu ? Value(uint64_t{path_mtu}) : Value(None{}))
        .add("tos", tos ? Value(uint64_t{*tos}) : Value(None{}))
        .add("gid_type", gid_type.empty() ? Value(None{}) : Value(gid_type))
        .add("local_registration", result.local_registration)
        .add("message_success",
             result.message_success.empty() ? Value(None{}) : Value(result.message_success))
        .add("one_at_a_time", single)
        .add("deep", deep);
    if (result.losses)
        record.add("messages_sent", result.losses->sent).add("messages_lost", result.losses->lost);
    return record;
}

Value ratio_json(const std::optional<bench::Ratio>& ratio, bool judged) {
    if (!ratio) return None{};
    return std::make_shared<Record>(
        Record()
            .add("value", ratio->value)
            .add("low_95", ratio->low)
            .add("high_95", ratio->high)
            .add("significant", judged ? Value(ratio->significant()) : Value(None{})));
}

// The engines that did some cell, in the order of the columns.
Words engines_of(const CompareReport& report) {
    Words engines;
    for (const char* engine : {"verbs", "kverbs", "job"})
        if (std::any_of(report.cells.begin(), report.cells.end(),
                        [&](const auto& cell) { return find_result(cell, engine) != nullptr; }))
            engines.emplace_back(engine);
    return engines;
}

// The engines compared with the last one: those that share a cell with it.
Words compared_engines(const CompareReport& report) {
    Words engines = engines_of(report);
    if (engines.empty()) return {};
    const std::string last = engines.back();
    engines.pop_back();
    std::erase_if(engines, [&](const auto& engine) {
        return std::none_of(report.cells.begin(), report.cells.end(), [&](const auto& cell) {
            return find_result(cell, engine) && find_result(cell, last);
        });
    });
    return engines;
}

void add_ratios(Record& record, const bench::Cell& cell, bool judged) {
    if (cell.engines.empty()) return;
    const std::string& last = cell.engines.back().engine;
    for (const auto& engine : cell.engines) {
        if (engine.engine == last) continue;
        const std::string pair = last + "_to_" + engine.engine;
        record.add("time_ratio_" + pair + "_one_at_a_time", ratio_json(engine.single.last_to_this, judged))
            .add("time_ratio_" + pair + "_deep", ratio_json(engine.deep.last_to_this, judged));
    }
}

Record cell_json(const bench::Cell& cell, bool judged) {
    Table engines, refused;
    for (const auto& engine : cell.engines) engines.push_back(engine_json(engine, cell.workload));
    for (const auto& refusal : cell.refusals)
        refused.push_back(Record().add("engine", refusal.engine).add("reason", refusal.error.reason()));
    Record record;
    record.add("operation", bench::operation_name(cell.workload.operation))
        .add("size", Bytes{cell.workload.size})
        .add("depth", cell.workload.depth)
        .add("batch", cell.workload.batch)
        .add("engines", Value(engines))
        .add("refused", Value(refused));
    add_ratios(record, cell, judged);
    return record;
}

Record row_head(const bench::Cell& cell) {
    return Record()
        .add("op", bench::operation_name(cell.workload.operation))
        .add("size", Bytes{cell.workload.size});
}

// An empty column in place of kverbs if it was not measured.
void add_gap(Record& row, const CompareReport& report, const std::string& engine, const std::string& column) {
    if (!report.no_floor.empty() && engine == "job") row.add("kverbs" + column, None{}, Show::wide);
}

// Columns for a narrow terminal: the last engine and the first one it is compared with.
Show show_of(const CompareReport& report, const std::string& engine) {
    const Words engines = engines_of(report), compared = compared_engines(report);
    if (compared.empty()) return Show::everywhere;
    return engine == engines.back() || engine == compared.front() ? Show::everywhere : Show::wide;
}

// Enough digits that an interval without 1 does not print as one with 1.
int digits_of(const bench::Ratio& ratio) {
    const auto printed_1 = [](double bound, int digits) {
        return fmt::format("{:.{}f}", bound, digits) == fmt::format("{:.{}f}", 1.0, digits);
    };
    int digits = 3;
    while (ratio.significant() && digits < 15 &&
           (printed_1(ratio.low, digits) || printed_1(ratio.high, digits)))
        digits++;
    return digits;
}

const char* verdict_of(const bench::Ratio& ratio, bool great_is_fast, bool judged, const char* none) {
    if (!judged) return "not judged";
    if (!ratio.significant()) return none;
    return (ratio.value > 1) == great_is_fast ? "faster" : "slower";
}

// The ratio, with its interval and verdict in one column, or without interval in two.
void add_ratio(Record& row, const std::string& of, const std::string& pair, bool shown,
               const std::optional<bench::Ratio>& ratio, bool great_is_fast, bool judged) {
    row.add(of + ' ' + pair, ratio ? Value(ratio_text(ratio, great_is_fast, judged)) : Value(None{}),
            Show::wide);
    if (!shown) return;
    row.add(pair, ratio ? Value(fmt::format("{:.{}f}", ratio->value, digits_of(*ratio))) : Value(None{}),
            Show::narrow);
    row.add("verdict",
            ratio ? Value(std::string(verdict_of(*ratio, great_is_fast, judged, "not significant")))
                  : Value(None{}),
            Show::narrow);
}

// All rows have the same columns; a column is empty if the engine did not do the cell.
Table single_table(const CompareReport& report) {
    const Words engines = engines_of(report);
    const bool judged = report.obstacle().empty();
    Table rows;
    for (const auto& cell : report.cells) {
        if (cell.engines.empty()) continue;
        Record row = row_head(cell);
        for (const int percent : {50, 99})
            for (const auto& engine : engines) {
                const auto* result = find_result(cell, engine);
                add_gap(row, report, engine, fmt::format(" p{}", percent));
                row.add(fmt::format("{} p{}", engine, percent),
                        result ? percentile_text(result->latencies, percent) : Value(None{}),
                        percent == 50 ? show_of(report, engine) : Show::wide);
            }
        for (const auto& engine : engines) {
            const auto* result = find_result(cell, engine);
            row.add(engine + " calls", result ? calls_text(result->single.syscalls) : Value(None{}),
                    Show::wide);
        }
        for (const auto& engine : compared_engines(report)) {
            const auto* result = find_result(cell, engine);
            add_ratio(row, "time", engines.back() + '/' + engine, show_of(report, engine) == Show::everywhere,
                      result ? result->single.last_to_this : std::nullopt, false, judged);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// The ratio of rates is the inverse of the ratio of times.
std::optional<bench::Ratio> upside_down(const std::optional<bench::Ratio>& ratio) {
    if (!ratio) return std::nullopt;
    return bench::Ratio{1 / ratio->value, 1 / ratio->high, 1 / ratio->low};
}

Value rate_text(const bench::EngineResult* result, uint64_t size) {
    if (!result) return None{};
    const double rate = result->deep.operations_per_second();
    if (size < bandwidth_from) return PerSecond{rate};
    return BytesPerSecond{rate * static_cast<double>(size)};
}

Table deep_table(const CompareReport& report) {
    const Words engines = engines_of(report);
    const bool judged = report.obstacle().empty();
    Table rows;
    for (const auto& cell : report.cells) {
        if (cell.engines.empty()) continue;
        Record row = row_head(cell);
        row.add("depth", cell.workload.depth);
        for (const auto& engine : engines) {
            add_gap(row, report, engine, "");
            row.add(engine, rate_text(find_result(cell, engine), cell.workload.size),
                    show_of(report, engine));
        }
        for (const auto& engine : engines) {
            const auto* result = find_result(cell, engine);
            row.add(engine + " calls", result ? calls_text(result->deep.syscalls) : Value(None{}),
                    Show::wide);
        }
        for (const auto& engine : engines) {
            const auto* result = find_result(cell, engine);
            row.add(engine + " CPU",
                    result ? Value(Nanoseconds{result->deep.cpu_ns_per_operation()}) : Value(None{}),
                    Show::wide);
        }
        for (const auto& engine : compared_engines(report)) {
            const auto* result = find_result(cell, engine);
            add_ratio(row, "rate", engines.back() + '/' + engine, show_of(report, engine) == Show::everywhere,
                      upside_down(result ? result->deep.last_to_this : std::nullopt), true, judged);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// The reasons are printed below the table, each once.
struct Abilities {
    Table rows;
    Words reasons;
};

std::string refusal_text(const std::string& reason, Words& reasons) {
    auto at = std::find(reasons.begin(), reasons.end(), reason);
    if (at == reasons.end()) at = reasons.insert(at, reason);
    return fmt::format("refused [{}]", at - reasons.begin() + 1);
}

// Which engine did which cell, in words.
Abilities abilities_of(const CompareReport& report) {
    Abilities abilities;
    for (const auto& cell : report.cells) {
        Record row = row_head(cell);
        for (const std::string engine : {"verbs", "kverbs", "job"}) {
            const auto* result = find_result(cell, engine);
            const auto refusal = std::find_if(cell.refusals.begin(), cell.refusals.end(),
                                              [&](const auto& r) { return r.engine == engine; });
            row.add(engine, result && result->verified ? Value(std::string("works"))
                            : result                   ? Value(std::string("works, not verified"))
                            : refusal == cell.refusals.end()
                                ? Value(None{})
                                : Value(refusal_text(refusal->error.reason(), abilities.reasons)));
        }
        abilities.rows.push_back(std::move(row));
    }
    return abilities;
}

// Every engine does READ and WRITE.
bool is_worth_telling(const bench::Cell& cell) {
    const auto operation = cell.workload.operation;
    return !cell.refusals.empty() ||
           (operation != bench::Operation::read && operation != bench::Operation::write);
}

void add_abilities(Record& record, const CompareReport& report) {
    if (std::none_of(report.cells.begin(), report.cells.end(), is_worth_telling)) return;
    const Abilities abilities = abilities_of(report);
    Record reasons;
    for (size_t i = 0; i < abilities.reasons.size(); i++)
        reasons.add(fmt::format("refusal_{}", i + 1), abilities.reasons[i], Show::everywhere,
                    fmt::format("[{}]", i + 1));
    record.add("abilities", Value(abilities.rows), Show::text_only, "\nWhich engine does what");
    if (!abilities.reasons.empty())
        record.add("refusals", Value(std::make_shared<Record>(reasons)), Show::text_only, "refused");
}

// Losses of all cells together; empty: nothing was lost.
std::string losses_text(const CompareReport& report) {
    uint64_t sent = 0, lost = 0;
    for (const auto& cell : report.cells)
        for (const auto& engine : cell.engines)
            if (engine.losses) sent += engine.losses->sent, lost += engine.losses->lost;
    return lost ? fmt::format("{} of {} messages were lost, without telling.", lost, sent) : "";
}

Words notes_of(const CompareReport& report) {
    const std::string& driver = report.from.device.core.driver;
    Words notes;
    if (!report.is_whole())
        notes.push_back(fmt::format("Interrupted: {} of {} cells were measured, and what was measured of "
                                    "the next is not told.",
                                    report.cells.size(), report.nr_wanted));
    if (const std::string obstacle = report.obstacle(); !obstacle.empty())
        notes.push_back("not judged: " + obstacle + ". --judge-anyway judges.");
    if (!report.difference().empty())
        notes.emplace_back(
            "A link keeps the path that it was made with (kxfer link list). It closes 30 s after "
            "its last user has gone; what is opened then is a new one.");
    if (report.from.device.software()) {
        notes.push_back(
            fmt::format("On {} user-space verbs make a system call for each doorbell, so the kernel "
                        "path can win here.",
                        driver));
        notes.emplace_back("This says nothing about hardware, where user-space verbs bypass the kernel.");
        notes.push_back(
            fmt::format("In software TCP is faster than either; {} is for trying things out.", driver));
    }
    if (!report.no_floor.empty()) notes.push_back("kverbs was not measured: " + report.no_floor + '.');
    const bool all_verified = std::all_of(report.cells.begin(), report.cells.end(), [](const auto& cell) {
        return std::all_of(cell.engines.begin(), cell.engines.end(),
                           [](const auto& e) { return e.verified; });
    });
    const std::string losses = losses_text(report);
    if (!losses.empty()) notes.push_back(losses);
    notes.emplace_back(all_verified     ? "Every cell's data was verified."
                       : losses.empty() ? "Data was not verified: the peer's memory was opened for READ only "
                                          "(--verify overwrites it, and verifies)."
                                        : "Data was not verified where no try arrived as a whole.");
    if (const auto uncounted = std::find_if(report.cells.begin(), report.cells.end(),
                                            [](const auto& cell) { return !cell.uncounted.empty(); });
        uncounted != report.cells.end())
        notes.push_back(uncounted->uncounted);
    return notes;
}

// The different values of all cells, because they may depend on the operation.
std::string ways_of(const CompareReport& report, const std::string& engine,
                    std::string bench::EngineResult::*way) {
    Words ways;
    for (const auto& cell : report.cells)
        if (const auto* result = find_result(cell, engine);
            result && !(result->*way).empty() &&
            std::find(ways.begin(), ways.end(), result->*way) == ways.end())
            ways.push_back(result->*way);
    return fmt::format("{}", fmt::join(ways, "; or "));
}

std::string floor_waiting(const CompareReport& report) {
    if (report.context == "polled") return "polls the CQ in the kernel, in one call a block";
    if (report.context == "direct")
        return "polls the CQ in the kernel, where no other context does, in one call a block";
    return fmt::format("sleeps in the kernel, in one call a block; completions by {}", report.context);
}

std::string job_waiting(const CompareReport& report) {
    if (report.context != "polled") return fmt::format("sleeps in SUBMIT; completions by {}", report.context);
    if (report.poll == "adaptive") return "polls the CQ in SUBMIT while that pays, then sleeps";
    if (report.poll == "always") return "polls the CQ in SUBMIT";
    return "sleeps in SUBMIT; completions of the polled CQ by a workqueue";
}

std::string signalling(unsigned every, unsigned batch) {
    if (every == 1) return "batch, signalled each";
    return every == batch ? "batch, signalled once" : fmt::format("batch, one of {} signalled", every);
}

void add_parameters(Record& record, const CompareReport& report) {
    const auto& parameters = report.parameters;
    const unsigned batch = report.cells.empty() ? 0 : report.cells.front().workload.batch;
    record
        .add("local_memory",
             fmt::format("{}, {}", human_bytes(parameters.local_bytes), parameters.local_layout),
             Show::text_only)
        .add("local_memory", Bytes{parameters.local_bytes}, Show::json_only)
        .add("local_layout", parameters.local_layout, Show::json_only)
        .add("remote_memory",
             fmt::format("{}, registered {}", human_bytes(parameters.remote_bytes),
                         parameters.remote_registration),
             Show::text_only)
        .add("remote_memory", Bytes{parameters.remote_bytes}, Show::json_only)
        .add("remote_registration", parameters.remote_registration, Show::json_only)
        .add("write_success", parameters.write_success, Show::everywhere, "a WRITE is done when")
        .add("signal_every", parameters.signal_every, Show::json_only)
        .add("batch", batch, Show::everywhere, signalling(parameters.signal_every, batch));
    for (const auto& engine : engines_of(report))
        record.add("waiting_" + engine,
                   engine == "job"
                       ? job_waiting(report) + (report.ring ? "; jobs and completions in rings" : "")
                   : engine == "kverbs"  ? floor_waiting(report)
                   : report.verbs_events ? "sleeps for events of the CQ"
                                         : "polls the CQ",
                   Show::everywhere, engine);
    for (const auto& engine : engines_of(report))
        record.add("local_" + engine, ways_of(report, engine, &bench::EngineResult::local_registration),
                   Show::text_only, engine + " names local memory");
    for (const auto& engine : engines_of(report))
        if (const auto done = ways_of(report, engine, &bench::EngineResult::message_success); !done.empty())
            record.add("message_" + engine, done, Show::text_only, engine + "'s message is done when");
    if (!report.memory.empty()) record.add("memory", report.memory, Show::json_only);
    if (!report.cq.empty()) record.add("cq", report.cq, Show::json_only);
    record.add("inline", report.inlining, Show::json_only);
    if (!report.context.empty()) record.add("completion_context", report.context, Show::json_only);
    if (!report.poll.empty()) {
        if (report.context == "polled") record.add("poll", report.poll, Show::json_only);
        record.add("ring", report.ring, Show::json_only);
    }
    record.add("rounds", report.plan.rounds, Show::everywhere, "rounds there and back")
        .add("operations_per_block", report.plan.count, Show::json_only)
        .add("budget_per_cell", Nanoseconds{static_cast<double>(report.plan.budget.count())},
             Show::json_only);
}

// Registrations made before the cells; for messages verbs connects, and so registers, anew.
void add_registrations(Record& record, const CompareReport& report) {
    Table rows;
    for (const auto& [engine, cost] : report.registrations) {
        Record row;
        row.add("engine", engine);
        add_registration(row, cost);
        rows.push_back(std::move(row));
        record.add("registration_" + engine, registration_text(cost), Show::text_only,
                   "registration, " + engine);
    }
    record.add("registration", Value(rows), Show::json_only);
}

std::string interval_text(const bench::Ratio& ratio) {
    const int digits = digits_of(ratio);
    return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", ratio.value, digits, ratio.low, digits, ratio.high,
                       digits);
}

} // namespace

std::string CompareReport::difference() const {
    for (const auto& cell : cells)
        if (auto found = bench::find_difference(cell); !found.empty()) return found;
    return {};
}

std::string CompareReport::obstacle() const {
    const std::string of_machine = conditions.obstacle(), of_path = difference();

    if (judge_anyway) return {};
    if (!of_machine.empty()) return of_machine;
    return of_path.empty() ? "" : "the engines' connections differ in " + of_path;
}

std::string ratio_text(const std::optional<bench::Ratio>& ratio, bool great_is_fast, bool judged) {
    if (!ratio) return "";
    return interval_text(*ratio) + ' ' +
           verdict_of(*ratio, great_is_fast, judged, "no significant difference");
}

// "kernel job path beside user-space verbs": the last engine and the first.
std::string title_of(const CompareReport& report) {
    const Words engines = engines_of(report);
    if (engines.empty()) return "";
    std::string title = engine_words(engines.back());
    if (engines.size() > 1) title += std::string(" beside ") + engine_words(engines.front());
    return title;
}

Record report_record(const CompareReport& report) {
    const std::string beside = title_of(report);
    const std::string obstacle = report.obstacle();
    Record record;
    record.add("result", Value(std::string(result_name)), Show::json_only)
        .add("format", format, Show::json_only);
    add_provenance(record, report.from);
    add_conditions(record, report.conditions);
    record.add("obstacle", obstacle, Show::json_only)
        .add("interrupted", Value(!report.is_whole()), Show::json_only);
    if (const auto difference = report.difference(); !difference.empty())
        record.add("warning", "the engines' connections differ in " + difference, Show::everywhere,
                   "WARNING");
    add_parameters(record, report);
    add_registrations(record, report);
    add_abilities(record, report);
    Table cells;
    for (const auto& cell : report.cells) cells.push_back(cell_json(cell, obstacle.empty()));
    Record notes;
    const Words words = notes_of(report);
    for (size_t i = 0; i < words.size(); i++)
        notes.add(fmt::format("note_{}", i + 1), words[i], Show::everywhere, fmt::format("{}.", i + 1));
    record
        .add("one_at_a_time", Value(single_table(report)), Show::text_only,
             fmt::format("\n{}: one at a time", beside))
        .add("deep", Value(deep_table(report)), Show::text_only, fmt::format("\n{}: deep", beside))
        .add("cells", Value(cells), Show::json_only)
        .add("notes", Value(words), Show::json_only)
        .add("notes", Value(std::make_shared<Record>(notes)), Show::text_only,
             "\ncalls: system calls an operation; CPU: time of the calling thread,\n"
             "an operation; [ ]: 95 % interval");
    return record;
}

Record trial_record(const std::string& engine, const bench::Trial& trial) {
    const auto place = [](unsigned operation, size_t at) {
        return Value(fmt::format("operation {}, byte {}", operation, at));
    };
    const bool is_control = trial.injected == "none";
    const auto& found = trial.reported;
    return Record()
        .add("engine", Value(engine))
        .add("injected", Value(trial.injected))
        .add("injected_at", is_control ? Value(None{}) : place(trial.operation, trial.at), Show::everywhere,
             "at")
        .add("how", Value(trial.how))
        .add("reported", Value(std::string(found ? bench::damage_name(found->finding.damage) : "none")))
        .add("reported_at", found ? place(found->operation, found->finding.at) : Value(None{}),
             Show::everywhere, "at")
        .add("verdict",
             is_control     ? (trial.caught ? "quiet" : "FALSE ALARM")
             : trial.caught ? "caught"
                            : "MISSED",
             Show::text_only)
        .add("caught", Value(trial.caught), Show::json_only)
        .add("text", found ? Value(found->finding.text()) : Value(None{}), Show::json_only);
}

} // namespace kxfer::cli
