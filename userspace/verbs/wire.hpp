// SPDX-License-Identifier: MIT
//
// Private data of the verbs engine's connections and the status that a responder
// keeps: the whole protocol between responder and initiator. Big endian. An initiator
// asks for memory, and for receives if it wants to send messages. The responder
// allocates and registers the memory for that connection alone and names it in its
// answer, or refuses with an errno.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include <endian.h>

#include "engine/workload.hpp"

namespace kxfer::verbs {

constexpr uint32_t wire_magic = 0x4b585642; // "KXVB"
constexpr uint16_t wire_version = 2;
// All versions have the same format of an answer.
constexpr uint16_t first_wire_version = 1;

// Set in the operation together with SEND: each message has a WireCommand in front, and is
// answered with a SEND_WITH_INV of no bytes. An older responder refuses it as an unknown operation.
constexpr uint16_t answered_flag = 0x100;

// What the initiator's messages need at the responder. Message n of a connection
// lands in slot n % slots; slots begin on pages. Without messages slots is 0.
struct Receiving {
    uint32_t receives = 0; // kept posted at any time
    uint32_t slots = 0;
    uint32_t bytes = 0; // length of a message, and of the receive it lands in

    uint64_t stride() const {
        return (uint64_t{bytes} + bench::page_bytes - 1) / bench::page_bytes * bench::page_bytes;
    }
    uint64_t length() const { return slots * stride(); }
};

// rdma_connect() takes 56 bytes on the wire.
struct Request {
    uint64_t length = 0;   // bytes of memory wanted
    bool writable = false; // the initiator may write; it may READ in any case
    // The operation besides READ and WRITE, a number of bench::Operation; read or write if
    // there is no other. The responder refuses a number that it does not know (EOPNOTSUPP).
    uint16_t operation = 0;
    Receiving receiving = {};
    bool answered = false; // see answered_flag
    // What carries messages, a number of Transport (endpoint.hpp). UD by rdma_cm: a UD QP next
    // to the connection.
    uint16_t transport = 0;
};

// Request on RDMA_PS_UDP: asks for the UD QP of the connection with this memory. rdma_cm replies
// with its number and Q_Key; a refusal is an Answer.
struct Lookup {
    uint32_t rkey = 0;
};

// If the connection has receives, a page with a Status follows the `length` bytes.
struct Answer {
    uint32_t error = 0; // errno of a refusal
    uint32_t rkey = 0;
    uint64_t address = 0;
    uint64_t length = 0;
};

// Lies in the responder's memory, for the initiator to READ.
struct Status {
    uint64_t received = 0; // messages whose receives are posted again
    uint64_t wrong = 0;    // of these, messages other than expected
};

struct WireRequest {
    uint32_t magic;
    uint16_t version;
    uint16_t writable;
    uint64_t length;
    uint16_t operation;
    uint16_t transport;
    uint32_t receives;
    uint32_t slots;
    uint32_t bytes;
};

struct WireCommand {
    uint32_t number; // lower 32 bits of the message's number
    uint32_t rkey;   // key to invalidate
};

struct WireLookup {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint32_t rkey;
};

struct WireAnswer {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint32_t error;
    uint32_t rkey;
    uint64_t address;
    uint64_t length;
};

struct WireStatus {
    uint64_t received;
    uint64_t wrong;
};

static_assert(sizeof(WireCommand) == 8);
static_assert(sizeof(WireRequest) == 32 && sizeof(WireAnswer) == 32 && sizeof(WireStatus) == 16);
static_assert(sizeof(WireRequest) <= 56 && sizeof(WireLookup) == 12);

inline WireRequest encode(const Request& request) {
    return {htobe32(wire_magic),
            htobe16(wire_version),
            htobe16(request.writable ? 1 : 0),
            htobe64(request.length),
            htobe16(static_cast<uint16_t>(request.operation | (request.answered ? answered_flag : 0))),
            htobe16(request.transport),
            htobe32(request.receiving.receives),
            htobe32(request.receiving.slots),
            htobe32(request.receiving.bytes)};
}

inline WireLookup encode(const Lookup& lookup) {
    return {htobe32(wire_magic), htobe16(wire_version), 0, htobe32(lookup.rkey)};
}

// version: that of the initiator, so that it understands why it is refused.
inline WireAnswer encode(const Answer& answer, uint16_t version = wire_version) {
    return {htobe32(wire_magic),     htobe16(version),      0, htobe32(answer.error), htobe32(answer.rkey),
            htobe64(answer.address), htobe64(answer.length)};
}

inline WireStatus encode(const Status& status) { return {htobe64(status.received), htobe64(status.wrong)}; }

inline Status decode(const WireStatus& status) { return {be64toh(status.received), be64toh(status.wrong)}; }

// Empty: too short, or not of this protocol. The data that a provider hands over may be
// longer than the data sent.
inline std::optional<uint16_t> version_of(const void* data, size_t length) {
    uint32_t magic = 0;
    uint16_t version = 0;

    if (!data || length < sizeof(magic) + sizeof(version)) return std::nullopt;
    memcpy(&magic, data, sizeof(magic));
    memcpy(&version, static_cast<const std::byte*>(data) + sizeof(magic), sizeof(version));
    if (be32toh(magic) != wire_magic) return std::nullopt;
    return be16toh(version);
}

// Empty: too short, or not of this protocol and one of these versions.
template <typename Wire>
std::optional<Wire> take(const void* data, size_t length, uint16_t first, uint16_t last) {
    const auto version = version_of(data, length);
    Wire wire;

    if (!version || *version < first || *version > last || length < sizeof(wire)) return std::nullopt;
    memcpy(&wire, data, sizeof(wire));
    return wire;
}

inline std::optional<Request> decode_request(const void* data, size_t length) {
    const auto wire = take<WireRequest>(data, length, wire_version, wire_version);

    if (!wire) return std::nullopt;
    return Request{be64toh(wire->length),
                   wire->writable != 0,
                   static_cast<uint16_t>(be16toh(wire->operation) & ~answered_flag),
                   {be32toh(wire->receives), be32toh(wire->slots), be32toh(wire->bytes)},
                   (be16toh(wire->operation) & answered_flag) != 0,
                   be16toh(wire->transport)};
}

inline std::optional<Lookup> decode_lookup(const void* data, size_t length) {
    const auto wire = take<WireLookup>(data, length, wire_version, wire_version);

    return wire ? std::optional(Lookup{be32toh(wire->rkey)}) : std::nullopt;
}

inline std::optional<Answer> decode_answer(const void* data, size_t length) {
    const auto wire = take<WireAnswer>(data, length, first_wire_version, wire_version);

    return wire ? std::optional(Answer{be32toh(wire->error), be32toh(wire->rkey), be64toh(wire->address),
                                       be64toh(wire->length)})
                : std::nullopt;
}

} // namespace kxfer::verbs
