// SPDX-License-Identifier: MIT
#include "verbs/wire.hpp"

#include <gtest/gtest.h>

using namespace kxfer::verbs;

TEST(VerbsWire, a_request_comes_back_as_it_was) {
    const auto wire = encode(Request{123456789012, true, 4, {512, 128, 65536}});
    const auto request = decode_request(&wire, sizeof(wire));

    ASSERT_TRUE(request);
    EXPECT_EQ(request->length, 123456789012U);
    EXPECT_TRUE(request->writable);
    EXPECT_EQ(request->operation, 4U);
    EXPECT_EQ(request->receiving.receives, 512U);
    EXPECT_EQ(request->receiving.slots, 128U);
    EXPECT_EQ(request->receiving.bytes, 65536U);
}

TEST(VerbsWire, the_numbers_of_operations_are_for_ever) {
    using kxfer::bench::Operation;

    EXPECT_EQ(static_cast<int>(Operation::read), 0);
    EXPECT_EQ(static_cast<int>(Operation::write), 1);
    EXPECT_EQ(static_cast<int>(Operation::write_imm), 2);
    EXPECT_EQ(static_cast<int>(Operation::send), 3);
    EXPECT_EQ(static_cast<int>(Operation::send_imm), 4);
    EXPECT_EQ(static_cast<int>(Operation::compare_swap), 5);
    EXPECT_EQ(static_cast<int>(Operation::fetch_add), 6);
}

TEST(VerbsWire, an_unknown_operation_is_told_as_it_came) {
    const auto wire = encode(Request{1, false, 0x7fff});

    EXPECT_EQ(decode_request(&wire, sizeof(wire))->operation, 0x7fffU);
}

TEST(VerbsWire, slots_begin_on_pages) {
    EXPECT_EQ((Receiving{1, 3, 1}.length()), 3U * 4096);
    EXPECT_EQ((Receiving{1, 3, 4097}.length()), 3U * 8192);
    EXPECT_EQ((Receiving{}.length()), 0U);
    // The largest that the fields hold does not wrap.
    EXPECT_EQ((Receiving{1, UINT32_MAX, UINT32_MAX}.length()), UINT32_MAX * (1ULL << 32));
}

TEST(VerbsWire, a_status_comes_back_as_it_was) {
    const auto status = decode(encode(Status{0x0102030405060708, 3}));

    EXPECT_EQ(status.received, 0x0102030405060708U);
    EXPECT_EQ(status.wrong, 3U);
    EXPECT_EQ(encode(Status{1, 0}).received, htobe64(1));
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
    EXPECT_FALSE(version_of(&wire, sizeof(wire)));
    for (const uint16_t version : {0, 1, 3}) {
        wire = encode(Request{1, false});
        wire.version = htobe16(version);
        EXPECT_FALSE(decode_request(&wire, sizeof(wire))) << version;
        EXPECT_EQ(version_of(&wire, sizeof(wire)), version);
    }
    EXPECT_FALSE(version_of(&wire, 5));
    EXPECT_FALSE(version_of(nullptr, 0));
}

// The first version's request was 16 bytes long, its answer as it is now.
TEST(VerbsWire, who_speaks_the_first_version_understands_why_it_is_refused) {
    const auto request = encode(Request{1, false});
    const auto refusal = encode(Answer{93, 0, 0, 0}, 1);
    const auto newer = encode(Answer{93, 0, 0, 0}, 3);

    EXPECT_FALSE(decode_request(&request, 16));
    EXPECT_EQ(be16toh(refusal.version), 1U);
    ASSERT_TRUE(decode_answer(&refusal, sizeof(refusal)));
    EXPECT_EQ(decode_answer(&refusal, sizeof(refusal))->error, 93U);
    EXPECT_FALSE(decode_answer(&newer, sizeof(newer)));
}
