// SPDX-License-Identifier: MIT
//
// Endpoints of QPs as sent over TCP: an accepted endpoint is within its bounds and encodes to
// the same bytes.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "verbs/endpoint.hpp"

using namespace kxfer::verbs;

namespace {

// A call from that endpoint on, with its control QP for UC or UD.
void check_call(const uint8_t* data, size_t size) {
    constexpr size_t begin = offsetof(WireCall, from);
    WireCall call{};

    memcpy(reinterpret_cast<std::byte*>(&call) + begin, data, std::min(size, sizeof(call) - begin));
    const auto end = end_of(call);
    if (!end) return;
    if (end->beside.has_value() != (end->endpoint.transport != Transport::rc)) __builtin_trap();
    if (bytes_of(call).size() != (end->beside ? sizeof(call) : wire_head)) __builtin_trap();
    if (!end->beside) return;
    const WireBeside again = encode(*end->beside);
    if (memcmp(&again, &call.beside, sizeof(again)) != 0) __builtin_trap();
    if (end->beside->control.transport != Transport::rc) __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    WireEndpoint wire{};

    memcpy(&wire, data, std::min(size, sizeof(wire)));
    check_call(data, size);
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
