// SPDX-License-Identifier: MIT
//
// Conversion of struct kxfer_addr from socket addresses and to text.

#include <kxfer/kxfer.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

int kxfer_addr_from_sockaddr(const sockaddr* from, kxfer_addr* to) {
    *to = {};
    if (from->sa_family == AF_INET) {
        sockaddr_in in = {};
        memcpy(&in, from, sizeof(in));
        to->port = ntohs(in.sin_port);
        memcpy(to->addr, &in.sin_addr, sizeof(in.sin_addr));
    } else if (from->sa_family == AF_INET6) {
        sockaddr_in6 in6 = {};
        memcpy(&in6, from, sizeof(in6));
        to->port = ntohs(in6.sin6_port);
        to->scope_id = in6.sin6_scope_id;
        memcpy(to->addr, &in6.sin6_addr, sizeof(in6.sin6_addr));
    } else {
        return -EAFNOSUPPORT;
    }
    to->family = from->sa_family;
    return 0;
}

// "%eth0", or the number if the interface is gone.
static void format_scope(uint32_t scope_id, char* text, size_t size) {
    const int saved = errno;
    char name[IF_NAMESIZE] = "";
    text[0] = '\0';
    if (scope_id == 0) return;
    const bool known = if_indextoname(scope_id, name) != nullptr;
    errno = saved;
    if (known)
        snprintf(text, size, "%%%s", name);
    else
        snprintf(text, size, "%%%u", scope_id);
}

int kxfer_addr_format(const kxfer_addr* address, char* text, size_t size) {
    char host[INET6_ADDRSTRLEN] = "";
    char scope[IF_NAMESIZE + 2] = "";
    char port[8] = "";
    if (address->family != AF_INET && address->family != AF_INET6) return -EAFNOSUPPORT;
    inet_ntop(address->family, address->addr, host, sizeof(host));
    if (address->port != 0) snprintf(port, sizeof(port), ":%u", address->port);
    int length = 0;
    if (address->family == AF_INET) {
        length = snprintf(text, size, "%s%s", host, port);
    } else {
        format_scope(address->scope_id, scope, sizeof(scope));
        length = snprintf(text, size, port[0] ? "[%s%s]%s" : "%s%s%s", host, scope, port);
    }
    return length >= 0 && static_cast<size_t>(length) < size ? 0 : -ENOSPC;
}
