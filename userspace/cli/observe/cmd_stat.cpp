// SPDX-License-Identifier: MIT
//
// kxfer stat [DEV|LINK]: the counters of the module, or the activity of one device or link: once,
// as rates again and again, or as metrics for monitoring.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/observe/commands.hpp"
#include "cli/observe/openmetrics.hpp"
#include "cli/observe/rates.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

struct StatOptions {
    std::string object;
    double interval_seconds = 0; // 0: once
    uint64_t count = 0;          // 0: until a signal
    bool openmetrics = false;
    bool prometheus = false;
    std::string output;
};

// The number of a link, or nothing for the name of a device.
std::optional<uint64_t> link_number(const std::string& object) {
    uint64_t link = 0;
    const char* const last = object.data() + object.size();
    const auto [end, error] = std::from_chars(object.data(), last, link);
    return error == std::errc() && end == last ? std::optional(link) : std::nullopt;
}

Error no_object(const std::string& object) {
    return Error("cannot show", object, ENOENT, "see: kxfer device list, kxfer link list",
                 "no RDMA device of that name and no number of a link");
}

Result show_counters(const Session& session, Context& context) {
    TRY_SET(const auto counters, session.list<kxfer_info_counter>(KXFER_INFO_COUNTERS));
    Record record;
    for (const kxfer_info_counter& counter : counters)
        record.add(text_of(counter.name), Value(uint64_t{counter.value}), Show::everywhere,
                   text_of(counter.name));
    context.out.record(record);
    return exit_ok;
}

Words device_flags(uint32_t flags) {
    Words words;
    if (flags & KXFER_DEVICE_IWARP) words.emplace_back("iWARP");
    if (flags & KXFER_DEVICE_ROCE) words.emplace_back("RoCE");
    if (flags & KXFER_DEVICE_IB) words.emplace_back("InfiniBand");
    if (flags & KXFER_DEVICE_VIRT_DMA) words.emplace_back("software");
    if (flags & KXFER_DEVICE_ATOMIC) words.emplace_back("atomics");
    if (!(flags & KXFER_DEVICE_USABLE)) words.emplace_back("unusable");
    return words;
}

Result show_device(const Session& session, const std::string& name, Context& context) {
    TRY_SET(const auto devices, session.list<kxfer_info_device>(KXFER_INFO_DEVICES));
    const auto device = std::find_if(devices.begin(), devices.end(),
                                     [&](const auto& one) { return text_of(one.name) == name; });
    if (device == devices.end()) return failed(no_object(name));
    TRY_SET(const auto rows, link_rows(session, known_devices(), name));
    context.out.record(Record()
                           .add("device", name)
                           .add("flags", device_flags(device->flags))
                           .add("nr_links", device->nr_links, Show::everywhere, "number of links")
                           .add("mappings", device->nr_mappings)
                           .add("links", Value(rows)));
    return exit_ok;
}

Result show_link(const Session& session, uint64_t id, Context& context) {
    TRY_SET(const auto record, link_record(session, known_devices(), id));
    context.out.record(record);
    return exit_ok;
}

// The links of a view that belong to the object; of no object: all.
std::vector<LinkRate> rates_of(const std::string& object, const View& before, const View& now) {
    auto rates = link_rates(before, now);
    const auto link = link_number(object);
    std::erase_if(rates, [&](const LinkRate& rate) {
        return link ? rate.link.id != *link : !object.empty() && text_of(rate.link.device) != object;
    });
    return rates;
}

bool is_there(const std::string& object, const View& view) {
    if (const auto link = link_number(object)) return find_by_id(view.links, *link) != nullptr;
    return object.empty() || std::any_of(view.devices.begin(), view.devices.end(),
                                         [&](const auto& device) { return text_of(device.name) == object; });
}

