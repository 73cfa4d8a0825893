// SPDX-License-Identifier: MIT
//
// The address of an endpoint: the address of its node, and a number in the place of the port. The
// number names its mailbox, "fi.p.NUMBER", in the node's name space of exports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

#include <kxfer/kxfer.h>

namespace kxfer::fi {

using Address = kxfer_addr;

inline bool same_node(const Address& a, const Address& b) {
    return a.family == b.family && a.scope_id == b.scope_id && memcmp(a.addr, b.addr, sizeof(a.addr)) == 0;
}

struct SameAddress {
    bool operator()(const Address& a, const Address& b) const { return a.port == b.port && same_node(a, b); }
};

struct HashAddress {
    size_t operator()(const Address& a) const {
        uint64_t high, low;
        memcpy(&high, a.addr, sizeof(high));
        memcpy(&low, a.addr + sizeof(high), sizeof(low));
        return (high * 31 + low) * 0x9e3779b97f4a7c15 + a.port * 40503U;
    }
};

// Neither address nor number.
bool is_unspecified(const Address& address);

// False: not of IPv4 or IPv6.
bool from_sockaddr(const void* from, size_t length, Address& to);

// Of an address of which only the family says how long it is.
size_t sockaddr_bytes(const void* address);

// Returns the length, that of a sockaddr_in or sockaddr_in6.
socklen_t to_sockaddr(const Address& from, sockaddr_storage& to);

// "10.77.0.1:4711"
std::string text_of(const Address& address);

// Writes as much as there is room for. 0, or -FI_ETOOSMALL. *length gets what is needed.
int copy_sockaddr(const Address& from, void* to, size_t* length);

// Looks a name and a service up, either may be NULL. 0, or -FI_ENODATA.
int resolve(const char* node, const char* service, int family, uint64_t flags, Address& address);

// The names of mailboxes and exports.
std::string mailbox_name(uint16_t number);
std::string memory_name(uint64_t domain, uint64_t key);
std::string offer_name(uint64_t domain, uint64_t serial);

} // namespace kxfer::fi
