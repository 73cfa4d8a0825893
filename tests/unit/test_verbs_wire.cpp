// SPDX-License-Identifier: MIT
#include "verbs/wire.hpp"

#include <gtest/gtest.h>

using namespace kxfer::verbs;

TEST(VerbsWire, a_request_comes_back_as_it_was) {
    const auto wire = encode(Request{123456789012, true});
    const auto request = decode_request(&wire, sizeof(wire));

    ASSERT_TRUE(request);
    EXPECT_EQ(request->length, 123456789012U);
    EXPECT_TRUE(request->writable);
}

TEST(VerbsWire, an_answer_comes_back_as_it_was) {
    const auto wire = encode(Answer{16, 0x1234, 0x7fff00001000, 8192});
    const auto answer = decode_answer(&wire, sizeof(wire));

    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error, 16U);
    EXPECT_EQ(answer->rkey, 0x1234U);
    EXPECT_EQ(answer->address, 0x7fff00001000U);
    EXPECT_EQ(answer->length, 8192U);
}

TEST(VerbsWire, big_endian_on_the_wire) {
    const auto wire = encode(Request{0x0102, false});
    const auto* bytes = reinterpret_cast<const unsigned char*>(&wire);

    EXPECT_EQ(bytes[0], 'K');
    EXPECT_EQ(bytes[3], 'B');
    EXPECT_EQ(bytes[14], 1);
    EXPECT_EQ(bytes[15], 2);
}

TEST(VerbsWire, providers_may_pad_but_not_cut) {
    char padded[196] = {};
    const auto wire = encode(Answer{0, 1, 2, 3});

    memcpy(padded, &wire, sizeof(wire));
    EXPECT_TRUE(decode_answer(padded, sizeof(padded)));
    EXPECT_FALSE(decode_answer(padded, sizeof(wire) - 1));
    EXPECT_FALSE(decode_answer(nullptr, 0));
}

TEST(VerbsWire, another_protocol_or_version_is_not_understood) {
    auto wire = encode(Request{1, false});

    wire.magic ^= 1;
    EXPECT_FALSE(decode_request(&wire, sizeof(wire)));
    wire = encode(Request{1, false});
    wire.version = htobe16(2);
    EXPECT_FALSE(decode_request(&wire, sizeof(wire)));
}
