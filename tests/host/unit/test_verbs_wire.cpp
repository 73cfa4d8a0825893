// SPDX-License-Identifier: MIT
#include "verbs/wire.hpp"

#include <gtest/gtest.h>

#include "../../../kmod/base/responder.h"
#include "verbs/endpoint.hpp"
#include "verbs/messages.hpp"

using namespace kxfer::verbs;

// The module is an initiator with the same encoding.
TEST(VerbsWire, the_module_says_the_same) {
    const auto wire = encode(
        Request{123456789012, true, KXFER_RESPONDER_SEND_IMM, {512, 128, 65536}, false, KXFER_RESPONDER_UD});
    kxfer_responder_request request;
    kxfer_responder_status status;

    static_assert(sizeof(request) == sizeof(wire));
    memcpy(&request, &wire, sizeof(request));
    EXPECT_EQ(be32toh(request.magic), uint32_t{KXFER_RESPONDER_MAGIC});
    EXPECT_EQ(be16toh(request.version), KXFER_RESPONDER_VERSION);
    EXPECT_EQ(be16toh(request.writable), 1);
    EXPECT_EQ(be64toh(request.length), 123456789012U);
    EXPECT_EQ(be16toh(request.op), static_cast<uint16_t>(kxfer::bench::Operation::send_imm));
    EXPECT_EQ(be32toh(request.receives), 512U);
    EXPECT_EQ(be32toh(request.slots), 128U);
    EXPECT_EQ(be32toh(request.bytes), 65536U);
    EXPECT_EQ(be16toh(request.transport), static_cast<uint16_t>(Transport::ud));

    const auto looked_up = encode(Lookup{77});
    kxfer_responder_lookup lookup;
    static_assert(sizeof(lookup) == sizeof(looked_up));
    memcpy(&lookup, &looked_up, sizeof(lookup));
    EXPECT_EQ(be32toh(lookup.magic), uint32_t{KXFER_RESPONDER_MAGIC});
    EXPECT_EQ(be16toh(lookup.version), KXFER_RESPONDER_VERSION);
    EXPECT_EQ(be32toh(lookup.rkey), 77U);

    const auto answered = encode(Answer{ENOMEM, 77, 123456789012, 4096});
    kxfer_responder_answer answer;
    static_assert(sizeof(answer) == sizeof(answered));
    memcpy(&answer, &answered, sizeof(answer));
    EXPECT_EQ(be32toh(answer.error), uint32_t{ENOMEM});
    EXPECT_EQ(be32toh(answer.rkey), 77U);
    EXPECT_EQ(be64toh(answer.address), 123456789012U);
    EXPECT_EQ(be64toh(answer.length), 4096U);

    const auto told = encode(Status{8, 1});
    static_assert(sizeof(status) == sizeof(told));
    memcpy(&status, &told, sizeof(status));
    EXPECT_EQ(be64toh(status.received), 8U);
    EXPECT_EQ(be64toh(status.wrong), 1U);
}

TEST(VerbsWire, the_module_counts_the_same) {
    using kxfer::bench::Operation;

    EXPECT_EQ(int{KXFER_RESPONDER_READ}, static_cast<int>(Operation::read));
    EXPECT_EQ(int{KXFER_RESPONDER_WRITE_IMM}, static_cast<int>(Operation::write_imm));
    EXPECT_EQ(int{KXFER_RESPONDER_SEND}, static_cast<int>(Operation::send));
    EXPECT_EQ(int{KXFER_RESPONDER_SEND_IMM}, static_cast<int>(Operation::send_imm));
    EXPECT_EQ(int{KXFER_RESPONDER_COMPARE_SWAP}, static_cast<int>(Operation::compare_swap));
    EXPECT_EQ(int{KXFER_RESPONDER_FETCH_ADD}, static_cast<int>(Operation::fetch_add));
    EXPECT_EQ(int{KXFER_RESPONDER_RC}, static_cast<int>(Transport::rc));
    EXPECT_EQ(int{KXFER_RESPONDER_UD}, static_cast<int>(Transport::ud));
    EXPECT_EQ(uint32_t{KXFER_RESPONDER_IMMEDIATE}, immediate_of(0));
    EXPECT_EQ(KXFER_RESPONDER_PAGE, Receiving({1, 1, 1}).stride());
    EXPECT_EQ(KXFER_RESPONDER_VERSION, wire_version);
    EXPECT_EQ(KXFER_RESPONDER_VERSION_MIN, first_wire_version);
}

TEST(VerbsWire, a_lookup_comes_back_as_it_was) {
    auto wire = encode(Lookup{0xdeadbeef});

    ASSERT_TRUE(decode_lookup(&wire, sizeof(wire)));
    EXPECT_EQ(decode_lookup(&wire, sizeof(wire))->rkey, 0xdeadbeefU);
    EXPECT_FALSE(decode_lookup(&wire, sizeof(wire) - 1));
    EXPECT_FALSE(decode_lookup(nullptr, 0));
    wire.version = htobe16(wire_version + 1);
    EXPECT_FALSE(decode_lookup(&wire, sizeof(wire)));
}

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
    EXPECT_EQ(static_cast<int>(Operation::atomic_write), 7);
    EXPECT_EQ(static_cast<int>(Operation::flush), 8);
}

TEST(VerbsWire, an_unknown_operation_is_told_as_it_came) {
    const auto wire = encode(Request{1, false, 0x7eff});

    EXPECT_EQ(decode_request(&wire, sizeof(wire))->operation, 0x7effU);
    EXPECT_FALSE(decode_request(&wire, sizeof(wire))->answered);
}

TEST(VerbsWire, slots_begin_on_pages) {
    EXPECT_EQ((Receiving{1, 3, 1}.length()), 3U * 4096);
    EXPECT_EQ((Receiving{1, 3, 4097}.length()), 3U * 8192);
    EXPECT_EQ((Receiving{}.length()), 0U);
    // The largest values of the fields do not wrap around.
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

TEST(VerbsWire, who_is_to_answer_is_asked_for_an_operation_of_its_own) {
    const auto wire = encode(Request{1, true, KXFER_RESPONDER_SEND, {512, 8, 64}, true});
    const auto request = decode_request(&wire, sizeof(wire));

    static_assert(answered_flag == KXFER_RESPONDER_ANSWERED);
    static_assert(sizeof(WireCommand) == sizeof(kxfer_responder_command) &&
                  offsetof(WireCommand, rkey) == offsetof(kxfer_responder_command, rkey));
    EXPECT_EQ(be16toh(wire.operation), KXFER_RESPONDER_SEND | KXFER_RESPONDER_ANSWERED);
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->answered);
    EXPECT_EQ(request->operation, KXFER_RESPONDER_SEND);
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

// The request of the first version had 16 bytes; its answer has not changed.
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
