// SPDX-License-Identifier: MIT
//
// The port of an RDMA device that an address belongs to, and the entry of its GID
// table: an explicit connection needs these of its own end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <tl/expected.hpp>

#include "verbs/device.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

struct LocalPort {
    uint8_t number = 1;
    uint16_t lid = 0;
    ibv_mtu mtu = IBV_MTU_1024; // active
    bool global = false;        // reached by a GID: RoCE always, InfiniBand when one is chosen
    uint8_t tos = 0;            // traffic class of packets it sends
    Gid gid;
};

// Binds the id to the address and any port of rdma_cm, and thereby to a device.
tl::expected<void, Error> bind_device(rdma_cm_id* id, const sockaddr_storage& address);

// The port of a bound id. Its GID is the entry `index` of the GID table; or an entry of the type
// and kind (IPv4, IPv6, link-local) of `like`, for only these can reach `like`; or that of the
// address, preferably RoCE v2.
// EOPNOTSUPP: iWARP, whose QPs the device connects by itself. EINVAL: no such entry.
tl::expected<LocalPort, Error> find_local_port(rdma_cm_id* id, const sockaddr_storage& address,
                                               std::optional<uint32_t> index, const std::optional<Gid>& like);

} // namespace kxfer::verbs
