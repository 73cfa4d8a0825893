// SPDX-License-Identifier: MIT
#include "verbs/walk.hpp"

#include <algorithm>

#include <gtest/gtest.h>

using namespace kxfer::verbs;

namespace {

// Empty if the attribute is not reported.
std::string value_of(const Step& step, const std::string& name) {
    const auto found = std::find_if(step.attributes.begin(), step.attributes.end(),
                                    [&](const Attribute& one) { return one.name == name; });

    return found == step.attributes.end() ? "" : found->value;
}

std::string meaning_of(const Step& step, const std::string& name) {
    const auto found = std::find_if(step.attributes.begin(), step.attributes.end(),
                                    [&](const Attribute& one) { return one.name == name; });

    return found == step.attributes.end() ? "" : found->meaning;
}

} // namespace

TEST(VerbsWalk, what_is_not_in_the_mask_is_not_told) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.sq_psn = 0xabc;
    const auto step = explain(Transport::rc, IBV_QPS_RTR, attributes, IBV_QP_SQ_PSN, {});

    EXPECT_EQ(step.from, "RTR");
    EXPECT_EQ(step.to, "RTS");
    ASSERT_EQ(step.attributes.size(), 1U);
    EXPECT_EQ(value_of(step, "sq_psn"), "0x000abc");
}

TEST(VerbsWalk, times_are_told_in_units) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    const auto meaning = [&](const char* name) {
        return meaning_of(explain(Transport::rc, IBV_QPS_RTR, attributes,
                                  IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER | IBV_QP_RNR_RETRY, {}),
                          name);
    };

    attributes.timeout = 14;
    EXPECT_NE(meaning("timeout").find("67.11 ms"), std::string::npos);
    attributes.timeout = 0;
    EXPECT_NE(meaning("timeout").find("without end"), std::string::npos);
    attributes.min_rnr_timer = 12;
    EXPECT_NE(meaning("min_rnr_timer").find(" 640 us"), std::string::npos);
    attributes.min_rnr_timer = 0;
    EXPECT_NE(meaning("min_rnr_timer").find(" 655360 us"), std::string::npos);
    attributes.min_rnr_timer = 31;
    EXPECT_NE(meaning("min_rnr_timer").find(" 491520 us"), std::string::npos);
    attributes.rnr_retry = 7;
    EXPECT_NE(meaning("rnr_retry").find("without end"), std::string::npos);
    attributes.rnr_retry = 3;
    EXPECT_NE(meaning("rnr_retry").find("3 more tries"), std::string::npos);
}

TEST(VerbsWalk, a_path_has_a_grh_or_says_that_it_has_none) {
    ibv_qp_attr attributes{};
    LocalPort port;
    attributes.qp_state = IBV_QPS_RTR;
    attributes.ah_attr.dlid = 9;
    const auto plain = explain(Transport::rc, IBV_QPS_INIT, attributes, IBV_QP_AV, port);

    EXPECT_EQ(value_of(plain, "ah_attr.is_global"), "0");
    EXPECT_EQ(value_of(plain, "ah_attr.dlid"), "9");
    EXPECT_EQ(value_of(plain, "ah_attr.grh.sgid_index"), "");

    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.sgid_index = 3;
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.grh.traffic_class = 104;
    port.gid.type = GidType::roce_v1;
    const auto global = explain(Transport::rc, IBV_QPS_INIT, attributes, IBV_QP_AV, port);
    EXPECT_EQ(value_of(global, "ah_attr.is_global"), "1");
    EXPECT_EQ(value_of(global, "ah_attr.grh.sgid_index"), "3");
    EXPECT_NE(meaning_of(global, "ah_attr.grh.sgid_index").find("RoCE v1"), std::string::npos);
    EXPECT_EQ(value_of(global, "ah_attr.grh.hop_limit"), "64");
    EXPECT_EQ(value_of(global, "ah_attr.grh.traffic_class"), "104");
}

TEST(VerbsWalk, a_qkey_is_told_of_a_qp_of_ud) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.qkey = 0x1ee7;
    const auto step = explain(Transport::ud, IBV_QPS_RESET, attributes, IBV_QP_QKEY, {});

    EXPECT_EQ(step.of, "UD QP");
    EXPECT_EQ(value_of(step, "qkey"), "0x00001ee7");
    EXPECT_EQ(explain(Transport::uc, IBV_QPS_RESET, attributes, 0, {}).of, "UC QP");
}

TEST(VerbsWalk, what_both_ends_take_is_set_of_the_control_qp_too) {
    End end{{}, Beside{}};

    agree(end, IBV_MTU_512, 7, 20);
    for (const auto& endpoint : {end.endpoint, end.beside->control}) {
        EXPECT_EQ(endpoint.mtu, IBV_MTU_512);
        EXPECT_EQ(endpoint.reads, 7);
        EXPECT_EQ(endpoint.min_rnr_timer, 20);
    }
}
