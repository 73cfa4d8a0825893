// SPDX-License-Identifier: MIT
//
// The parameters with which the responder of user-space verbs accepts a connection. Its other
// functions need a device: tests/guest/verbs.
#include <gtest/gtest.h>

#include "verbs/responder.hpp"

using namespace kxfer::verbs;

namespace {

rdma_conn_param asking(uint8_t initiator_depth, uint8_t responder_resources) {
    rdma_conn_param asked{};

    asked.initiator_depth = initiator_depth;
    asked.responder_resources = responder_resources;
    asked.rnr_retry_count = 5;
    return asked;
}

ibv_device_attr device(int served, int issued) {
    ibv_device_attr attributes{};

    attributes.max_qp_rd_atom = served;
    attributes.max_qp_init_rd_atom = issued;
    return attributes;
}

} // namespace

TEST(Accepting, is_with_no_more_than_the_device_has) {
    const auto small = accepting(asking(128, 128), device(16, 8));
    EXPECT_EQ(small.responder_resources, 16);
    EXPECT_EQ(small.initiator_depth, 8);
    const auto large = accepting(asking(255, 255), device(1000, 1000));
    EXPECT_EQ(large.responder_resources, 255);
    EXPECT_EQ(large.initiator_depth, 255);
}

TEST(Accepting, is_with_no_more_than_was_asked_for) {
    const auto parameters = accepting(asking(1, 2), device(128, 128));
    EXPECT_EQ(parameters.initiator_depth, 1);
    EXPECT_EQ(parameters.responder_resources, 2);
    EXPECT_EQ(parameters.rnr_retry_count, 5);
}
