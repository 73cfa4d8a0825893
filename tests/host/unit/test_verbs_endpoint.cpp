// SPDX-License-Identifier: MIT
#include "verbs/endpoint.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::verbs;

namespace {

Endpoint some_endpoint() {
    Endpoint endpoint;

    endpoint.transport = Transport::rc;
    endpoint.mtu = IBV_MTU_2048;
    endpoint.gid_type = GidType::roce_v2;
    endpoint.reads = 16;
    endpoint.qpn = 0x000123;
    endpoint.psn = 0xabcdef;
    endpoint.lid = 7;
    endpoint.min_rnr_timer = 31;
    endpoint.tos = 104;
    endpoint.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
    return endpoint;
}

// some_endpoint() with a change of its encoded form.
bool decodes(const std::function<void(WireEndpoint&)>& change) {
    auto wire = encode(some_endpoint());

    change(wire);
    return decode(wire).has_value();
}

} // namespace

TEST(VerbsEndpoint, it_comes_back_as_it_was) {
    const auto endpoint = some_endpoint();
    const auto again = decode(encode(endpoint));

    ASSERT_TRUE(again);
    EXPECT_EQ(again->transport, endpoint.transport);
    EXPECT_EQ(again->mtu, endpoint.mtu);
    EXPECT_EQ(again->gid_type, endpoint.gid_type);
    EXPECT_EQ(again->reads, endpoint.reads);
    EXPECT_EQ(again->qpn, endpoint.qpn);
    EXPECT_EQ(again->psn, endpoint.psn);
    EXPECT_EQ(again->lid, endpoint.lid);
    EXPECT_EQ(again->min_rnr_timer, endpoint.min_rnr_timer);
    EXPECT_EQ(again->tos, endpoint.tos);
    EXPECT_EQ(again->gid, endpoint.gid);
}

TEST(VerbsEndpoint, big_endian_on_the_wire) {
    const auto wire = encode(some_endpoint());
    const auto* bytes = reinterpret_cast<const unsigned char*>(&wire);

    EXPECT_EQ(bytes[1], 4); // IBV_MTU_2048
    EXPECT_EQ(bytes[6], 0x01);
    EXPECT_EQ(bytes[7], 0x23);
    EXPECT_EQ(bytes[9], 0xab);
    EXPECT_EQ(bytes[11], 0xef);
    EXPECT_EQ(bytes[13], 7);
    EXPECT_EQ(bytes[15], 104);
    EXPECT_EQ(bytes[31], 1);
}

TEST(VerbsEndpoint, the_numbers_of_transports_and_gid_types_are_for_ever) {
    EXPECT_EQ(static_cast<int>(Transport::rc), 0);
    EXPECT_EQ(static_cast<int>(Transport::uc), 1);
    EXPECT_EQ(static_cast<int>(Transport::ud), 2);
    EXPECT_EQ(static_cast<int>(GidType::ib), 0);
    EXPECT_EQ(static_cast<int>(GidType::roce_v1), 1);
    EXPECT_EQ(static_cast<int>(GidType::roce_v2), 2);
}

TEST(VerbsEndpoint, numbers_that_no_qp_has_are_not_understood) {
    EXPECT_TRUE(decodes([](WireEndpoint&) {}));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.transport = 3; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.mtu = 0; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.mtu = 6; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.gid_type = 3; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.min_rnr_timer = 32; }));
    // 0 and 1 are reserved for subnet management.
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.qpn = 0; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.qpn = htobe32(1); }));
    EXPECT_TRUE(decodes([](WireEndpoint& wire) { wire.qpn = htobe32(0xffffff); }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.qpn = htobe32(0x1000000); }));
    EXPECT_TRUE(decodes([](WireEndpoint& wire) { wire.psn = htobe32(0xffffff); }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { wire.psn = htobe32(0x1000000); }));
}

TEST(VerbsEndpoint, roce_has_a_gid_and_infiniband_a_lid) {
    EXPECT_FALSE(decodes([](WireEndpoint& wire) { memset(wire.gid, 0, sizeof(wire.gid)); }));
    EXPECT_TRUE(decodes([](WireEndpoint& wire) { wire.lid = 0; }));
    EXPECT_FALSE(decodes([](WireEndpoint& wire) {
        wire.gid_type = 0;
        wire.lid = 0;
    }));
    EXPECT_TRUE(decodes([](WireEndpoint& wire) {
        wire.gid_type = 0;
        memset(wire.gid, 0, sizeof(wire.gid));
    }));
}

namespace {

WireCall some_call(Transport transport) {
    Endpoint endpoint = some_endpoint();
    WireCall call{{}, {}, encode(Beside{endpoint, 0x1234567})};

    endpoint.transport = transport;
    call.from = encode(endpoint);
    return call;
}

} // namespace

TEST(VerbsEndpoint, uc_and_ud_tell_of_a_control_qp_too) {
    EXPECT_EQ(bytes_of(some_call(Transport::rc)).size(), 64U);
    ASSERT_TRUE(end_of(some_call(Transport::rc)));
    EXPECT_FALSE(end_of(some_call(Transport::rc))->beside);
    for (const auto transport : {Transport::uc, Transport::ud}) {
        const auto call = some_call(transport);
        const auto end = end_of(call);

        EXPECT_EQ(bytes_of(call).size(), 104U);
        ASSERT_TRUE(end && end->beside);
        EXPECT_EQ(end->endpoint.transport, transport);
        EXPECT_EQ(end->beside->control.transport, Transport::rc);
        EXPECT_EQ(end->beside->control.qpn, some_endpoint().qpn);
        EXPECT_EQ(end->beside->qkey, 0x1234567U);
    }
    const auto call = some_call(Transport::ud);
    EXPECT_EQ(std::to_integer<int>(bytes_of(call)[96]), 0x01);
    EXPECT_EQ(std::to_integer<int>(bytes_of(call)[99]), 0x67);
}

TEST(VerbsEndpoint, a_control_qp_is_rc_and_sound) {
    const std::vector<std::function<void(WireBeside&)>> changes{
        [](WireBeside& beside) { beside.control.transport = 1; },
        [](WireBeside& beside) { beside.control.qpn = 0; },
        [](WireBeside& beside) { beside.reserved = 1; },
        [](WireBeside& beside) { beside = {}; },
    };

    for (const auto& change : changes) {
        auto call = some_call(Transport::uc);
        change(call.beside);
        EXPECT_FALSE(end_of(call));
    }
}
