// SPDX-License-Identifier: MIT
#include "cli/doctor/checks.hpp"
#include "cli/node/keys.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>

namespace kxfer::cli {

namespace {

// MTU of an interface for an IB MTU of 4096 with RoCE v2's headers.
constexpr uint32_t netdev_mtu_for_4096 = 4200;

// An interface for a soft RoCE device: one that is up and not a loopback.
std::string some_netdev() {
    ifaddrs* list = nullptr;
    std::string name = "eth0";
    if (getifaddrs(&list) != 0) return name;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
    for (const ifaddrs* at = list; at; at = at->ifa_next)
        if ((at->ifa_flags & IFF_UP) && !(at->ifa_flags & IFF_LOOPBACK)) return at->ifa_name;
    return name;
}

Check devices_check(const Patient& patient) {
    if (!patient.node_failure.what.empty())
        return {"RDMA devices", Health::mend, patient.node_failure.text(), "modprobe ib_core"};
    if (patient.node.devices.empty())
        return {
            "RDMA devices", Health::mend, "none",
            fmt::format("soft RoCE on an interface: rdma link add rxe0 type rxe netdev {}", some_netdev())};
    std::string names;
    for (const auto& device : patient.node.devices)
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", device.core.name,
                             device.core.driver.empty() ? "driver unknown" : device.core.driver);
    return {"RDMA devices", Health::ok, names, ""};
}

Check attached_check(const DeviceFacts& device) {
    const std::string name = device.core.name + " and kxfer.ko";
    if (!device.module)
        return {name, Health::mend, "kxfer.ko has not attached to it", "see why: dmesg | grep kxfer"};
    if (!(device.module->flags & KXFER_DEVICE_USABLE))
        return {name, Health::mend, "the device lacks what kxfer needs (fast registration of memory)",
                "use another device; see: dmesg | grep kxfer"};
    return {name, Health::ok, fmt::format("attached, {} links", device.module->nr_links), ""};
}

Check state_check(const std::string& name, const PortFacts& port) {
    const std::string state = netlink::port_state_name(port.core.state);
    if (port.active()) return {name + " state", Health::ok, state, ""};
    return {name + " state", Health::mend, state,
            port.core.netdev.empty() ? "is the cable in and a subnet manager running?"
                                     : fmt::format("ip link set {} up", port.core.netdev)};
}

Check address_check(const std::string& name, const DeviceFacts& device, const PortFacts& port) {
    const auto texts = port.address_texts();
    if (port.core.netdev.empty())
        return {name + " address", Health::hint, "no network interface belongs to it",
                device.core.protocol == "ib" ? "modprobe ib_ipoib"
                                             : "in this network namespace there is none"};
    if (texts.empty())
        return {name + " address", Health::mend, fmt::format("interface {} has no address", port.core.netdev),
                fmt::format("ip addr add ADDRESS/PREFIX dev {}", port.core.netdev)};
    const auto gids = port.verbs ? port.verbs->gids.size() : 0;
    const bool wants_gid = port.verbs && device.core.protocol == "roce";
    if (wants_gid && gids == 0)
        return {name + " address", Health::mend, fmt::format("{}, but the GID table is empty", texts.front()),
                fmt::format("ip link set {0} down; ip link set {0} up", port.core.netdev)};
    return {name + " address", Health::ok,
            wants_gid ? fmt::format("{} on {}, {} GIDs", texts.front(), port.core.netdev, gids)
                      : fmt::format("{} on {}", texts.front(), port.core.netdev),
            ""};
}

Check mtu_check(const std::string& name, const DeviceFacts& device, const PortFacts& port) {
    if (!port.verbs)
        return {name + " MTU", Health::hint, "not known: " + device.verbs_failure, "modprobe ib_uverbs"};
    const uint32_t active = port.verbs->active_mtu;
    if (device.core.protocol != "roce" || port.netdev_mtu == 0)
        return {name + " MTU", Health::ok, fmt::format("{}", device.iwarp() ? port.netdev_mtu : active), ""};
    const std::string finding = fmt::format("{}, interface {}", active, port.netdev_mtu);
    if (active >= 4096) return {name + " MTU", Health::ok, finding, ""};
    return {name + " MTU", Health::hint,
            fmt::format("{}: the largest, 4096, needs {} of the interface and all switches", finding,
                        netdev_mtu_for_4096),
            fmt::format("ip link set {} mtu {}", port.core.netdev, netdev_mtu_for_4096)};
}

/*
 * While the interface is down, a management packet (a DREQ, say) that finds no route puts QP 1 of rxe
 * into an error state, which ib_mad does not see. The kernel shows no sign of it but this count.
 */
Check management_check(const std::string& name, const DeviceFacts& device, const PortFacts& port) {
    return {name + " QP 1", Health::hint,
            fmt::format("the port went down {} since {} was made, and rxe may have lost the QP by which "
                        "connections are made",
                        port.nr_downs == 1 ? "once" : fmt::format("{} times", port.nr_downs),
                        device.core.name),
            fmt::format("if connecting gets no answer (ETIMEDOUT), make it again, which ends its links: rdma "
                        "link del {0}; rdma link add {0} type rxe netdev {1}",
                        device.core.name, port.core.netdev)};
}

// Names of this node's exports that this user can see.
std::vector<std::string> export_names(const Session& session) {
    std::vector<std::string> names;
    const auto exports = session.list<kxfer_info_export>(KXFER_INFO_EXPORTS);
    if (!exports) return names;
    for (const auto& one : *exports)
        if (const std::string name = text_of(one.name); name != KXFER_PING_NAME) names.push_back(name);
    return names;
}

Check no_listeners(const std::vector<std::string>& exported) {
    if (!exported.empty())
        return {
            "listeners", Health::mend,
            fmt::format("none, so no peer can reach what is exported here: {}", fmt::join(exported, ", ")),
            "kxfer listen add ADDRESS"};
    return {"listeners", Health::hint, "none: no peer can reach this node, it can reach others",
            "kxfer listen add ADDRESS, or kxfer serve"};
}

Check listeners_check(const Patient& patient) {
    const auto listeners = patient.session->list<kxfer_info_listener>(KXFER_INFO_LISTENERS);
    if (!listeners) return {"listeners", Health::hint, listeners.error().text(), ""};
    const auto exported = export_names(*patient.session);
    const auto active = [](const auto& listener) { return listener.active != 0; };
    std::string texts;
    bool keyless = false;
    for (const auto& listener : *listeners) {
        texts += fmt::format("{}{}{}{}", texts.empty() ? "" : ", ", to_string(listener.addr),
                             listener.active ? "" : " (inactive: its device is gone)",
                             listener.nr_keys ? "" : " (no key)");
        keyless |= listener.nr_keys == 0;
    }
    if (listeners->empty()) return no_listeners(exported);
    if (!exported.empty() && std::none_of(listeners->begin(), listeners->end(), active))
        return {"listeners", Health::mend, texts + ": no peer can reach what is exported here",
                "see: kxfer device list; or: kxfer listen add ADDRESS"};
    if (keyless)
        return {"listeners", Health::hint, texts + ": without a key " + believes_all,
                "kxfer listen add ADDRESS --key NAME, or kxfer serve --key NAME; see: kxfer key add --help"};
    return {"listeners", Health::ok, texts, ""};
}

void add_port(std::vector<Check>& checks, const DeviceFacts& device, const PortFacts& port) {
    const std::string name = fmt::format("{} port {}", device.core.name, port.core.index);
    checks.push_back(state_check(name, port));
    checks.push_back(address_check(name, device, port));
    checks.push_back(mtu_check(name, device, port));
    if (port.nr_downs != 0) checks.push_back(management_check(name, device, port));
}

} // namespace

std::vector<Check> device_checks(const Patient& patient) {
    std::vector<Check> checks{devices_check(patient)};
    for (const auto& device : patient.node.devices) {
        if (patient.node.module_answers) checks.push_back(attached_check(device));
        for (const auto& port : device.ports) add_port(checks, device, port);
    }
    if (patient.session) checks.push_back(listeners_check(patient));
    return checks;
}

} // namespace kxfer::cli
