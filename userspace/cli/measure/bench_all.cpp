// SPDX-License-Identifier: MIT
#include "cli/measure/bench_all.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "bench/stats/figure.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

struct Row {
    const char* name; // of an operation or other work, or `connect`
    uint64_t size;
    unsigned depth; // halved where the device or the export has room for fewer
};

constexpr std::string_view connect_name = "connect";
constexpr std::string_view round_trip_name = "send-ping-pong";

// First how long one takes, then how many and how much.
constexpr std::array rows = {
    Row{"connect", 0, 0},         Row{"read", 64, 1},         Row{"write", 64, 1},
    Row{"send-ping-pong", 64, 1}, Row{"read", 64, 32},        Row{"send", 64, 32},
    Row{"read", 64 << 10, 16},    Row{"write", 64 << 10, 16}, Row{"read", 1 << 20, 8},
    Row{"write", 1 << 20, 8},
};

// Operations before those that count: fewer than in a run of its own, which has more time.
constexpr uint64_t most_warm_up = 20;
// Memory at the peer that is enough for all rows.
constexpr char wanted_memory[] = "8M";

bool is_connect(const Row& row) { return row.name == connect_name; }

std::string short_bytes(uint64_t bytes) {
    return bytes < 1024 ? fmt::format("{} B", bytes) : human_bytes(bytes);
}

std::string words_of(const Row& row) {
    if (is_connect(row)) return "connect";
    if (row.name == round_trip_name) return fmt::format("send {} and back", short_bytes(row.size));
    return fmt::format("{} {}{}", row.name, short_bytes(row.size),
                       row.depth > 1 ? fmt::format(" x{}", row.depth) : "");
}

BenchOptions options_of(const Row& row, BenchOptions options) {
    options.set_operation(row.name);
    options.workload.size = row.size;
    options.workload.depth = row.depth;
    options.size_given = true;
    options.tells_intervals = false;
    options.warm_up = std::min(options.warm_up, most_warm_up);
    if (!options.duration_given) options.seconds = 1;
    return with_defaults(std::move(options));
}

// What the engine, the device, the peer or its `kxfer serve` lacks; other failures are failures.
bool is_lack(const Failure& failure) {
    const int number = failure.error.number;
    return failure.status == exit_usage || number == EOPNOTSUPP || number == EACCES || number == ENOENT ||
           number == ERANGE;
}

// What became of a row: of connect the time, of others the result of a run, or why there is neither.
struct Outcome {
    std::optional<double> connect_ns = {};
    std::optional<bench::RunResult> result = {};
    std::optional<Failure> failure = {};
    bool by_ping = false;    // @ping was READ in place of the export
    std::string driver = {}; // of a software device

    bool known() const { return connect_ns || result; }
};

// The figures by name, as in assertions; NaN: not known.
double figure(const Outcome& outcome, std::string_view name) {
    if (!outcome.result) return NAN;
    for (const auto& one : bench::figures_of(*outcome.result))
        if (one.name == name) return one.value.value_or(NAN);
    return NAN;
}

// JSON has the unit in the key also where the value is not known.
template <typename Quantity>
void add_quantity(Record& record, const char* key, double count, const char* label, Value instead = None{}) {
    record.add(key, Quantity{count}, Show::json_only)
        .add(key, std::isnan(count) ? std::move(instead) : Value(Quantity{count}), Show::text_only, label);
}

