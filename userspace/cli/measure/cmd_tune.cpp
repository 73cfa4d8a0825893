// SPDX-License-Identifier: MIT
//
// kxfer tune PEER: measures a link by READs of the peer's @ping, and says what it would choose for
// it, and why. It changes nothing.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/engines/connect_time.hpp"
#include "cli/measure/commands.hpp"
#include "cli/measure/probe.hpp"
#include "cli/measure/tuning.hpp"
#include "cli/node/devices.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

struct TuneOptions {
    Peer peer;
    CommonOptions common;
};

constexpr uint64_t small_size = 64;
constexpr std::array<unsigned, 9> small_depths = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr std::array<uint64_t, 3> piece_sizes = {4 << 10, 16 << 10, KXFER_PING_SIZE};
constexpr std::array<unsigned, 5> bulk_depths = {1, 2, 4, 8, 16};
// Each load takes a while, and more where a round trip is long.
constexpr std::chrono::milliseconds least_time{150}, most_time{1500};
constexpr double round_trips_a_load = 20;

// The links of the session that measures stay up meanwhile.
double connect_time(const TuneOptions& options) {
    const auto addresses = resolve(options.peer);
    if (!addresses) return NAN;
    bench::PathOptions path;
    path.peer = addresses->front();
    path.device = options.common.device;
    path.key = options.common.key;
    path.tos = options.common.tos;
    path.timeout = options.common.timeout();
    const auto took = bench::time_connect(path);
    return took && *took ? **took : NAN;
}

tl::expected<LinkFigures, Failure> measure(const TuneOptions& options, Probe& probe, Context& context) {
    constexpr size_t nr_loads = small_depths.size() + piece_sizes.size() + bulk_depths.size();
    ProgressLine progress(context.out, "tune");
    LinkFigures figures;
    size_t nr = 0;
    std::chrono::nanoseconds time = least_time;
    const auto add = [&](std::vector<Load>& loads, uint64_t size,
                         unsigned depth) -> tl::expected<void, Failure> {
        progress.show(static_cast<double>(nr++) / nr_loads,
                      fmt::format("READ {}, {} in flight", human_bytes(size), depth));
        TRY_SET(const auto load, probe.read(size, depth, time));
        if (loads.empty() || loads.back().depth != load.depth || loads.back().size != load.size)
            loads.push_back(load);
        return {};
    };
    for (const unsigned depth : small_depths) {
        TRY(add(figures.small, small_size, depth));
        const auto wanted = std::chrono::nanoseconds(
            static_cast<int64_t>(round_trips_a_load * figures.small.front().longest_ns));
        time = std::clamp<std::chrono::nanoseconds>(wanted, least_time, most_time);
    }
    for (const uint64_t size : piece_sizes)
        TRY(add(figures.pieces, size, static_cast<unsigned>(probe.room() / size)));
    for (const unsigned depth : bulk_depths) TRY(add(figures.bulk, piece_sizes.back(), depth));
    figures.connect_ns = connect_time(options);
    return figures;
}

Record load_row(const Load& load) {
    return Record()
        .add("size", Bytes{load.size})
        .add("in_flight", load.depth)
        .add("operations", load.operations, Show::json_only)
        .add("p50", Nanoseconds{load.p50_ns}, Show::json_only)
        .add("p50", std::isnan(load.p50_ns) ? Value(None{}) : Value(Nanoseconds{load.p50_ns}),
             Show::text_only)
        .add("longest", Nanoseconds{load.longest_ns})
        .add("rate", PerSecond{load.per_second()})
        .add("bandwidth", BytesPerSecond{load.bytes_per_second()});
}

Table load_rows(const LinkFigures& figures) {
    Table rows;
    for (const auto* loads : {&figures.small, &figures.pieces, &figures.bulk})
        for (const Load& load : *loads) rows.push_back(load_row(load));
    return rows;
}

Table choice_rows(const std::vector<Choice>& choices) {
    Table rows;
    for (const Choice& choice : choices)
        rows.push_back(Record()
                           .add("setting", choice.setting, Show::text_only)
                           .add("choose", human_value(choice.value), Show::text_only)
                           .add("now", choice.now, Show::text_only));
    return rows;
}

// Sentences, broken to fit a screen.
Record reasons_record(const std::vector<Choice>& choices) {
    Record all;
    for (const Choice& choice : choices)
        all.add(choice.key, Lines{{choice.why}}, Show::text_only, choice.setting);
    return all;
}

// An object by key, each with its unit.
Record choices_record(const std::vector<Choice>& choices) {
    Record all;
    for (const Choice& choice : choices)
        all.add(choice.key,
                Record().add("value", choice.value).add("now", choice.now).add("why", choice.why));
    return all;
}

Record report_of(const TuneOptions& options, const kxfer_info_link& link, const LinkFigures& figures) {
    const LinkSettings now = {.silence_ns = link.silence_ms * 1e6,
                              .ack_exponent = link.ack_timeout,
                              .retries = link.retry_count,
                              .in_flight = uint64_t{link.in_flight_kib} * 1024,
                              .timeout_ns = options.common.timeout_seconds * 1e9};
    const auto choices = choose(figures, now);
    Record report;
    report.add("peer", options.peer.text())
        .add("device", text_of(link.device))
        .add("connect", Nanoseconds{figures.connect_ns}, Show::json_only)
        .add("connect",
             std::isnan(figures.connect_ns) ? Value(std::string("not known"))
                                            : Value(Nanoseconds{figures.connect_ns}),
             Show::text_only)
        .add("measured", Value(load_rows(figures)), Show::everywhere, "\nREADs of @ping")
        .add("choices", Value(std::make_shared<Record>(choices_record(choices))), Show::json_only)
        .add("choices", Value(choice_rows(choices)), Show::text_only, "\nwhat to choose")
        .add("reasons", Value(std::make_shared<Record>(reasons_record(choices))), Show::text_only, "\nwhy");
    return report;
}

Result tune(const TuneOptions& options, Context& context) {
    catch_interrupts();
    TRY_SET(auto probe, Probe::open(options.peer, options.common));
    TRY_SET(const auto link, probe.link());
    TRY_SET(auto figures, measure(options, probe, context));
    figures.iwarp = link.gid_type == UINT32_MAX;
    context.out.record(report_of(options, link, figures));
    context.out.note(
        "\nThis is of this minute, and nothing was changed: a busier wire or peer needs longer\n"
        "times. Both ends have a silence and an ack timeout: kxfer listen add --silence, there.");
    return exit_ok;
}

Result run_tune(const TuneOptions& options, Context& context) {
    return unless_interrupted(tune(options, context));
}

} // namespace

void setup_tune(CLI::App& app, Program& program) {
    const auto options = std::make_shared<TuneOptions>();
    CLI::App& command =
        add_command(app, "tune", "what to choose for the link to a peer, and why (measures by its @ping)",
                    "kxfer tune 10.77.0.1");
    add_peer_option(command, "peer", options->peer, "HOST[:PORT]")->required();
    add_common_options(command, options->common);
    on_run(command, program, options, run_tune);
}

} // namespace kxfer::cli
