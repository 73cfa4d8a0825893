// SPDX-License-Identifier: MIT
#include "libfabric/wire.hpp"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kxfer::fi {

namespace {

struct OnWire {
    uint8_t version, kind, flags, zero;
    uint32_t sequence, id, zero1;
    uint64_t length, tag, data, place;
    uint16_t family, port;
    uint32_t scope_id;
    uint8_t addr[16];
};
static_assert(sizeof(OnWire) == header_bytes);

} // namespace

void encode(const Header& header, uint8_t* to) {
    OnWire wire{};
    wire.version = wire_version;
    wire.kind = static_cast<uint8_t>(header.kind);
    wire.flags = header.flags;
    wire.sequence = htole32(header.sequence);
    wire.id = htole32(header.id);
    wire.length = htole64(header.length);
    wire.tag = htole64(header.tag);
    wire.data = htole64(header.data);
    wire.place = htole64(header.place);
    wire.family = htole16(header.source.family);
    wire.port = htole16(header.source.port);
    wire.scope_id = htole32(header.source.scope_id);
    memcpy(wire.addr, header.source.addr, sizeof(wire.addr));
    memcpy(to, &wire, sizeof(wire));
}

static bool is_sound_for_connection(const OnWire& wire, size_t bytes) {
    uint64_t length = le64toh(wire.length);
    if (wire.flags || wire.tag || wire.place || length > cm_data_bytes || bytes != header_bytes + length)
        return false;
    return has_payload(static_cast<Kind>(wire.kind)) || (length == 0 && wire.data == 0);
}

// The address is one that can be answered: peers are told apart by it, and it is connected with.
static bool is_sound(const OnWire& wire, size_t bytes) {
    uint16_t family = le16toh(wire.family);
    bool rest = std::any_of(wire.addr + 4, std::end(wire.addr), [](uint8_t byte) { return byte != 0; });
    if (wire.version != wire_version || wire.flags & ~header_flags || wire.zero || wire.zero1) return false;
    if (wire.kind < 1 || wire.kind > static_cast<uint8_t>(Kind::bye)) return false;
    if (is_of_connection(static_cast<Kind>(wire.kind)) && !is_sound_for_connection(wire, bytes)) return false;
    if (le64toh(wire.length) > longest || wire.port == 0) return false;
    return family == AF_INET6 || (family == AF_INET && wire.scope_id == 0 && !rest);
}

bool decode(const uint8_t* from, size_t bytes, Header& header) {
    OnWire wire;
    if (bytes < sizeof(wire)) return false;
    memcpy(&wire, from, sizeof(wire));
    if (!is_sound(wire, bytes)) return false;
    header.kind = static_cast<Kind>(wire.kind);
    header.flags = wire.flags;
    header.sequence = le32toh(wire.sequence);
    header.id = le32toh(wire.id);
    header.length = le64toh(wire.length);
    header.tag = le64toh(wire.tag);
    header.data = le64toh(wire.data);
    header.place = le64toh(wire.place);
    header.source.family = le16toh(wire.family);
    header.source.port = le16toh(wire.port);
    header.source.scope_id = le32toh(wire.scope_id);
    memcpy(header.source.addr, wire.addr, sizeof(wire.addr));
    return true;
}

} // namespace kxfer::fi
