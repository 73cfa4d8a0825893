// SPDX-License-Identifier: MIT
#include "verbs/local_port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <netinet/in.h>

#include "base/try.hpp"
#include "verbs/connection.hpp"

namespace kxfer::verbs {

namespace {

// The address as a GID table has it: IPv4 mapped into IPv6.
std::array<uint8_t, 16> gid_of(const sockaddr_storage& address) {
    std::array<uint8_t, 16> gid{};

    if (address.ss_family == AF_INET6) {
        memcpy(gid.data(), &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr, gid.size());
    } else {
        gid[10] = gid[11] = 0xff;
        memcpy(&gid[12], &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, 4);
    }
    return gid;
}

enum class Kind : uint8_t { ipv4, link_local, ipv6 };

Kind kind_of(const Gid& gid) {
    in6_addr address;

    memcpy(&address, gid.bytes.data(), sizeof(address));
    if (IN6_IS_ADDR_V4MAPPED(&address)) return Kind::ipv4;
    return IN6_IS_ADDR_LINKLOCAL(&address) ? Kind::link_local : Kind::ipv6;
}

bool is_alike(const Gid& a, const Gid& b) { return a.type == b.type && kind_of(a) == kind_of(b); }

const Gid* choose(const Port& port, const std::array<uint8_t, 16>& bytes, std::optional<uint32_t> index,
                  const std::optional<Gid>& like) {
    const Gid* found = nullptr;

    for (const auto& gid : port.gids) {
        if (index && gid.index == *index) return &gid;
        if (index || (like ? !is_alike(gid, *like) : gid.bytes != bytes)) continue;
        const bool better = like ? gid.bytes == bytes : gid.type == GidType::roce_v2;
        if (!found || better) found = &gid;
    }
    return found;
}

} // namespace

tl::expected<void, Error> bind_device(rdma_cm_id* id, const sockaddr_storage& address) {
    sockaddr_storage any_port = address;
    const auto on = address_text(reinterpret_cast<const sockaddr*>(&address));

    if (address.ss_family == AF_INET6)
        reinterpret_cast<sockaddr_in6*>(&any_port)->sin6_port = 0;
    else
        reinterpret_cast<sockaddr_in*>(&any_port)->sin_port = 0;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any_port)) || !id->verbs)
        return tl::unexpected(Error("no RDMA device has the address", on, ENODEV,
                                    "is the address on an RDMA device? try: kxfer device list"));
    return {};
}

tl::expected<LocalPort, Error> find_local_port(rdma_cm_id* id, const sockaddr_storage& address,
                                               std::optional<uint32_t> index,
                                               const std::optional<Gid>& like) {
    const std::string name = ibv_get_device_name(id->verbs->device);
    ibv_port_attr attributes{};
    LocalPort local;

    if (id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
        return tl::unexpected(Error("an explicit connection needs InfiniBand or RoCE:", name, EOPNOTSUPP,
                                    "use --connect rdma-cm",
                                    "iWARP: a QP has no QPN, PSN or GID to exchange; its device connects "
                                    "it over TCP when rdma_cm says so"));
    local.number = id->port_num;
    if (int error = ibv_query_port(id->verbs, local.number, &attributes))
        return tl::unexpected(Error("cannot query the port", name, error));
    local.lid = attributes.lid;
    local.mtu = attributes.active_mtu;
    local.global = attributes.link_layer == IBV_LINK_LAYER_ETHERNET || index;
    if (!local.global) return local;
    TRY_SET(const auto device, query_device(name));
    const auto port = std::find_if(device.ports.begin(), device.ports.end(),
                                   [&](const Port& one) { return one.index == local.number; });
    const Gid* gid = port == device.ports.end() ? nullptr : choose(*port, gid_of(address), index, like);
    if (!gid)
        return tl::unexpected(Error(index ? fmt::format("the GID table has no entry {} at", *index)
                                          : "no GID for the address at",
                                    fmt::format("{} port {}", name, local.number), EINVAL,
                                    fmt::format("see: kxfer device show {}", name)));
    local.gid = *gid;
    return local;
}

} // namespace kxfer::verbs
