// SPDX-License-Identifier: MIT
//
// Links and lanes as records, for `link` and `stat`.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/devices.hpp"
#include "cli/failure.hpp"

namespace kxfer::cli {

// In bytes; 0: not known, or the link has none, as on iWARP.
struct LinkMtu {
    uint32_t path = 0; // that the link's QPs have; of lanes that differ the least
    uint32_t port = 0; // that the port has now
};

LinkMtu mtu_of(const kxfer_info_link& link, const std::vector<kxfer_info_lane>& lanes,
               const std::vector<DeviceFacts>& devices);

// Why the path MTU is not what one may think; empty: it is the port's, or it is not known.
std::string mtu_warning(const kxfer_info_link& link, const LinkMtu& mtu);

// A line of a list.
Record link_row(const kxfer_info_link& link, const LinkMtu& mtu);
// All of them, or those of one device.
tl::expected<Table, Failure> link_rows(const Session& session, const std::vector<DeviceFacts>& devices,
                                       const std::string& device = {});

// All there is to say of one link, lanes included; ENOENT if there is none.
tl::expected<Record, Failure> link_record(const Session& session, const std::vector<DeviceFacts>& devices,
                                          uint64_t id);

} // namespace kxfer::cli
