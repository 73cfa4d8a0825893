/* SPDX-License-Identifier: GPL-2.0 */
/* Network namespaces, and what is in them. See net.c. */
#ifndef KXFER_NET_H
#define KXFER_NET_H

#include <linux/types.h>

struct ib_device;
struct net;

struct net *kxfer_net_join(void);
void kxfer_net_leave(struct net *net);
bool kxfer_net_is_first(const struct net *net);
int kxfer_net_check_device(const struct net *net, struct ib_device *ibdev);
int kxfer_net_init(void);
void kxfer_net_exit(void);

#endif /* KXFER_NET_H */
