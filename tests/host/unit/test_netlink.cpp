// SPDX-License-Identifier: MIT
#include "netlink/rdma.hpp"

#include <memory>

#include <gtest/gtest.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

using namespace kxfer::netlink;

namespace {

struct FreeMessage {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};

struct Netlink : testing::Test {
    std::unique_ptr<nl_msg, FreeMessage> message{
        nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), 0)};

    nl_msg* put() { return message.get(); }
    const nlmsghdr* header() { return nlmsg_hdr(message.get()); }
    void put_handle() {
        nla_put_u32(put(), RDMA_NLDEV_ATTR_DEV_INDEX, 3);
        nla_put_string(put(), RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
    }
};

} // namespace

TEST_F(Netlink, a_device) {
    put_handle();
    nla_put_u32(put(), RDMA_NLDEV_ATTR_PORT_INDEX, 2);
    nla_put_u64(put(), RDMA_NLDEV_ATTR_NODE_GUID, 0x0011223344556677);
    nla_put_string(put(), RDMA_NLDEV_ATTR_FW_VERSION, "1.2.3");
    nla_put_string(put(), RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
    nla_put_u8(put(), RDMA_NLDEV_ATTR_DEV_NODE_TYPE, 1);

    const auto device = parse_device(header());
    ASSERT_TRUE(device);
    EXPECT_EQ(device->index, 3U);
    EXPECT_EQ(device->name, "rxe0");
    EXPECT_EQ(device->nr_ports, 2U);
    EXPECT_EQ(guid_text(device->node_guid), "0011:2233:4455:6677");
    EXPECT_EQ(device->firmware, "1.2.3");
    EXPECT_EQ(device->protocol, "roce");
    EXPECT_EQ(node_type_name(device->node_type), "ca");
}

TEST_F(Netlink, a_message_without_a_name_is_no_device) {
    nla_put_u32(put(), RDMA_NLDEV_ATTR_DEV_INDEX, 3);
    EXPECT_FALSE(parse_device(header()));
}

TEST_F(Netlink, what_the_kernel_leaves_out_is_empty) {
    put_handle();
    const auto device = parse_device(header());
    ASSERT_TRUE(device);
    EXPECT_EQ(device->firmware, "");
    EXPECT_EQ(device->node_guid, 0U);
}

TEST_F(Netlink, attributes_newer_than_the_headers_are_skipped) {
    put_handle();
    nla_put_u32(put(), RDMA_NLDEV_ATTR_MAX + 100, 7);
    ASSERT_TRUE(parse_device(header()));
}

TEST_F(Netlink, an_attribute_too_short_counts_as_left_out) {
    put_handle();
    nla_put_u8(put(), RDMA_NLDEV_ATTR_NODE_GUID, 1);
    const auto device = parse_device(header());
    ASSERT_TRUE(device);
    EXPECT_EQ(device->node_guid, 0U);
}

TEST_F(Netlink, a_name_without_closing_zero_ends_with_its_attribute) {
    nla_put_u32(put(), RDMA_NLDEV_ATTR_DEV_INDEX, 3);
    nla_put(put(), RDMA_NLDEV_ATTR_DEV_NAME, 3, "rxe");
    const auto device = parse_device(header());
    ASSERT_TRUE(device);
    EXPECT_EQ(device->name, "rxe");
}

TEST_F(Netlink, a_port_of_ethernet_has_no_lid) {
    put_handle();
    nla_put_u32(put(), RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    nla_put_u8(put(), RDMA_NLDEV_ATTR_PORT_STATE, 4);
    nla_put_u8(put(), RDMA_NLDEV_ATTR_PORT_PHYS_STATE, 5);
    nla_put_u32(put(), RDMA_NLDEV_ATTR_NDEV_INDEX, 9);
    nla_put_string(put(), RDMA_NLDEV_ATTR_NDEV_NAME, "eth0");

    const auto port = parse_port(header());
    ASSERT_TRUE(port);
    EXPECT_EQ(port->index, 1U);
    EXPECT_EQ(port_state_name(port->state), "ACTIVE");
    EXPECT_EQ(physical_state_name(port->physical_state), "LINK_UP");
    EXPECT_EQ(port->netdev, "eth0");
    EXPECT_EQ(port->netdev_index, 9U);
    EXPECT_FALSE(port->lid);
    EXPECT_FALSE(port->sm_lid);
}

TEST_F(Netlink, a_port_of_infiniband_has_lids_and_a_subnet) {
    put_handle();
    nla_put_u32(put(), RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    nla_put_u32(put(), RDMA_NLDEV_ATTR_LID, 17);
    nla_put_u32(put(), RDMA_NLDEV_ATTR_SM_LID, 1);
    nla_put_u8(put(), RDMA_NLDEV_ATTR_LMC, 2);
    nla_put_u64(put(), RDMA_NLDEV_ATTR_SUBNET_PREFIX, 0xfe80000000000000);

    const auto port = parse_port(header());
    ASSERT_TRUE(port);
    EXPECT_EQ(port->lid, 17U);
    EXPECT_EQ(port->sm_lid, 1U);
    EXPECT_EQ(port->lmc, 2);
    EXPECT_EQ(port->subnet_prefix, 0xfe80000000000000U);
}

TEST_F(Netlink, resources_are_counted_by_kind) {
    put_handle();
    nlattr* table = nla_nest_start(put(), RDMA_NLDEV_ATTR_RES_SUMMARY);
    for (const auto& [kind, count] : {std::pair{"qp", 5}, std::pair{"mr", 7}}) {
        nlattr* entry = nla_nest_start(put(), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
        nla_put_string(put(), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, kind);
        nla_put_u64(put(), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
        nla_nest_end(put(), entry);
    }
    nla_nest_end(put(), table);

    const auto resources = parse_resources(header());
    ASSERT_EQ(resources.size(), 2U);
    EXPECT_EQ(resources[0].kind, "qp");
    EXPECT_EQ(resources[0].count, 5U);
    EXPECT_EQ(resources[1].kind, "mr");
    EXPECT_EQ(resources[1].count, 7U);
}

TEST_F(Netlink, the_driver_by_its_number) {
    EXPECT_EQ(parse_driver(header()), "");
    nla_put_u32(put(), RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, RDMA_DRIVER_RXE);
    EXPECT_EQ(parse_driver(header()), "rxe");
}

TEST_F(Netlink, an_unknown_driver_is_empty) {
    nla_put_u32(put(), RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, 12345);
    EXPECT_EQ(parse_driver(header()), "");
}

TEST(NetlinkNames, unknown_states_are_shown_as_numbers) {
    EXPECT_EQ(port_state_name(1), "DOWN");
    EXPECT_EQ(port_state_name(42), "42");
    EXPECT_EQ(physical_state_name(3), "DISABLED");
    EXPECT_EQ(physical_state_name(99), "99");
    EXPECT_EQ(node_type_name(4), "rnic");
}

TEST_F(Netlink, counters_come_with_their_names) {
    nlattr* all = nla_nest_start(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    for (const char* name : {"sent_pkts", "rcvd_pkts", ""}) {
        nlattr* one = nla_nest_start(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
        nla_put_string(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
        nla_put_u64(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, 1ULL << 40);
        nla_nest_end(put(), one);
    }
    nlattr* half = nla_nest_start(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    nla_put_string(put(), RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, "without_value");
    nla_nest_end(put(), half);
    nla_nest_end(put(), all);

    const auto counters = parse_counters(header());
    ASSERT_EQ(counters.size(), 2U);
    EXPECT_EQ(counters[0].name, "sent_pkts");
    EXPECT_EQ(counters[1].name, "rcvd_pkts");
    EXPECT_EQ(counters[1].value, 1ULL << 40);
}

TEST_F(Netlink, a_driver_without_counters_has_none) {
    put_handle();
    EXPECT_TRUE(parse_counters(header()).empty());
}
