// SPDX-License-Identifier: MIT
//
// kxfer device list | show DEV: the RDMA devices of this node and what they
// can do. Works without the module, and says where the module would add facts.

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/doctor/commands.hpp"
#include "cli/node/devices.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* make_one = "soft RoCE needs only a network interface: "
                                 "rdma link add rxe0 type rxe netdev eth0";

struct ListOptions {};
struct ShowOptions {
    std::string device;
};

// Whether kxfer.ko is attached: yes, no, or unknown because it does not answer.
Value attachment(const NodeFacts& node, const DeviceFacts& device) {
    if (!node.module_answers) return None{};
    if (!device.module) return std::string("not attached");
    return std::string(device.module->flags & KXFER_DEVICE_USABLE ? "attached" : "unusable");
}

// MTUs are shown in bytes everywhere: "4096", not "4 KiB".
void add_mtu(Record& record, const std::string& key, uint32_t bytes, const std::string& label) {
    record.add(key, Bytes{bytes}, Show::json_only)
        .add(key, bytes ? Value(uint64_t{bytes}) : Value(None{}), Show::text_only, label);
}

Value optional_number(const auto& number) { return number ? Value(uint64_t{*number}) : Value(None{}); }

Record list_row(const NodeFacts& node, const DeviceFacts& device, const PortFacts& port) {
    const auto addresses = port.address_texts();
    Record row;
    row.add("device", device.core.name)
        .add("driver", device.core.driver)
        .add("protocol", protocol_name(device.core.protocol))
        .add("port", port.core.index)
        .add("state", netlink::port_state_name(port.core.state))
        .add("netdev", port.core.netdev);
    add_mtu(row, "mtu", port.verbs ? port.verbs->active_mtu : 0, "MTU");
    return row.add("address", addresses.empty() ? "" : addresses.front(), Show::text_only)
        .add("addresses", Value(Words(addresses)), Show::json_only)
        .add("kxfer", attachment(node, device));
}

Result run_list(const ListOptions&, Context& context) {
    TRY_SET(const auto node, find_devices());
    Table rows;
    for (const auto& device : node.devices)
        for (const auto& port : device.ports) rows.push_back(list_row(node, device, port));
    context.out.table(rows, std::string("no RDMA devices; ") + make_one);
    return exit_ok;
}

std::string gid_form(const verbs::Gid& gid) {
    const std::string ipv4 = verbs::gid_ipv4_text(gid);
    return ipv4.empty() ? verbs::gid_text(gid) : ipv4;
}

Table gid_table(const verbs::Port& port) {
    Table rows;
    for (const auto& gid : port.gids)
        rows.push_back(Record()
                           .add("index", gid.index)
                           .add("type", verbs::gid_type_name(gid.type))
                           .add("gid", verbs::gid_text(gid))
                           .add("address", gid.type == verbs::GidType::iwarp ? "" : gid_form(gid)));
    return rows;
}

Words pkey_words(const verbs::Port& port) {
    Words words;
    for (const uint16_t pkey : port.pkeys) words.push_back(fmt::format("0x{:04x}", pkey));
    return words;
}

Record port_record(const PortFacts& port) {
    Record record;
    const std::string state = netlink::port_state_name(port.core.state);
    const std::string physical = netlink::physical_state_name(port.core.physical_state);
    record.add("state", fmt::format("{}, {}", state, physical), Show::text_only)
        .add("state", state, Show::json_only)
        .add("physical_state", physical, Show::json_only);
    if (port.core.lid) {
        record.add("lid", optional_number(port.core.lid), Show::everywhere, "LID")
            .add("sm_lid", optional_number(port.core.sm_lid), Show::everywhere, "SM LID")
            .add("lmc", optional_number(port.core.lmc), Show::everywhere, "LMC")
            .add("subnet_prefix", netlink::guid_text(port.core.subnet_prefix.value_or(0)));
    }
    if (port.verbs) {
        add_mtu(record, "mtu_active", port.verbs->active_mtu, "active MTU");
        add_mtu(record, "mtu_max", port.verbs->max_mtu, "largest MTU");
        record.add("max_message", Bytes{port.verbs->max_message_bytes}, Show::everywhere, "longest message")
            .add("link_layer", port.verbs->link_layer);
    }
    record.add("netdev", port.core.netdev, Show::everywhere, "network interface");
    if (!port.core.netdev.empty()) {
        add_mtu(record, "netdev_mtu", port.netdev_mtu, "interface MTU");
        record.add("netdev_state", port.netdev_state, Show::everywhere, "interface state")
            .add("addresses", Value(Words(port.address_texts())), Show::everywhere, "addresses");
    }
    if (port.verbs) {
        if (!port.verbs->pkeys.empty())
            record.add("pkeys", Value(pkey_words(*port.verbs)), Show::everywhere, "P_Keys");
        record.add("gids", Value(gid_table(*port.verbs)), Show::everywhere, "GIDs");
    }
    return record;
}