void show_rates(const std::string& object, const View& before, const View& now, Context& context) {
    const std::string time = utc_text();
    Record record = object.empty() ? counter_rates(before, now) : Record();
    const size_t width = entry_width();
    std::string text = object.empty() ? dated(time, node_line(before, now), width) : "";
    if (!object.empty()) {
        Table rows;
        for (const LinkRate& rate : rates_of(object, before, now)) {
            rows.push_back(link_rate_row(rate));
            text += (text.empty() ? "" : "\n") + dated(time, link_line(rate), width);
        }
        if (rows.empty()) text = time + "  no links";
        record.add("links", Value(rows));
    }
    record.add("time", time.c_str());
    record.add("interval", Nanoseconds{static_cast<double>(now.at_ns - before.at_ns)});
    context.out.sample(record, text);
}

Result show_intervals(const StatOptions& options, const Session& session, Context& context) {
    const auto interval = std::chrono::nanoseconds(static_cast<int64_t>(options.interval_seconds * 1e9));
    catch_interrupts();
    TRY_SET(View before, view_of(session));
    if (!is_there(options.object, before)) return failed(no_object(options.object));
    for (uint64_t nr = 0; options.count == 0 || nr < options.count; nr++) {
        wait_events(-1, 0, interval);
        if (interrupted()) return interrupt_status();
        TRY_SET(View now, view_of(session));
        show_rates(options.object, before, now, context);
        if (context.out.write_error() != 0) break;
        before = std::move(now);
    }
    return exit_ok;
}

Result show_metrics(const StatOptions& options, const Session& session, Context& context) {
    TRY_SET(const View view, view_of(session));
    const auto text =
        metrics_text(view, options.openmetrics ? MetricsFormat::openmetrics : MetricsFormat::prometheus);
    if (options.output.empty())
        context.out.answer(text);
    else
        TRY(replace_file(options.output, text));
    return exit_ok;
}

Result run_stat(const StatOptions& options, Context& context) {
    if (options.count != 0 && options.interval_seconds == 0)
        return wrong_usage("kxfer stat --count needs an interval", "such as: --interval 1");
    const bool metrics = options.openmetrics || options.prometheus;
    if (!options.output.empty() && !metrics)
        return wrong_usage("kxfer stat --output writes metrics only", "add --prometheus or --openmetrics");
    TRY_SET(auto session, open_session());
    if (metrics) return show_metrics(options, session, context);
    if (options.interval_seconds != 0) return show_intervals(options, session, context);
    if (options.object.empty()) return show_counters(session, context);
    if (const auto link = link_number(options.object)) return show_link(session, *link, context);
    return show_device(session, options.object, context);
}

} // namespace

void setup_stat(CLI::App& app, Program& program) {
    const auto options = std::make_shared<StatOptions>();
    CLI::App& command =
        add_command(app, "stat", "counters of the module, of a device or of a link", "kxfer stat rxe0");
    CLI::Option* object =
        command.add_option("object", options->object, "name of an RDMA device or number of a link")
            ->type_name("DEV|LINK");
    CLI::Option* interval =
        command.add_option("-i,--interval", options->interval_seconds, "rates, so many seconds apart")
            ->type_name("SECONDS")
            ->check(from_to(0.05, 3600.0));
    command.add_option("-c,--count", options->count, "end after so many intervals (default: Ctrl-C)")
        ->type_name("N")
        ->check(from_to(1, 1000000000));
    CLI::Option* openmetrics = command.add_flag("--openmetrics", options->openmetrics,
                                                "counters, links and sessions as OpenMetrics 1.0");
    CLI::Option* prometheus =
        command.add_flag("--prometheus", options->prometheus,
                         "the same in the text format that node_exporter reads from files");
    for (CLI::Option* format : {openmetrics, prometheus}) format->excludes(object)->excludes(interval);
    openmetrics->excludes(prometheus);
    command.add_option("--output", options->output, "replace this file by the metrics (by a rename)")
        ->type_name("FILE");
    on_run(command, program, options, run_stat);
}

} // namespace kxfer::cli