Record record_of(const Row& row, const Outcome& outcome) {
    // Of a round trip no bandwidth is told: its bytes go both ways, one after the other.
    const bool moves = outcome.result && outcome.result->workload.work == bench::Work::transfer;
    const auto connect_ns = outcome.connect_ns.value_or(NAN);
    const Value instead = outcome.connect_ns ? Value(Nanoseconds{*outcome.connect_ns})
                          : outcome.known()  ? Value(None{})
                                             : Value(std::string("not known"));
    Record record;
    record.add("figure", Value(words_of(row)), Show::text_only)
        .add("operation", Value(std::string(row.name)), Show::json_only)
        .add("size", Bytes{row.size}, Show::json_only)
        .add("depth", row.depth, Show::json_only)
        .add("connect", Nanoseconds{connect_ns}, Show::json_only);
    add_quantity<Nanoseconds>(record, "p50", figure(outcome, "p50"), "p50", instead);
    add_quantity<Nanoseconds>(record, "p99", figure(outcome, "p99"), "p99");
    add_quantity<PerSecond>(record, "rate", figure(outcome, "rate"), "rate");
    add_quantity<BytesPerSecond>(record, "bandwidth", moves ? figure(outcome, "bw") : NAN, "bandwidth");
    add_quantity<Nanoseconds>(record, "cpu_per_operation", figure(outcome, "cpu"), "CPU here");
    add_quantity<Nanoseconds>(record, "peer_cpu_per_operation", figure(outcome, "peer_cpu"), "at peer");
    return record.add("node_cpu_per_operation", Nanoseconds{figure(outcome, "node_cpu")}, Show::json_only)
        .add("operations", outcome.result ? outcome.result->operations : 0, Show::json_only)
        .add("by_ping", outcome.by_ping, Show::json_only)
        .add("error", outcome.failure ? Value(outcome.failure->error.text()) : Value(None{}),
             Show::json_only);
}

// Measures one row after the other.
class Rows {
  public:
    Rows(const BenchOptions& options, const std::string& version, const CheckOptions& check, Context& context)
        : options_(options), version_(version), check_(check), context_(context) {}

    Outcome measure(Row& row) {
        if (is_connect(row)) return connect();
        Outcome outcome = run(row, options_);
        // Each listener has @ping, which can be READ.
        const bool missing = outcome.failure && (outcome.failure->error.number == ENOENT ||
                                                 outcome.failure->error.number == EACCES);
        if (!missing || !may_read_ping(row)) return outcome;
        BenchOptions other = options_;
        other.export_name = KXFER_PING_NAME;
        Outcome instead = run(row, other);
        instead.by_ping = true;
        return instead.known() ? instead : outcome;
    }

  private:
    bool may_read_ping(const Row& row) const {
        return options_.peer_given && options_.wants("job") && !options_.verify &&
               std::string_view(row.name) == "read" && row.size <= KXFER_PING_SIZE;
    }

    Outcome connect() {
        Outcome outcome;
        if (!options_.wants_module()) {
            outcome.failure = Failure(
                Error("cannot make a link", "", EOPNOTSUPP, "", "only the engines of the module have links"));
            return outcome;
        }
        auto rig = set_up_place(options_, bench::page_bytes);
        const auto took = rig ? time_link(options_, *rig) : tl::make_unexpected(rig.error());
        if (!took)
            outcome.failure = took.error();
        else if (!*took)
            outcome.failure = Failure(
                Error("no new link could be made", "", EOPNOTSUPP, "",
                      "links in all completion contexts are up, and close 30 s after their last user"));
        else
            outcome.connect_ns = **took;
        return outcome;
    }

    // A device may have room for fewer that long, as a READ of siw takes many sinks; so may an export.
    Outcome run(Row& row, const BenchOptions& options) {
        Outcome outcome = run_once(row, options);
        while (outcome.failure && row.depth > 1 && !interrupted() &&
               (outcome.failure->error.number == EINVAL || outcome.failure->error.number == ERANGE)) {
            row.depth /= 2;
            outcome = run_once(row, options);
        }
        return outcome;
    }

    Outcome run_once(const Row& row, const BenchOptions& options) {
        const auto accept = [](const BenchReport&) -> tl::expected<void, Failure> { return {}; };
        const BenchOptions one = options_of(row, options);
        Outcome outcome;
        if (auto fine = check_(one); !fine) {
            outcome.failure = fine.error();
            return outcome;
        }
        auto report = run_workload(one, version_, accept, context_);
        if (!report) {
            outcome.failure = report.error();
            return outcome;
        }
        if (report->from.device.software()) outcome.driver = report->from.device.core.driver;
        outcome.result = std::move(report->result);
        return outcome;
    }

    const BenchOptions& options_;
    const std::string& version_;
    const CheckOptions& check_;
    Context& context_;
};

