// SPDX-License-Identifier: MIT
#include "cli/measure/bench_all.hpp"

#include <array>
#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

struct Row {
    const char* name; // of an operation or other work
    uint64_t size;
    unsigned depth;
};

// First how long one takes, then how many and how much.
constexpr std::array rows = {
    Row{"read", 64, 1},      Row{"write", 64, 1},      Row{"fetch-add", 8, 1}, Row{"send", 64, 1},
    Row{"ping-pong", 64, 1}, Row{"read", 4096, 32},    Row{"write", 4096, 32}, Row{"send", 4096, 32},
    Row{"read", 1 << 20, 8}, Row{"write", 1 << 20, 8},
};

BenchOptions options_of(const Row& row, BenchOptions options) {
    options.set_operation(row.name);
    options.workload.size = row.size;
    options.workload.depth = row.depth;
    options.size_given = true;
    options.tells_intervals = false;
    if (!options.duration_given) options.seconds = 1;
    return with_defaults(std::move(options));
}

// What the engine, the device, the peer or its `kxfer serve` lacks; other failures are failures.
bool is_lack(const Failure& failure) {
    const int number = failure.error.number;
    return failure.status == exit_usage || number == EOPNOTSUPP || number == EACCES || number == ENOENT;
}

// NaN: not known.
double latency(const bench::RunResult& result, double percent) {
    const bool known = result.untimed.empty() && result.latencies.supports(percent);
    return known ? static_cast<double>(result.latencies.percentile(percent)) : NAN;
}

// JSON has the unit in the key also where the value is not known.
template <typename Quantity> void add_quantity(Record& record, const char* key, double count) {
    record.add(key, Quantity{count}, Show::json_only)
        .add(key, std::isnan(count) ? Value(None{}) : Value(Quantity{count}), Show::text_only);
}

// result: null if the row could not be measured.
Record record_of(const Row& row, const bench::RunResult* result, const std::string& error) {
    // Of a round trip no bandwidth is told: its bytes go both ways, one after the other.
    const bool moves = result && result->workload.work == bench::Work::transfer;
    Record record;
    record.add("operation", row.name).add("size", Bytes{row.size}).add("depth", row.depth);
    add_quantity<Nanoseconds>(record, "p50", result ? latency(*result, 50) : NAN);
    add_quantity<Nanoseconds>(record, "p99", result ? latency(*result, 99) : NAN);
    add_quantity<PerSecond>(record, "rate", result ? result->operations_per_second() : NAN);
    add_quantity<BytesPerSecond>(record, "bandwidth", moves ? result->bytes_per_second() : NAN);
    record.add("operations", result ? result->operations : 0, Show::json_only)
        .add("error", error.empty() ? Value(None{}) : Value(error), Show::json_only);
    return record;
}

std::string words_of(const Row& row) {
    return fmt::format("{} of {}, {} deep", row.name, human_bytes(row.size), row.depth);
}

} // namespace

tl::expected<void, Failure> check_all(const BenchOptions& options) {
    const bool one_workload = options.size_given || options.mix_given || options.workload.depth != 1 ||
                              options.batch != 0 || options.count != 0 || options.rate > 0 ||
                              options.nr_clients != 1 || options.bidirectional || options.stages;
    if (one_workload)
        return wrong_usage("all has sizes, depths and loads of its own",
                           "use --size, --depth and others of the load with one operation");
    if (!options.assertions.empty() || !options.baseline_file.empty() || !options.output_file.empty())
        return wrong_usage("all judges nothing", "use --assert, --baseline and --output with one operation");
    return {};
}

Result bench_all(const BenchOptions& options, const std::string& version, const CheckOptions& check,
                 Context& context) {
    const auto accept = [](const BenchReport&) -> tl::expected<void, Failure> { return {}; };
    const auto run = [&](const Row& row) -> tl::expected<BenchReport, Failure> {
        const BenchOptions one = options_of(row, options);
        TRY(check(one));
        return run_workload(one, version, accept, context);
    };
    Table table;
    Words notes;
    bool has_failed = false;
    std::string obstacle; // of the last run that had one
    ProgressLine progress(context.out, "bench");
    for (Row row : rows) {
        progress.show(static_cast<double>(table.size()) / rows.size(), words_of(row));
        auto report = run(row);
        // A device may have room for fewer that long: a READ of siw takes many sinks.
        for (; !report && report.error().error.number == EINVAL && row.depth > 1 && !interrupted();
             report = run(row))
            row.depth /= 2;
        if (interrupted()) return interrupt_status();
        if (!report && table.empty()) return tl::make_unexpected(report.error());
        table.push_back(record_of(row, report ? &report->result : nullptr,
                                  report ? std::string() : report.error().error.text()));
        if (report) {
            if (auto met = report->result.conditions.obstacle(); !met.empty()) obstacle = std::move(met);
            continue;
        }
        const Error& error = report.error().error;
        has_failed |= !is_lack(report.error());
        notes.push_back(fmt::format("{}: {}{}", words_of(row), error.text(),
                                    error.hint.empty() ? "" : fmt::format("; {}", error.hint)));
    }
    progress.finish();
    context.out.table(table, "nothing was measured");
    for (const std::string& note : notes) context.out.note(note);
    if (!obstacle.empty()) context.out.note(fmt::format("some of these runs were disturbed: {}", obstacle));
    return has_failed ? exit_failed : exit_ok;
}

} // namespace kxfer::cli
