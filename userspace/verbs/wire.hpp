// SPDX-License-Identifier: MIT
//
// Private data of the verbs engine's connections: all that it and the
// responder say to each other. Big endian. An initiator asks for memory; the
// responder allocates and registers it for that connection alone and names it
// in its answer, or says in a refusal which errno stands against it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include <endian.h>

namespace kxfer::verbs {

constexpr uint32_t wire_magic = 0x4b585642; // "KXVB"
constexpr uint16_t wire_version = 1;

// rdma_connect() takes 56 bytes on the wire.
struct Request {
    uint64_t length = 0;   // bytes of memory wanted
    bool writable = false; // by the initiator; it is readable in any case
};

struct Answer {
    uint32_t error = 0; // errno of a refusal
    uint32_t rkey = 0;
    uint64_t address = 0;
    uint64_t length = 0;
};

struct WireRequest {
    uint32_t magic;
    uint16_t version;
    uint16_t writable;
    uint64_t length;
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

static_assert(sizeof(WireRequest) == 16 && sizeof(WireAnswer) == 32);

inline WireRequest encode(const Request& request) {
    return {htobe32(wire_magic), htobe16(wire_version), htobe16(request.writable ? 1 : 0),
            htobe64(request.length)};
}

inline WireAnswer encode(const Answer& answer) {
    return {htobe32(wire_magic),     htobe16(wire_version), 0, htobe32(answer.error), htobe32(answer.rkey),
            htobe64(answer.address), htobe64(answer.length)};
}

// Empty: too short, or not of this protocol and version. What a provider hands
// over may be longer than what was sent.
template <typename Wire> std::optional<Wire> take(const void* data, size_t length) {
    Wire wire;

    if (!data || length < sizeof(wire)) return std::nullopt;
    memcpy(&wire, data, sizeof(wire));
    if (be32toh(wire.magic) != wire_magic || be16toh(wire.version) != wire_version) return std::nullopt;
    return wire;
}

inline std::optional<Request> decode_request(const void* data, size_t length) {
    const auto wire = take<WireRequest>(data, length);

    return wire ? std::optional(Request{be64toh(wire->length), wire->writable != 0}) : std::nullopt;
}

inline std::optional<Answer> decode_answer(const void* data, size_t length) {
    const auto wire = take<WireAnswer>(data, length);

    return wire ? std::optional(Answer{be32toh(wire->error), be32toh(wire->rkey), be64toh(wire->address),
                                       be64toh(wire->length)})
                : std::nullopt;
}

} // namespace kxfer::verbs
