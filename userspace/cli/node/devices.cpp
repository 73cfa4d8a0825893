// SPDX-License-Identifier: MIT
#include "cli/node/devices.hpp"

#include <algorithm>
#include <fstream>
#include <memory>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <kxfer/kxfer.hpp>
#include <net/if.h>
#include <netinet/in.h>

#include "base/try.hpp"

namespace kxfer::cli {

namespace {

std::string read_word(const std::string& path) {
    std::ifstream file(path);
    std::string word;
    file >> word;
    return word;
}

// Order of addresses for connecting: IPv4 first, link-local only if there is no other.
int rank(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET) return 0;
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? 2 : 1;
}

std::vector<sockaddr_storage> addresses_of(const std::string& netdev) {
    std::vector<sockaddr_storage> addresses;
    ifaddrs* list = nullptr;

    if (netdev.empty() || getifaddrs(&list) != 0) return addresses;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
    for (const ifaddrs* at = list; at; at = at->ifa_next) {
        if (!at->ifa_addr || netdev != at->ifa_name) continue;
        const sa_family_t family = at->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        sockaddr_storage address = {};
        memcpy(&address, at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        addresses.push_back(address);
    }
    std::stable_sort(addresses.begin(), addresses.end(),
                     [](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return addresses;
}

PortFacts port_facts(const netlink::Port& core, const std::optional<verbs::Device>& device) {
    PortFacts facts;
    facts.core = core;
    if (device) {
        const auto found = std::find_if(device->ports.begin(), device->ports.end(),
                                        [&](const verbs::Port& port) { return port.index == core.index; });
        if (found != device->ports.end()) facts.verbs = *found;
    }
    if (!core.netdev.empty()) {
        const std::string mtu = read_word("/sys/class/net/" + core.netdev + "/mtu");
        facts.netdev_mtu = mtu.empty() ? 0 : static_cast<uint32_t>(std::stoul(mtu));
        facts.netdev_state = read_word("/sys/class/net/" + core.netdev + "/operstate");
        facts.addresses = addresses_of(core.netdev);
    }
    return facts;
}

// rxe counts this since the device was made.
uint64_t downs_of(const netlink::Device& device, uint32_t port) {
    if (device.driver != "rxe") return 0;
    const std::string downs = read_word(
        fmt::format("/sys/class/infiniband/{}/ports/{}/hw_counters/link_downed", device.name, port));
    return downs.empty() ? 0 : std::stoull(downs);
}

DeviceFacts device_facts(netlink::Device core, netlink::Rdma& rdma,
                         const std::vector<kxfer_info_device>& attached) {
    DeviceFacts facts;
    if (auto resources = rdma.resources(core.index)) facts.resources = std::move(*resources);
    if (auto device = verbs::query_device(core.name))
        facts.verbs = std::move(*device);
    else
        facts.verbs_failure = device.error().text();
    for (const kxfer_info_device& device : attached)
        if (text_of(device.name) == core.name) facts.module = device;
    for (const netlink::Port& port : core.ports) {
        facts.ports.push_back(port_facts(port, facts.verbs));
        facts.ports.back().nr_downs = downs_of(core, port.index);
    }
    facts.core = std::move(core);
    return facts;
}

} // namespace

std::vector<std::string> PortFacts::address_texts() const {
    std::vector<std::string> texts;
    for (const auto& address : addresses) texts.push_back(socket_address_text(address));
    return texts;
}

std::string protocol_name(const std::string& protocol) {
    if (protocol == "ib") return "InfiniBand";
    if (protocol == "roce") return "RoCE";
    if (protocol == "iw") return "iWARP";
    if (protocol == "opa") return "Omni-Path";
    return protocol;
}

std::string socket_address_text(const sockaddr_storage& address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
        return text;
    }
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
    char name[IF_NAMESIZE] = "";
    if (in6.sin6_scope_id == 0 || !if_indextoname(in6.sin6_scope_id, name)) return text;
    return std::string(text) + '%' + name;
}

tl::expected<NodeFacts, Error> find_devices() {
    NodeFacts facts;
    std::vector<kxfer_info_device> attached;

    TRY_SET(auto rdma, netlink::Rdma::open());
    TRY_SET(auto devices, rdma.devices());
    if (const auto session = Session::open()) {
        if (auto list = session->list<kxfer_info_device>(KXFER_INFO_DEVICES)) {
            attached = std::move(*list);
            facts.module_answers = true;
        }
    }
    for (auto& device : devices) facts.devices.push_back(device_facts(std::move(device), rdma, attached));
    return facts;
}

std::vector<DeviceFacts> known_devices() {
    auto node = find_devices();
    return node ? std::move(node->devices) : std::vector<DeviceFacts>();
}

} // namespace kxfer::cli
