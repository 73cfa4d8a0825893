// SPDX-License-Identifier: MIT
//
// A device as user-space verbs report it: attributes, ports, GIDs, P_Keys.
// Needs ib_uverbs and the device's user-space driver; RDMA netlink
// (netlink/rdma.hpp) reports less but works without either.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>

namespace kxfer::verbs {

enum class GidType { ib, roce_v1, roce_v2, iwarp };

struct Gid {
    uint32_t index = 0;
    GidType type = GidType::ib;
    std::array<uint8_t, 16> bytes{};
    uint32_t netdev_index = 0;
};

struct Port {
    uint32_t index = 0;
    uint32_t active_mtu = 0; // bytes; 0: not reported by the provider
    uint32_t max_mtu = 0;
    uint32_t max_message_bytes = 0;
    std::string link_layer; // InfiniBand, Ethernet
    std::vector<Gid> gids;  // the entries in use
    std::vector<uint16_t> pkeys;
};

struct Device {
    std::string name;
    std::string firmware;
    bool iwarp = false;
    uint32_t max_qp = 0;
    uint32_t max_qp_wr = 0;
    uint32_t max_sge = 0;
    uint32_t max_sge_read = 0; // an iWARP READ has one sink whatever this says
    uint32_t max_cq = 0;
    uint32_t max_cqe = 0;
    uint32_t max_mr = 0;
    uint64_t max_mr_bytes = 0;
    uint32_t max_srq = 0;
    uint32_t max_reads_served = 0; // max_qp_rd_atom
    uint32_t max_reads_issued = 0; // max_qp_init_rd_atom
    uint32_t nr_completion_vectors = 0;
    std::string atomics;       // none, same device, global
    uint64_t capabilities = 0; // enum ibv_device_cap_flags
    std::vector<Port> ports;
};

const char* gid_type_name(GidType type);
// The GID as IPv6 text; and the IPv4 address that it maps, empty if it maps none.
std::string gid_text(const Gid& gid);
std::string gid_ipv4_text(const Gid& gid);

// The device of that name; ENODEV: user-space verbs do not know it.
tl::expected<Device, Error> query_device(const std::string& name);

} // namespace kxfer::verbs