// The device as kernel consumers see it; user space may see less.
Record module_record(const kxfer_info_device& device) {
    return Record()
        .add("usable", (device.flags & KXFER_DEVICE_USABLE) != 0)
        .add("virtual_dma", (device.flags & KXFER_DEVICE_VIRT_DMA) != 0, Show::everywhere, "software DMA")
        .add("max_send_sge", device.max_send_sge, Show::everywhere, "SGE of a SEND or WRITE")
        .add("max_read_sge", device.max_sge_rd, Show::everywhere, "SGE of a READ")
        .add("max_qp_wr", device.max_qp_wr, Show::everywhere, "work requests of a queue")
        .add("max_cqe", device.max_cqe, Show::everywhere, "CQ entries")
        .add("max_fast_reg_pages", device.max_fast_reg_pages, Show::everywhere,
             "pages of a fast registration")
        .add("max_reads_served", device.max_qp_rd_atom, Show::everywhere, "READs served at once")
        .add("max_reads_issued", device.max_qp_init_rd_atom, Show::everywhere, "READs issued at once")
        .add("completion_vectors", device.nr_comp_vectors, Show::everywhere, "completion vectors")
        .add("max_message", Bytes{device.max_msg_bytes}, Show::everywhere, "longest message")
        .add("links", device.nr_links, Show::everywhere, "links")
        .add("mappings", device.nr_mappings, Show::everywhere, "mapped regions");
}

Record verbs_record(const verbs::Device& device) {
    return Record()
        .add("max_qp", device.max_qp, Show::everywhere, "QPs")
        .add("max_qp_wr", device.max_qp_wr, Show::everywhere, "work requests of a queue")
        .add("max_sge", device.max_sge, Show::everywhere, "SGE of a work request")
        .add("max_sge_read", device.max_sge_read, Show::everywhere, "SGE of a READ")
        .add("max_cq", device.max_cq, Show::everywhere, "CQs")
        .add("max_cqe", device.max_cqe, Show::everywhere, "CQ entries")
        .add("max_mr", device.max_mr, Show::everywhere, "memory regions")
        .add("max_mr_length", Bytes{device.max_mr_bytes}, Show::json_only)
        .add("max_mr_length",
             device.max_mr_bytes == UINT64_MAX ? "unlimited" : human_bytes(device.max_mr_bytes),
             Show::text_only, "longest memory region")
        .add("max_srq", device.max_srq, Show::everywhere, "shared receive queues")
        .add("max_reads_served", device.max_reads_served, Show::everywhere, "READs served at once")
        .add("max_reads_issued", device.max_reads_issued, Show::everywhere, "READs issued at once")
        .add("completion_vectors", device.nr_completion_vectors, Show::everywhere, "completion vectors")
        .add("atomics", device.atomics);
}

Value resources_value(const DeviceFacts& device, Record& into) {
    std::vector<std::string> words;
    for (const auto& resource : device.resources) {
        into.add(resource.kind, resource.count);
        words.push_back(fmt::format("{} {}", resource.count, resource.kind));
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

Record show_record(const NodeFacts& node, const DeviceFacts& device) {
    Record resources;
    const Value in_words = resources_value(device, resources);
    Record record;
    record.add("device", device.core.name)
        .add("driver", device.core.driver)
        .add("protocol", protocol_name(device.core.protocol))
        .add("node_type", netlink::node_type_name(device.core.node_type))
        .add("node_guid", netlink::guid_text(device.core.node_guid), Show::everywhere, "node GUID")
        .add("system_image_guid", netlink::guid_text(device.core.system_image_guid), Show::everywhere,
             "system image GUID")
        .add("firmware", !device.core.firmware.empty() ? device.core.firmware
                         : device.verbs                ? device.verbs->firmware
                                                       : "")
        .add("in_use", in_words, Show::text_only, "in use")
        .add("kxfer", attachment(node, device), Show::everywhere, "kxfer.ko")
        .add("resources", Value(std::make_shared<Record>(resources)), Show::json_only);
    Table ports;
    for (const auto& port : device.ports) {
        const Record facts = port_record(port);
        ports.push_back(Record().add("port", port.core.index));
        for (const Field& field : facts.fields()) ports.back().add(field.key, field.value, field.show);
        record.add("port", Value(std::make_shared<Record>(facts)), Show::text_only,
                   fmt::format("port {}", port.core.index));
    }
    record.add("ports", Value(ports), Show::json_only);
    if (device.verbs)
        record.add("user_verbs", Value(std::make_shared<Record>(verbs_record(*device.verbs))),
                   Show::everywhere, "to user-space verbs");
    else
        record.add("user_verbs_failure", device.verbs_failure, Show::everywhere, "no user-space verbs");
    if (device.module)
        record.add("kernel_verbs", Value(std::make_shared<Record>(module_record(*device.module))),
                   Show::everywhere, "to kxfer.ko");
    return record;
}

Result run_show(const ShowOptions& options, Context& context) {
    TRY_SET(const auto node, find_devices());
    std::vector<std::string> names;
    for (const auto& device : node.devices) {
        if (device.core.name == options.device) {
            context.out.record(show_record(node, device));
            if (!node.module_answers)
                context.out.note("kxfer.ko does not answer, so what kernel consumers are told is missing; "
                                 "see: kxfer doctor");
            return exit_ok;
        }
        names.push_back(device.core.name);
    }
    const std::string hint =
        names.empty() ? make_one : fmt::format("devices are: {}", fmt::join(names, ", "));
    return failed(Error("no RDMA device", options.device, ENODEV, hint), exit_no_device);
}

} // namespace

void setup_device(CLI::App& app, Program& program) {
    CLI::App& device =
        add_command(app, "device", "RDMA devices and what they can do", "kxfer device show rxe0");
    device.require_subcommand(1);
    CLI::App& list = add_command(device, "list", "one line a port", "kxfer device list");
    on_run(list, program, std::make_shared<ListOptions>(), run_list);
    const auto options = std::make_shared<ShowOptions>();
    CLI::App& show = add_command(device, "show", "all that is known of a device", "kxfer device show rxe0");
    show.add_option("DEV", options->device, "as `kxfer device list` names it")->type_name("DEV")->required();
    on_run(show, program, options, run_show);
}

} // namespace kxfer::cli