struct Measured {
    Row row;
    Outcome outcome;
};

// Rows that are not known, by their reason.
Words unknown_words(const std::vector<Measured>& all) {
    std::vector<std::pair<std::string, Words>> reasons;
    for (const auto& [row, outcome] : all) {
        if (outcome.known()) continue;
        const Error& error = outcome.failure->error;
        // advice() has what the peer lacks.
        const std::string hint = is_lack(*outcome.failure) || error.hint.empty() ? "" : "; " + error.hint;
        const std::string reason = error.text() + hint;
        auto same = std::find_if(reasons.begin(), reasons.end(),
                                 [&](const auto& one) { return one.first == reason; });
        if (same == reasons.end()) same = reasons.emplace(reasons.end(), reason, Words());
        same->second.push_back(words_of(row));
    }
    Words words;
    for (const auto& [reason, names] : reasons)
        words.push_back(fmt::format("not known: {}: {}", fmt::join(names, ", "), reason));
    return words;
}

// The command that offers all rows, if the peer lacks something.
std::string advice(const BenchOptions& options, const std::vector<Measured>& all) {
    const bool lacks = std::any_of(all.begin(), all.end(), [](const Measured& one) {
        const auto& failure = one.outcome.failure;
        return one.outcome.by_ping || (failure && !is_connect(one.row) && failure->status != exit_usage);
    });
    if (!options.peer_given || !lacks) return {};
    return fmt::format("all figures need there: kxfer serve {}=mem:{} --writable --mailbox --bench{}",
                       options.export_name, wanted_memory, options.wants("job") ? "" : " --verbs");
}

Words notes_of(const BenchOptions& options, const std::vector<Measured>& all) {
    Words notes = unknown_words(all);
    std::string obstacle, driver;
    bool by_ping = false, peer_says = false;
    for (const auto& [row, outcome] : all) {
        by_ping |= outcome.by_ping;
        if (!outcome.driver.empty()) driver = outcome.driver;
        if (!outcome.result) continue;
        peer_says |= options.peer_given && outcome.result->footprint.peer;
        if (row.name == round_trip_name && !std::isnan(figure(outcome, "p50")))
            notes.push_back(fmt::format("a SEND one way is half of there and back: {}",
                                        human_nanoseconds(figure(outcome, "p50") / 2)));
        if (auto met = outcome.result->conditions.obstacle(); !met.empty()) obstacle = std::move(met);
    }
    if (by_ping)
        notes.push_back(fmt::format("the peer has no export '{}' for this user, so READs are of its {}",
                                    options.export_name, KXFER_PING_NAME));
    if (const auto words = advice(options, all); !words.empty()) notes.push_back(words);
    if (peer_says) notes.emplace_back("CPU time of the process at the peer is the peer's word");
    if (!driver.empty())
        notes.push_back(fmt::format(
            "{} is software: its work is in no process; --json has the CPU time of the node", driver));
    if (!obstacle.empty()) notes.push_back(fmt::format("some of these runs were disturbed: {}", obstacle));
    return notes;
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
    Rows measuring(options, version, check, context);
    std::vector<Measured> all;
    bool known = false, has_failed = false;
    ProgressLine progress(context.out, "bench");
    for (Row row : rows) {
        progress.show(static_cast<double>(all.size()) / rows.size(), words_of(row));
        Outcome outcome = measuring.measure(row);
        if (interrupted()) return interrupt_status();
        known |= outcome.known();
        const bool fails = outcome.failure && !is_lack(*outcome.failure);
        if (fails && !known) return tl::make_unexpected(*outcome.failure);
        has_failed |= fails;
        all.push_back({row, std::move(outcome)});
    }
    progress.finish();
    if (!known) return tl::make_unexpected(*all.back().outcome.failure);
    Table table;
    for (const auto& [row, outcome] : all) table.push_back(record_of(row, outcome));
    context.out.table(table, "nothing was measured");
    for (const std::string& note : notes_of(options, all)) context.out.note(note);
    return has_failed ? exit_failed : exit_ok;
}

} // namespace kxfer::cli
