// SPDX-License-Identifier: MIT
#include "libfabric/wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include <sys/socket.h>

using namespace kxfer::fi;

namespace {

using Bytes = std::array<uint8_t, header_bytes>;

Header header_of(uint16_t family) {
    Header header{};
    header.kind = Kind::offer;
    header.flags = header_tagged | header_answer;
    header.sequence = 0x01020304;
    header.id = 0xa1a2a3a4;
    header.length = 0x10000000f;
    header.tag = 0x1112131415161718;
    header.data = 0x2122232425262728;
    header.place = 0x3132333435363738;
    header.source.family = family;
    header.source.port = 20001;
    const uint8_t four[] = {10, 77, 0, 1};
    memcpy(header.source.addr, four, sizeof(four));
    if (family == AF_INET6) header.source.addr[15] = 9;
    if (family == AF_INET6) header.source.scope_id = 3;
    return header;
}

Bytes encoded(const Header& header) {
    Bytes bytes;
    encode(header, bytes.data());
    return bytes;
}

bool is_taken(const Bytes& bytes) {
    Header header;
    return decode(bytes.data(), bytes.size(), header);
}

// Whether a message is taken after a change of its header.
bool is_taken_with(const std::function<void(Header&)>& change) {
    Header header = header_of(AF_INET);
    change(header);
    return is_taken(encoded(header));
}

Header header_of_connection(Kind kind) {
    Header header{};
    header.kind = kind;
    header.id = 1;
    header.source = header_of(AF_INET).source;
    return header;
}

// Whether a message of a connection is taken, with so many bytes of payload, after a change of its header.
bool is_taken_of_connection(Kind kind, size_t payload, const std::function<void(Header&)>& change) {
    Header header = header_of_connection(kind);
    std::vector<uint8_t> bytes(header_bytes + payload);
    change(header);
    encode(header, bytes.data());
    return decode(bytes.data(), bytes.size(), header);
}

} // namespace

TEST(LibfabricWire, what_was_encoded_is_decoded) {
    for (uint16_t family : {AF_INET, AF_INET6}) {
        Header sent = header_of(family), came{};
        Bytes bytes = encoded(sent);
        ASSERT_TRUE(decode(bytes.data(), bytes.size(), came));
        EXPECT_EQ(came.kind, sent.kind);
        EXPECT_EQ(came.flags, sent.flags);
        EXPECT_EQ(came.sequence, sent.sequence);
        EXPECT_EQ(came.id, sent.id);
        EXPECT_EQ(came.length, sent.length);
        EXPECT_EQ(came.tag, sent.tag);
        EXPECT_EQ(came.data, sent.data);
        EXPECT_EQ(came.place, sent.place);
        EXPECT_TRUE(SameAddress()(came.source, sent.source));
    }
}

// Other releases of the provider have these bytes too.
TEST(LibfabricWire, bytes_have_their_places) {
    Bytes bytes = encoded(header_of(AF_INET));
    const uint8_t first[] = {2, 3, 5, 0, 4, 3, 2, 1, 0xa4, 0xa3, 0xa2, 0xa1, 0, 0, 0, 0, 0xf, 0, 0, 0, 1};
    const uint8_t source[] = {AF_INET, 0, 0x21, 0x4e, 0, 0, 0, 0, 10, 77, 0, 1, 0};
    EXPECT_EQ(memcmp(bytes.data(), first, sizeof(first)), 0);
    EXPECT_EQ(bytes[24], 0x18);
    EXPECT_EQ(bytes[32], 0x28);
    EXPECT_EQ(bytes[40], 0x38);
    EXPECT_EQ(memcmp(bytes.data() + 48, source, sizeof(source)), 0);
}

TEST(LibfabricWire, a_short_message_is_refused) {
    Bytes bytes = encoded(header_of(AF_INET));
    Header header;
    for (size_t length = 0; length < bytes.size(); length++)
        EXPECT_FALSE(decode(bytes.data(), length, header)) << length;
}

