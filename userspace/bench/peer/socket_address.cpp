// SPDX-License-Identifier: MIT
#include "bench/peer/socket_address.hpp"

#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace kxfer::bench {

sockaddr_storage socket_address(const kxfer_addr& from) {
    sockaddr_storage address = {};
    if (from.family == AF_INET6) {
        auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
        in6.sin6_family = AF_INET6;
        in6.sin6_port = htons(from.port);
        in6.sin6_scope_id = from.scope_id;
        memcpy(&in6.sin6_addr, from.addr, sizeof(in6.sin6_addr));
    } else {
        auto& in = reinterpret_cast<sockaddr_in&>(address);
        in.sin_family = AF_INET;
        in.sin_port = htons(from.port);
        memcpy(&in.sin_addr, from.addr, sizeof(in.sin_addr));
    }
    return address;
}

kxfer_addr responder_address(kxfer_addr listener) {
    if (listener.port == 0) listener.port = KXFER_PORT;
    listener.port++;
    return listener;
}

kxfer_addr exchange_address(kxfer_addr responder) {
    responder.port++;
    return responder;
}

} // namespace kxfer::bench
