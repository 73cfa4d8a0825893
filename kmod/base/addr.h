/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of the uapi and of the kernel. See addr.c. */
#ifndef KXFER_ADDR_H
#define KXFER_ADDR_H

#include <linux/kxfer.h>
#include <linux/socket.h>

int kxfer_addr_check(const struct kxfer_addr *addr);
bool kxfer_addr_equal(const struct kxfer_addr *a, const struct kxfer_addr *b);
bool kxfer_addr_in_network(const struct kxfer_addr *addr,
			   const struct kxfer_addr *network, u32 prefix_len);
void kxfer_addr_to_sockaddr(const struct kxfer_addr *addr,
			    struct sockaddr_storage *ss);
void kxfer_addr_from_sockaddr(struct kxfer_addr *addr,
			      const struct sockaddr_storage *ss);

#endif /* KXFER_ADDR_H */
