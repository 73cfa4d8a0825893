// SPDX-License-Identifier: MIT
//
// When a link's path MTU is told to be another than the port's.
#include "cli/transfer/link_record.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::cli;

namespace {

constexpr uint32_t roce_v2 = 2;

kxfer_info_link some_link(uint32_t flags, uint32_t gid_type) {
    kxfer_info_link link = {};
    link.id = 7;
    link.flags = flags;
    link.gid_type = gid_type;
    memcpy(link.device, "rxe0", 5);
    link.sgid[15] = 1;
    return link;
}

kxfer_info_lane lane_of(uint64_t link, uint32_t index, uint32_t path_mtu) {
    kxfer_info_lane lane = {};
    lane.link = link;
    lane.index = index;
    lane.path_mtu = path_mtu;
    return lane;
}

PortFacts port_of(uint32_t mtu, uint8_t last) {
    kxfer::verbs::Gid gid;
    PortFacts port;
    gid.bytes.back() = last;
    port.verbs.emplace();
    port.verbs->active_mtu = mtu;
    port.verbs->gids = {gid};
    return port;
}

DeviceFacts device_of(const std::string& name, std::vector<PortFacts> ports) {
    DeviceFacts device;
    device.core.name = name;
    device.ports = std::move(ports);
    return device;
}

} // namespace

TEST(LinkMtu, is_the_least_of_its_lanes) {
    const auto link = some_link(KXFER_LINK_INITIATOR, roce_v2);
    const std::vector<kxfer_info_lane> lanes{lane_of(7, 0, 4096), lane_of(7, 1, 1024), lane_of(7, 2, 0),
                                             lane_of(8, 1, 256)};

    EXPECT_EQ(mtu_of(link, lanes, {}).path, 1024U);
    EXPECT_EQ(mtu_of(link, lanes, {}).port, 0U);
    EXPECT_EQ(mtu_of(link, {}, {}).path, 0U);
}

TEST(LinkMtu, is_beside_that_of_the_port_with_its_gid) {
    const auto link = some_link(KXFER_LINK_INITIATOR, roce_v2);
    const std::vector<kxfer_info_lane> lanes{lane_of(7, 1, 1024)};

    EXPECT_EQ(mtu_of(link, lanes, {device_of("rxe1", {port_of(4096, 1)})}).port, 0U);
    EXPECT_EQ(mtu_of(link, lanes, {device_of("rxe0", {port_of(4096, 9)})}).port, 4096U);
    EXPECT_EQ(mtu_of(link, lanes, {device_of("rxe0", {port_of(2048, 9), port_of(4096, 1)})}).port, 4096U);
    EXPECT_EQ(mtu_of(link, lanes, {device_of("rxe0", {PortFacts()})}).port, 0U);
}

TEST(LinkMtu, that_is_not_the_ports_is_told) {
    const auto link = some_link(KXFER_LINK_INITIATOR, roce_v2);

    EXPECT_EQ(mtu_warning(link, {4096, 4096}), "");
    EXPECT_EQ(mtu_warning(link, {1024, 0}), "");
    EXPECT_EQ(mtu_warning(link, {0, 4096}), "");
    EXPECT_NE(mtu_warning(link, {1024, 4096}).find("path MTU 1024, the port's is 4096 now"),
              std::string::npos);
    EXPECT_NE(mtu_warning(link, {4096, 1024}).find("open it again"), std::string::npos);
}

// The peer's port, or the subnet manager, may have allowed less.
TEST(LinkMtu, need_not_be_the_ports_where_others_choose_it) {
    EXPECT_EQ(mtu_warning(some_link(0, roce_v2), {1024, 4096}).find("open it again"), std::string::npos);
    EXPECT_EQ(mtu_warning(some_link(KXFER_LINK_INITIATOR, 0), {2048, 4096}).find("open it again"),
              std::string::npos);
}

namespace {

kxfer_line_event some_event(uint32_t type, uint64_t link, int error, uint32_t nr) {
    kxfer_line_event event = {};
    event.type = type;
    event.link = link;
    event.error = error;
    event.nr = nr;
    return event;
}

} // namespace

TEST(Story, is_told_in_words) {
    EXPECT_EQ(event_text(some_event(KXFER_LINE_OPENED, 3, 0, 1)), "opened on link 3");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_BROKE, 3, -ETIMEDOUT, 1)), "link 3 broke: ETIMEDOUT");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_WAITED, 0, 0, 1)), "1 job began to wait for another link");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_TRIED, 0, -ECONNREFUSED, 1)),
              "no link: tried once, at last ECONNREFUSED");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_TRIED, 0, -EHOSTUNREACH, 12)),
              "no link: tried 12 times, at last EHOSTUNREACH");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_CONNECTED, 4, 0, 1)), "connected again by link 4");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_RENEWED, 4, 0, 2)), "2 targets granted again on link 4");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_REVOKED, 4, -ENOENT, 1)),
              "1 target ended, which the peer does not grant any more: ENOENT");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_RESTARTED, 4, 0, 1)),
              "the peer's module was loaded again: it has other exports");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_RESUMED, 4, 0, 7)), "7 jobs went on over link 4");
    EXPECT_EQ(event_text(some_event(KXFER_LINE_LOST, 0, -ECONNRESET, 3)),
              "no link for too long: 3 jobs ended");
    EXPECT_EQ(event_text(some_event(99, 0, 0, 1)), "event 99, which this version does not know");
}
