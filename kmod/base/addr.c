// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses: struct kxfer_addr of the uapi, and its conversion to and from the kernel's
 * struct sockaddr_storage. Pure functions, any context. User space compiles this file
 * too, to test it.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/string.h>

#include "base/addr.h"

static unsigned int addr_bytes(const struct kxfer_addr *addr)
{
	return addr->family == AF_INET ? 4 : 16;
}

/** kxfer_addr_check() - 0 if well-formed (family 0 is not), else -EINVAL */
int kxfer_addr_check(const struct kxfer_addr *addr)
{
	if (addr->family == AF_INET6)
		return 0;
	if (addr->family != AF_INET || addr->scope_id)
		return -EINVAL;
	return memchr_inv(addr->addr + 4, 0, 12) ? -EINVAL : 0;
}

/** kxfer_addr_equal() - whether address, port and scope are the same */
bool kxfer_addr_equal(const struct kxfer_addr *a, const struct kxfer_addr *b)
{
	return a->family == b->family && a->port == b->port &&
	       a->scope_id == b->scope_id && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/** kxfer_addr_in_network() - whether the family and the first @prefix_len bits agree */
bool kxfer_addr_in_network(const struct kxfer_addr *addr,
			   const struct kxfer_addr *network, u32 prefix_len)
{
	u32 bytes = prefix_len / 8, bits = prefix_len % 8;
	u8 mask = bits ? 0xff << (8 - bits) : 0;

	if (addr->family != network->family || prefix_len > addr_bytes(addr) * 8)
		return false;
	if (memcmp(addr->addr, network->addr, bytes))
		return false;
	return !bits || !((addr->addr[bytes] ^ network->addr[bytes]) & mask);
}

/** kxfer_addr_to_sockaddr() - convert a well-formed address; unspecified if family is 0 */
void kxfer_addr_to_sockaddr(const struct kxfer_addr *addr,
			    struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = addr->family;
	if (addr->family == AF_INET) {
		sin->sin_port = htons(addr->port);
		memcpy(&sin->sin_addr, addr->addr, 4);
	} else if (addr->family == AF_INET6) {
		sin6->sin6_port = htons(addr->port);
		sin6->sin6_scope_id = addr->scope_id;
		memcpy(&sin6->sin6_addr, addr->addr, 16);
	}
}

/** kxfer_addr_from_sockaddr() - convert an IPv4 or IPv6 address; all zero for others */
void kxfer_addr_from_sockaddr(struct kxfer_addr *addr,
			      const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

	memset(addr, 0, sizeof(*addr));
	if (ss->ss_family == AF_INET) {
		addr->family = AF_INET;
		addr->port = ntohs(sin->sin_port);
		memcpy(addr->addr, &sin->sin_addr, 4);
	} else if (ss->ss_family == AF_INET6) {
		addr->family = AF_INET6;
		addr->port = ntohs(sin6->sin6_port);
		addr->scope_id = sin6->sin6_scope_id;
		memcpy(addr->addr, &sin6->sin6_addr, 16);
	}
}
