// SPDX-License-Identifier: MIT
#include "cli/measure/provenance.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kxfer::cli {

namespace {

const PortFacts* active_port(const DeviceFacts& device) {
    for (const auto& port : device.ports)
        if (port.active()) return &port;
    return nullptr;
}

std::string gid_types(const PortFacts& port) {
    std::set<std::string> types;
    if (port.verbs)
        for (const auto& gid : port.verbs->gids) types.insert(verbs::gid_type_name(gid.type));
    return fmt::format("{}", fmt::join(types, " or "));
}

// MTUs are shown in bytes everywhere: "4096", not "4 KiB".
void add_mtu(Record& record, const std::string& key, uint32_t bytes, const std::string& label) {
    record.add(key, bytes, Show::text_only, label).add(key, Bytes{bytes}, Show::json_only);
}

// The link may be older than the port's MTU.
std::string path_mtu_text(uint32_t path_mtu, uint32_t of_port) {
    if (!of_port || path_mtu == of_port) return std::to_string(path_mtu);
    return fmt::format("{} (the port's is {} now)", path_mtu, of_port);
}

void add_connection(Record& record, const bench::Connection& connection, uint32_t port_mtu) {
    const auto& [path_mtu, tos, gid_type] = connection;
    record.add("path_mtu_bytes", path_mtu ? Value(uint64_t{path_mtu}) : Value(None{}), Show::json_only)
        .add("tos", tos ? Value(uint64_t{*tos}) : Value(None{}), Show::json_only);
    if (path_mtu) record.add("path_mtu", path_mtu_text(path_mtu, port_mtu), Show::text_only, "path MTU");
    if (tos) record.add("tos", *tos, Show::text_only, "type of service");
}

void add_port(Record& record, const PortFacts& port, const std::string& gid_type) {
    record.add("port", port.core.index, Show::json_only)
        .add("netdev", port.core.netdev, Show::everywhere, "network interface")
        .add("gid_type", gid_type.empty() ? gid_types(port) : gid_type, Show::everywhere, "GID type");
    add_mtu(record, "netdev_mtu", port.netdev_mtu, "interface MTU");
    if (port.verbs) record.add("mtu_max", Bytes{port.verbs->max_mtu}, Show::json_only);
}

void add_device(Record& record, const DeviceFacts& device, const bench::Connection& connection) {
    record.add("device", fmt::format("{} ({})", device.core.name, device.core.driver), Show::text_only)
        .add("device", device.core.name, Show::json_only)
        .add("driver", device.core.driver, Show::json_only)
        .add("protocol", protocol_name(device.core.protocol), Show::json_only)
        .add("firmware", device.core.firmware, Show::json_only);
    add_mtu(record, "mtu", mtu_of(device), "MTU");
    add_connection(record, connection, mtu_of(device));
    if (const auto* port = active_port(device)) add_port(record, *port, connection.gid_type);
}

void add_peer_node(Record& record, const bench::PeerNode& node) {
    record.add("peer_kernel", node.kernel, Show::everywhere, "peer's kernel")
        .add("peer_cpu", node.cpu, Show::everywhere, "peer's CPU")
        .add("peer_module", "kxfer.ko " + node.module, Show::everywhere, "peer's module")
        .add("peer_module_srcversion", node.srcversion, Show::json_only);
}

} // namespace

void add_provenance(Record& record, const Provenance& from) {
    const auto& environment = from.environment;
    record.add("kernel", environment.kernel + ' ' + environment.architecture)
        .add("cpu", fmt::format("{} x {}", environment.nr_cpus, environment.cpu_model), Show::everywhere,
             "CPU")
        .add("affinity", environment.affinity, Show::everywhere, "may use CPUs")
        .add("virtual_machine", virtual_machine_text(environment))
        .add("clock", environment.clock_source);
    add_device(record, from.device, from.connection);
    record.add("peer", from.peer);
    if (from.peer_node) add_peer_node(record, *from.peer_node);
    if (from.module_version.empty()) return;
    record.add("module", "kxfer.ko " + from.module_version)
        .add("module_srcversion", environment.module_srcversion, Show::json_only);
}

void add_conditions(Record& record, const bench::Conditions& conditions) {
    record
        .add("steal_percent", conditions.steal ? Value(*conditions.steal * 100) : Value(None{}),
             Show::json_only)
        .add("steal_unknown", conditions.steal ? "" : conditions.no_steal, Show::json_only)
        .add("steal_percent",
             conditions.steal ? Value(*conditions.steal * 100)
                              : Value("not known: " + conditions.no_steal + "; verdicts do not heed it"),
             Show::text_only, "% of a CPU taken by the host")
        .add("cpu_frequency_min_khz", conditions.min_khz ? Value(conditions.min_khz) : Value(None{}),
             Show::json_only)
        .add("cpu_frequency_max_khz", conditions.max_khz ? Value(conditions.max_khz) : Value(None{}),
             Show::json_only);
}

void add_registration(Record& record, const bench::Registration& cost) {
    record.add("local", Nanoseconds{cost.local_ns})
        .add("grant", Nanoseconds{cost.grant_ns.value_or(NAN)})
        .add("length", Bytes{cost.bytes});
}

std::string registration_text(const bench::Registration& cost) {
    std::string text = "local " + human_nanoseconds(cost.local_ns);
    if (cost.grant_ns) text += ", grant " + human_nanoseconds(*cost.grant_ns);
    return text + " of " + human_bytes(cost.bytes);
}

uint32_t mtu_of(const DeviceFacts& device) {
    const auto* port = active_port(device);
    return port && port->verbs ? port->verbs->active_mtu : 0;
}

std::string virtual_machine_text(const bench::Environment& environment) {
    return environment.machine.empty() ? "none" : environment.machine;
}

} // namespace kxfer::cli