TEST(LibfabricWire, each_kind_is_taken_and_no_other) {
    Bytes bytes = encoded(header_of(AF_INET));
    for (unsigned kind = 0; kind < 256; kind++) {
        bytes[1] = static_cast<uint8_t>(kind);
        EXPECT_EQ(is_taken(bytes), kind >= 1 && kind <= 5) << kind; // those of connections say less
    }
    bytes = encoded(header_of_connection(Kind::connect));
    for (unsigned kind = 11; kind < 256; kind++) {
        bytes[1] = static_cast<uint8_t>(kind);
        EXPECT_FALSE(is_taken(bytes)) << kind;
    }
}

TEST(LibfabricWire, messages_of_connections_have_nothing_that_is_not_used) {
    for (Kind kind : {Kind::connect, Kind::accept, Kind::reject, Kind::ready, Kind::bye}) {
        EXPECT_TRUE(is_of_connection(kind));
        EXPECT_TRUE(is_taken_of_connection(kind, 0, [](Header&) {}));
        EXPECT_FALSE(is_taken_of_connection(kind, 0, [](Header& h) { h.flags = header_answer; }));
        EXPECT_FALSE(is_taken_of_connection(kind, 0, [](Header& h) { h.tag = 1; }));
        EXPECT_FALSE(is_taken_of_connection(kind, 0, [](Header& h) { h.place = 1; }));
        bool has_word = has_payload(kind);
        EXPECT_EQ(is_taken_of_connection(kind, 0, [](Header& h) { h.data = 1; }), has_word);
    }
    EXPECT_FALSE(is_of_connection(Kind::written));
}

TEST(LibfabricWire, messages_of_connections_are_as_long_as_they_say) {
    for (Kind kind : {Kind::connect, Kind::accept, Kind::reject}) {
        for (size_t bytes : {size_t{1}, cm_data_bytes}) {
            auto set = [&](Header& h) { h.length = bytes; };
            EXPECT_TRUE(is_taken_of_connection(kind, bytes, set));
            EXPECT_FALSE(is_taken_of_connection(kind, bytes - 1, set));
            EXPECT_FALSE(is_taken_of_connection(kind, bytes + 1, set));
        }
        EXPECT_FALSE(
            is_taken_of_connection(kind, cm_data_bytes + 1, [](Header& h) { h.length = cm_data_bytes + 1; }));
        EXPECT_FALSE(is_taken_of_connection(kind, 0, [](Header& h) { h.length = UINT64_MAX - 71; }));
    }
    for (Kind kind : {Kind::ready, Kind::bye})
        EXPECT_FALSE(is_taken_of_connection(kind, 1, [](Header& h) { h.length = 1; }));
}

TEST(LibfabricWire, unknown_flags_and_versions_are_refused) {
    Bytes bytes = encoded(header_of(AF_INET));
    for (unsigned flags = 0; flags < 256; flags++) {
        bytes[2] = static_cast<uint8_t>(flags);
        EXPECT_EQ(is_taken(bytes), flags < 8) << flags;
    }
    bytes[2] = 0;
    bytes[0] = 1;
    EXPECT_FALSE(is_taken(bytes));
}

TEST(LibfabricWire, unused_bytes_are_zero) {
    for (size_t place : {3, 12, 15}) {
        Bytes bytes = encoded(header_of(AF_INET));
        bytes[place] = 1;
        EXPECT_FALSE(is_taken(bytes)) << place;
    }
}

TEST(LibfabricWire, no_message_is_longer_than_the_longest) {
    EXPECT_TRUE(is_taken_with([](Header& h) { h.length = longest; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.length = longest + 1; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.length = UINT64_MAX; }));
}

TEST(LibfabricWire, the_source_can_be_answered) {
    EXPECT_TRUE(is_taken(encoded(header_of(AF_INET6))));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.family = 0; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.family = AF_UNIX; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.port = 0; }));
    // An IPv4 address has one form, or one peer would pass for several.
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.scope_id = 1; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.addr[4] = 1; }));
    EXPECT_FALSE(is_taken_with([](Header& h) { h.source.addr[15] = 1; }));
}
