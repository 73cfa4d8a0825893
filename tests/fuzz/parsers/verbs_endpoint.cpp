// SPDX-License-Identifier: MIT
//
// A QP as it is told over TCP: what is understood is in its bounds, and encodes to the
// same bytes.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "verbs/endpoint.hpp"

using namespace kxfer::verbs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    WireEndpoint wire{};

    memcpy(&wire, data, std::min(size, sizeof(wire)));
    const auto endpoint = decode(wire);
    if (!endpoint) return 0;
    const WireEndpoint again = encode(*endpoint);
    if (memcmp(&again, &wire, sizeof(wire)) != 0) __builtin_trap();
    if (endpoint->qpn < 2 || endpoint->qpn > max_qpn || endpoint->psn > max_psn) __builtin_trap();
    if (endpoint->mtu < IBV_MTU_256 || endpoint->mtu > IBV_MTU_4096) __builtin_trap();
    if (endpoint->min_rnr_timer > max_rnr_timer) __builtin_trap();
    if (endpoint->gid_type == GidType::iwarp || endpoint->transport > Transport::ud) __builtin_trap();
    return 0;
}
