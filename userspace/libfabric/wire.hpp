// SPDX-License-Identifier: MIT
//
// What endpoints send each other: messages to mailboxes, each with a header before its payload. A
// message without any byte asks for nothing: that it arrives shows its sender that the mailbox is there.
//
// @sequence counts the messages that a sender has put into a mailbox since it opened the target. The
// module keeps them in order; completions of RECVs may come in another one (Documentation/uapi.rst), and
// the receiver puts them right by it. All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libfabric/address.hpp"

namespace kxfer::fi {

enum class Kind : uint8_t {
    data = 1,    // the begin of a message of @length bytes
    more = 2,    // bytes of message @id, from @place on
    offer = 3,   // a message of @length bytes that is to be READ from the export of serial @place
    answer = 4,  // of message @id: @place is an Answer
    written = 5, // WRITEs before this are in memory; @data is for the completion queue

    // Of connections (connection.hpp). The payload of the first three is the program's.
    connect = 6, // to a passive endpoint: @source asks for a connection, and will send by the word @data
    accept = 7,  // the answer, from the endpoint that is the other end: @data is that of the request
    reject = 8,  // the answer, from the passive endpoint: @data is that of the request
    ready = 9,   // who has asked has seen that it was accepted
    bye = 10,    // nothing else comes
};

constexpr bool is_of_connection(Kind kind) { return kind >= Kind::connect; }

// The payload is @length bytes, or a part of them.
constexpr bool has_payload(Kind kind) {
    return kind == Kind::data || kind == Kind::more || kind == Kind::connect || kind == Kind::accept ||
           kind == Kind::reject;
}

enum Answer : uint64_t {
    answer_done = 0,   // the message is with its receiver
    answer_wanted = 1, // the bytes of an offer are to be sent
    answer_failed = 2, // the receiver could not take the message
};

enum HeaderFlag : uint8_t {
    header_tagged = 1,
    header_data = 2,   // @data is for the completion queue
    header_answer = 4, // an answer is wanted when the message is with its receiver
};

struct Header {
    Kind kind;
    uint8_t flags;
    uint32_t sequence;
    uint32_t id;
    uint64_t length;
    uint64_t tag;
    uint64_t data;
    uint64_t place;
    Address source;
};

inline constexpr uint8_t wire_version = 2;
inline constexpr uint8_t header_flags = header_tagged | header_data | header_answer; // all there are
inline constexpr uint64_t longest = 1ULL << 36;                                      // bytes of a message
inline constexpr size_t header_bytes = 72;
inline constexpr size_t cm_data_bytes = 1024; // of the program, in a message of a connection

void encode(const Header& header, uint8_t* to);

// False: not a message of this version, or one that no sender of this version makes.
bool decode(const uint8_t* from, size_t bytes, Header& header);

} // namespace kxfer::fi
