// SPDX-License-Identifier: MIT
//
// The attributes that two QPs exchange over TCP: the Request of wire.hpp is followed by
// the initiator's Endpoint, the Answer by the responder's. Big endian, 64 bytes each way,
// once; after that the TCP connection carries nothing. A refusal has an Endpoint of zeros,
// and nothing after it.
//
// UC and UD have no READ, so the initiator could read neither the responder's Status nor the
// data that arrived. So for them each end has a control QP, an RC one, in the same PD: it
// READs, and WRITEs what is not measured. For UC and UD alone its attributes (Beside) follow
// the Endpoint: 104 bytes each way.
//
// Any program that may connect may send anything: decoding checks every number.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <endian.h>
#include <infiniband/verbs.h>

#include "verbs/device.hpp"
#include "verbs/wire.hpp"

namespace kxfer::verbs {

// The numbers never change.
enum class Transport : uint8_t { rc, uc, ud };

constexpr uint32_t max_qpn = 0xffffff;
constexpr uint32_t max_psn = 0xffffff;
constexpr uint8_t max_rnr_timer = 31;

struct Endpoint {
    Transport transport = Transport::rc;
    // From the initiator: its maximum; from the responder: what both use.
    ibv_mtu mtu = IBV_MTU_1024;
    GidType gid_type = GidType::ib;
    // READs and atomics in flight at once that the initiator issues and the responder serves.
    uint8_t reads = 0;
    uint32_t qpn = 0;
    uint32_t psn = 0;           // PSN of its first packet
    uint16_t lid = 0;           // 0 on RoCE
    uint8_t min_rnr_timer = 12; // timer code for the responder's RNR NAKs
    uint8_t tos = 0;            // type of service; the responder takes that of the initiator
    std::array<uint8_t, 16> gid{};
};

struct Beside {
    Endpoint control;  // RC
    uint32_t qkey = 0; // UD: the Q_Key of messages to the QP
};

// One end of a connection.
struct End {
    Endpoint endpoint;
    std::optional<Beside> beside; // UC and UD alone
};

struct WireEndpoint {
    uint8_t transport;
    uint8_t mtu;
    uint8_t gid_type;
    uint8_t reads;
    uint32_t qpn;
    uint32_t psn;
    uint16_t lid;
    uint8_t min_rnr_timer;
    uint8_t tos;
    uint8_t gid[16];
};

struct WireBeside {
    WireEndpoint control;
    uint32_t qkey;
    uint32_t reserved;
};

// Only UC and UD send `beside`.
struct WireCall {
    WireRequest request;
    WireEndpoint from;
    WireBeside beside;
};

struct WireReply {
    WireAnswer answer;
    WireEndpoint from;
    WireBeside beside;
};

static_assert(sizeof(WireEndpoint) == 32 && sizeof(WireBeside) == 40);
static_assert(sizeof(WireCall) == 104 && sizeof(WireReply) == 104);

// Lengths of a call or reply: the part that each has, and all of one of the given transport.
constexpr size_t wire_head = offsetof(WireCall, beside);
static_assert(wire_head == 64 && offsetof(WireReply, beside) == wire_head);

constexpr size_t wire_length(const WireEndpoint& from) {
    const bool beside = from.transport == static_cast<uint8_t>(Transport::uc) ||
                        from.transport == static_cast<uint8_t>(Transport::ud);

    return beside ? sizeof(WireCall) : wire_head;
}

constexpr const char* transport_name(Transport transport) {
    return transport == Transport::rc ? "RC" : transport == Transport::uc ? "UC" : "UD";
}

inline WireEndpoint encode(const Endpoint& endpoint) {
    WireEndpoint wire{static_cast<uint8_t>(endpoint.transport),
                      static_cast<uint8_t>(endpoint.mtu),
                      static_cast<uint8_t>(endpoint.gid_type),
                      endpoint.reads,
                      htobe32(endpoint.qpn),
                      htobe32(endpoint.psn),
                      htobe16(endpoint.lid),
                      endpoint.min_rnr_timer,
                      endpoint.tos,
                      {}};

    memcpy(wire.gid, endpoint.gid.data(), sizeof(wire.gid));
    return wire;
}

// Empty: some number is out of range. The MTU is checked first, because ibv_mtu, an enumeration of
// C, cannot hold a number far outside its own.
inline std::optional<Endpoint> decode(const WireEndpoint& wire) {
    Endpoint endpoint;

    if (wire.mtu < IBV_MTU_256 || wire.mtu > IBV_MTU_4096) return std::nullopt;
    endpoint.transport = static_cast<Transport>(wire.transport);
    endpoint.mtu = static_cast<ibv_mtu>(wire.mtu);
    endpoint.gid_type = static_cast<GidType>(wire.gid_type);
    endpoint.reads = wire.reads;
    endpoint.qpn = be32toh(wire.qpn);
    endpoint.psn = be32toh(wire.psn);
    endpoint.lid = be16toh(wire.lid);
    endpoint.min_rnr_timer = wire.min_rnr_timer;
    endpoint.tos = wire.tos;
    memcpy(endpoint.gid.data(), wire.gid, sizeof(wire.gid));
    const bool has_gid = std::any_of(endpoint.gid.begin(), endpoint.gid.end(), [](uint8_t b) { return b; });
    const bool roce = endpoint.gid_type == GidType::roce_v1 || endpoint.gid_type == GidType::roce_v2;
    if (wire.transport > static_cast<uint8_t>(Transport::ud) ||
        wire.gid_type >= static_cast<uint8_t>(GidType::iwarp) || endpoint.qpn < 2 || endpoint.qpn > max_qpn ||
        endpoint.psn > max_psn || wire.min_rnr_timer > max_rnr_timer || (roce && !has_gid) ||
        (!roce && endpoint.lid == 0))
        return std::nullopt;
    return endpoint;
}

inline WireBeside encode(const Beside& beside) { return {encode(beside.control), htobe32(beside.qkey), 0}; }

// Empty: that is no valid control QP.
inline std::optional<Beside> decode(const WireBeside& wire) {
    const auto control = decode(wire.control);

    if (!control || control->transport != Transport::rc || wire.reserved) return std::nullopt;
    return Beside{*control, be32toh(wire.qkey)};
}

// Decodes a complete call or reply.
template <typename Wire> std::optional<End> end_of(const Wire& wire) {
    const auto endpoint = decode(wire.from);

    if (!endpoint) return std::nullopt;
    if (endpoint->transport == Transport::rc) return End{*endpoint, {}};
    auto beside = decode(wire.beside);
    return beside ? std::optional(End{*endpoint, beside}) : std::nullopt;
}

// The bytes of a call or a reply that are sent.
template <typename Wire> std::span<const std::byte> bytes_of(const Wire& wire) {
    return std::as_bytes(std::span(&wire, 1)).first(wire_length(wire.from));
}

} // namespace kxfer::verbs
