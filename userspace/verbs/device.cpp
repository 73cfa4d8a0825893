// SPDX-License-Identifier: MIT
//
// Each query opens the device and closes it again. A table entry that cannot be read (an
// empty GID, a port that has gone) is left out, not an error.

#include "verbs/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "base/try.hpp"

namespace kxfer::verbs {

namespace {

struct CloseDevice {
    void operator()(ibv_context* context) const { ibv_close_device(context); }
};
using Context = std::unique_ptr<ibv_context, CloseDevice>;

Error query_error(const std::string& what, const std::string& name, int error) {
    return Error(what, name, error,
                 "try: ibv_devinfo -d " + name +
                     "; the package ibverbs-providers holds the user-space drivers");
}

tl::expected<Context, Error> open_device(const std::string& name) {
    int count = 0;
    std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(ibv_get_device_list(&count),
                                                                       ibv_free_device_list);

    for (int i = 0; list && i < count; i++) {
        if (name != ibv_get_device_name(list.get()[i])) continue;
        errno = 0;
        Context context(ibv_open_device(list.get()[i]));
        if (!context) return tl::unexpected(query_error("cannot open device", name, errno ? errno : EIO));
        return context;
    }
    return tl::unexpected(query_error("user-space verbs do not know device", name, ENODEV));
}

uint32_t mtu_bytes(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << mtu : 0; }

GidType gid_type(const ibv_gid_entry& entry, bool iwarp) {
    if (iwarp) return GidType::iwarp;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) return GidType::roce_v2;
    return entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1 : GidType::ib;
}

// One call for the whole table: rxe's has 1,024 entries, nearly all of them empty.
std::vector<ibv_gid_entry> query_gid_table(ibv_context* context, size_t length) {
    std::vector<ibv_gid_entry> entries(length);
    const ssize_t count = length ? ibv_query_gid_table(context, entries.data(), length, 0) : 0;

    entries.resize(std::max<ssize_t>(count, 0));
    return entries;
}

std::vector<Gid> gids_of_port(const std::vector<ibv_gid_entry>& table, uint32_t port, bool iwarp) {
    std::vector<Gid> gids;

    for (const auto& entry : table) {
        Gid gid;

        if (entry.port_num != port) continue;
        gid.index = entry.gid_index;
        gid.netdev_index = entry.ndev_ifindex;
        memcpy(gid.bytes.data(), entry.gid.raw, gid.bytes.size());
        gid.type = gid_type(entry, iwarp);
        gids.push_back(gid);
    }
    return gids;
}

std::vector<uint16_t> query_pkeys(ibv_context* context, uint8_t port, int length) {
    std::vector<uint16_t> pkeys;

    for (int i = 0; i < length; i++) {
        __be16 pkey = 0;

        if (ibv_query_pkey(context, port, i, &pkey) == 0 && pkey != 0) pkeys.push_back(be16toh(pkey));
    }
    return pkeys;
}

// The port without its GIDs, which one call reads for all ports; adds up the entries of their table.
Port query_port(ibv_context* context, uint8_t index, bool iwarp, size_t& gid_entries) {
    ibv_port_attr attributes{};
    Port port;

    port.index = index;
    if (ibv_query_port(context, index, &attributes)) return port;
    port.active_mtu = mtu_bytes(attributes.active_mtu);
    port.max_mtu = mtu_bytes(attributes.max_mtu);
    port.max_message_bytes = attributes.max_msg_sz;
    port.link_layer = attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
                      : iwarp                                          ? "Ethernet"
                                                                       : "InfiniBand";
    gid_entries += attributes.gid_tbl_len;
    port.pkeys = query_pkeys(context, index, attributes.pkey_tbl_len);
    return port;
}

std::vector<Port> query_ports(ibv_context* context, uint8_t count, bool iwarp) {
    std::vector<Port> ports;
    size_t gid_entries = 0;

    for (uint8_t index = 1; index <= count; index++)
        ports.push_back(query_port(context, index, iwarp, gid_entries));
    const auto table = query_gid_table(context, gid_entries);
    for (auto& port : ports) port.gids = gids_of_port(table, port.index, iwarp);
    return ports;
}

const char* atomics_name(ibv_atomic_cap capability) {
    return capability == IBV_ATOMIC_GLOB ? "global" : capability == IBV_ATOMIC_HCA ? "same device" : "none";
}

} // namespace

const char* gid_type_name(GidType type) {
    switch (type) {
    case GidType::ib:
        return "IB";
    case GidType::roce_v1:
        return "RoCE v1";
    case GidType::roce_v2:
        return "RoCE v2";
    case GidType::iwarp:
        return "iWARP";
    }
    return "?";
}

std::string gid_text(const Gid& gid) {
    char text[INET6_ADDRSTRLEN] = "";

    inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof(text));
    return text;
}

std::string gid_ipv4_text(const Gid& gid) {
    in6_addr address;
    char text[INET_ADDRSTRLEN] = "";

    memcpy(&address, gid.bytes.data(), sizeof(address));
    if (IN6_IS_ADDR_V4MAPPED(&address)) inet_ntop(AF_INET, gid.bytes.data() + 12, text, sizeof(text));
    return text;
}

tl::expected<Device, Error> query_device(const std::string& name) {
    Device device;
    ibv_device_attr_ex attributes{};

    TRY_SET(auto context, open_device(name));
    if (int error = ibv_query_device_ex(context.get(), nullptr, &attributes))
        return tl::unexpected(query_error("cannot query device", name, error));

    const auto& plain = attributes.orig_attr;
    device.name = name;
    device.firmware = plain.fw_ver;
    device.iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    device.max_qp = plain.max_qp;
    device.max_qp_wr = plain.max_qp_wr;
    device.max_sge = plain.max_sge;
    device.max_sge_read = device.iwarp ? 1 : plain.max_sge_rd;
    device.max_cq = plain.max_cq;
    device.max_cqe = plain.max_cqe;
    device.max_mr = plain.max_mr;
    device.max_mr_bytes = plain.max_mr_size;
    device.max_srq = plain.max_srq;
    device.max_reads_served = plain.max_qp_rd_atom;
    device.max_reads_issued = plain.max_qp_init_rd_atom;
    device.nr_completion_vectors = context->num_comp_vectors;
    device.atomics = atomics_name(plain.atomic_cap);
    device.capabilities = plain.device_cap_flags;
    device.ports = query_ports(context.get(), plain.phys_port_cnt, device.iwarp);
    return device;
}

} // namespace kxfer::verbs
