// SPDX-License-Identifier: MIT
#include "libfabric/address.hpp"

#include <netdb.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace kxfer::fi {

bool is_unspecified(const Address& address) {
    static constexpr uint8_t none[sizeof(address.addr)] = {};
    return memcmp(address.addr, none, sizeof(none)) == 0;
}

bool from_sockaddr(const void* from, size_t length, Address& to) {
    sockaddr_storage copy{};
    if (!from || length < sizeof(sa_family_t)) return false;
    memcpy(&copy, from, std::min(length, sizeof(copy)));
    if (copy.ss_family == AF_INET && length < sizeof(sockaddr_in)) return false;
    if (copy.ss_family == AF_INET6 && length < sizeof(sockaddr_in6)) return false;
    to = {};
    return kxfer_addr_from_sockaddr(reinterpret_cast<sockaddr*>(&copy), &to) == 0;
}

size_t sockaddr_bytes(const void* address) {
    if (!address) return 0;
    return static_cast<const sockaddr*>(address)->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                                        : sizeof(sockaddr_in);
}

socklen_t to_sockaddr(const Address& from, sockaddr_storage& to) {
    to = {};
    if (from.family == AF_INET6) {
        auto& in6 = reinterpret_cast<sockaddr_in6&>(to);
        in6.sin6_family = AF_INET6;
        in6.sin6_port = htons(from.port);
        in6.sin6_scope_id = from.scope_id;
        memcpy(&in6.sin6_addr, from.addr, sizeof(in6.sin6_addr));
        return sizeof(in6);
    }
    auto& in = reinterpret_cast<sockaddr_in&>(to);
    in.sin_family = AF_INET;
    in.sin_port = htons(from.port);
    memcpy(&in.sin_addr, from.addr, sizeof(in.sin_addr));
    return sizeof(in);
}

std::string text_of(const Address& address) {
    char text[64];
    kxfer_addr_format(&address, text, sizeof(text));
    return text;
}

int copy_sockaddr(const Address& from, void* to, size_t* length) {
    sockaddr_storage storage;
    size_t needed = to_sockaddr(from, storage), room = *length;
    if (to) memcpy(to, &storage, std::min(room, needed));
    *length = needed;
    return room < needed ? -FI_ETOOSMALL : 0;
}

int resolve(const char* node, const char* service, int family, uint64_t flags, Address& address) {
    addrinfo hints{}, *found;
    hints.ai_family = family;
    hints.ai_socktype = SOCK_DGRAM;
    if (flags & FI_NUMERICHOST) hints.ai_flags |= AI_NUMERICHOST;
    if (!node) hints.ai_flags |= AI_PASSIVE;
    if (getaddrinfo(node, service, &hints, &found) != 0) return -FI_ENODATA;
    bool known = from_sockaddr(found->ai_addr, found->ai_addrlen, address);
    freeaddrinfo(found);
    return known ? 0 : -FI_ENODATA;
}

std::string mailbox_name(uint16_t number) { return "fi.p." + std::to_string(number); }

static std::string name_of(char kind, uint64_t domain, uint64_t number) {
    char name[KXFER_NAME_MAX + 1];
    snprintf(name, sizeof(name), "fi.%c.%" PRIx64 ".%" PRIx64, kind, domain, number);
    return name;
}

std::string memory_name(uint64_t domain, uint64_t key) { return name_of('m', domain, key); }
std::string offer_name(uint64_t domain, uint64_t serial) { return name_of('o', domain, serial); }

} // namespace kxfer::fi
