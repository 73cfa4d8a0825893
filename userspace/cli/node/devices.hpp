// SPDX-License-Identifier: MIT
//
// All facts about the RDMA devices of this node, from all sources: RDMA netlink,
// user-space verbs, the network interfaces and kxfer.ko. Only netlink has to
// answer; facts that the others lack are empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <linux/kxfer.h>
#include <sys/socket.h>
#include <tl/expected.hpp>

#include <kxfer/error.hpp>

#include "netlink/rdma.hpp"
#include "verbs/device.hpp"

namespace kxfer::cli {

struct PortFacts {
    netlink::Port core;
    std::optional<verbs::Port> verbs;
    uint32_t netdev_mtu = 0;                 // 0: no interface, or not in this network namespace
    std::string netdev_state;                // up, down, unknown
    uint64_t nr_downs = 0;                   // of rxe: how often the port went down; else 0
    std::vector<sockaddr_storage> addresses; // of the interface: IPv4 first, link-local last

    bool active() const { return netlink::port_state_name(core.state) == "ACTIVE"; }
    std::vector<std::string> address_texts() const;
};

struct DeviceFacts {
    netlink::Device core;
    std::vector<netlink::Resource> resources;
    std::optional<verbs::Device> verbs;
    std::string verbs_failure; // why `verbs` is empty
    std::optional<kxfer_info_device> module;
    std::vector<PortFacts> ports;

    bool iwarp() const { return core.protocol == "iw"; }
    bool software() const { return core.driver == "rxe" || core.driver == "siw"; }
};

struct NodeFacts {
    std::vector<DeviceFacts> devices;
    bool module_answers = false; // false: the devices it has attached to are unknown
};

tl::expected<NodeFacts, Error> find_devices();
// The devices; empty if they cannot be listed.
std::vector<DeviceFacts> known_devices();

// IB, RoCE or iWARP for ib, roce or iw of `rdma`.
std::string protocol_name(const std::string& protocol);
std::string socket_address_text(const sockaddr_storage& address);

} // namespace kxfer::cli
