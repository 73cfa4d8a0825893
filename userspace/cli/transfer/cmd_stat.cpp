// SPDX-License-Identifier: MIT
//
// kxfer stat [DEV|LINK]: the counters of the module, or the activity of one device
// or link.

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/node/device_file.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

struct StatOptions {
    std::string object;
};

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
    if (device == devices.end())
        return failed(Error("cannot show", name, ENOENT, "see: kxfer device list, kxfer link list",
                            "no RDMA device of that name and no number of a link"));
    TRY_SET(const auto rows, link_rows(session, known_devices(), name));
    context.out.record(Record()
                           .add("device", name)
                           .add("flags", device_flags(device->flags))
                           .add("nr_links", device->nr_links, Show::everywhere, "links in all")
                           .add("mappings", device->nr_mappings)
                           .add("links", Value(rows)));
    return exit_ok;
}

Result show_link(const Session& session, uint64_t id, Context& context) {
    TRY_SET(const auto record, link_record(session, known_devices(), id));
    context.out.record(record);
    return exit_ok;
}

Result run_stat(const StatOptions& options, Context& context) {
    TRY_SET(auto session, open_session());
    const std::string& object = options.object;
    if (object.empty()) return show_counters(session, context);
    uint64_t link = 0;
    const auto [end, error] = std::from_chars(object.data(), object.data() + object.size(), link);
    if (error == std::errc() && *end == '\0') return show_link(session, link, context);
    return show_device(session, object, context);
}

} // namespace

void setup_stat(CLI::App& app, Program& program) {
    const auto options = std::make_shared<StatOptions>();
    CLI::App& command =
        add_command(app, "stat", "counters of the module, of a device or of a link", "kxfer stat rxe0");
    command.add_option("object", options->object, "name of an RDMA device or number of a link")
        ->type_name("DEV|LINK");
    on_run(command, program, options, run_stat);
}

} // namespace kxfer::cli
