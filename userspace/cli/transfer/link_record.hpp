// SPDX-License-Identifier: MIT
//
// Links and lanes as records, for `link` and the commands that watch.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/node/devices.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

// MTUs in bytes; 0: unknown, or the link has none, as on iWARP.
struct LinkMtu {
    uint32_t path = 0; // path MTU of the link's QPs; if lanes differ, the least
    uint32_t port = 0; // MTU of the port now
};

LinkMtu mtu_of(const kxfer_info_link& link, const std::vector<kxfer_info_lane>& lanes,
               const std::vector<DeviceFacts>& devices);

// A warning if the path MTU differs from the port's; empty: they are the same, or unknown.
std::string mtu_warning(const kxfer_info_link& link, const LinkMtu& mtu);

// "live"
const char* link_state(const kxfer_info_link& link);
// "initiator", "accepted" or "dedicated"
const char* link_role(const kxfer_info_link& link);
// Name of the errno that ended the link; empty: none has.
std::string link_error(const kxfer_info_link& link);
// For an accepted link the module hides values that include other users' use from a user.
bool shows_all(const kxfer_info_link& link);

// A line of a list.
Record link_row(const kxfer_info_link& link, const LinkMtu& mtu);
// All links, or those of one device.
tl::expected<Table, Failure> link_rows(const Session& session, const std::vector<DeviceFacts>& devices,
                                       const std::string& device = {});

// What happened to the lines of sessions: a row for each event, the oldest of a line first.
// link: only of lines that use that link now; 0: of all.
tl::expected<Table, Failure> story_rows(const Session& session, uint64_t link);
// An event in words.
std::string event_text(const kxfer_line_event& event);

// All details of one link, with its lanes and the story of its lines; ENOENT if there is no such link.
tl::expected<Record, Failure> link_record(const Session& session, const std::vector<DeviceFacts>& devices,
                                          uint64_t id);

} // namespace kxfer::cli
