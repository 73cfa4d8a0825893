// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces: which sessions, listeners and links are in one, and how it ends.
 *
 * A session belongs to the namespace of the process that opened it, wherever its file is used
 * later. Its listeners, links and names of exports are of that namespace: a link finds the names
 * of its own namespace only, and sessions of two namespaces never share a link. Limits are those
 * of the node.
 *
 * Each rdma_cm id holds its namespace (get_net() in __rdma_create_id()), and so do the ids that
 * rdma_cm makes itself: one for each device under a wildcard listener, one for each request. As
 * long as there is one, no pernet operation is called. So none can end what a dying namespace has:
 * that has to end before, or the namespace never dies. What keeps a namespace are its sessions,
 * and the last one that ends takes the rest along.
 *
 * That a namespace can die, as a proof. The objects on both sides of this file's border that hold
 * one are sessions (front/sessions.c), listeners (listener.c), links (link.c), their lanes' ids
 * (cm.c) and that of UD (bench/dedicated_ud.c).
 *  1. A session holds it until its end, as a socket does. Its peers and their lines (job/) are
 *     closed then; a line that looks for a link is work of a session that exists. So nothing
 *     connects in a dying namespace.
 *  2. A listener of another namespace than the first belongs to a session: LISTEN_F_KEEP is
 *     refused there. It is destroyed before its session calls kxfer_net_leave(), and
 *     rdma_destroy_id() waits for its handler. So after the last session of a namespace has
 *     destroyed its listeners, no link is accepted there any more.
 *  3. Links of initiators are made by calls of sessions and by lines: none is made after step 1.
 *  4. The last session fails all links of the namespace, under nets_mutex: a session that is
 *     opened meanwhile is counted before, and nothing is failed, or after, and its links are
 *     younger. The links end as link.c proves: their ids are destroyed, and the reference of the
 *     link is dropped with its memory. Nobody waits here, because nothing has to: what is left
 *     holds the namespace until it is gone.
 *  5. Nothing that lasts has a reference to such a link: peers and targets have ended with their
 *     session, exposures with the link.
 *
 * In the first namespace nothing ends with the last session: links stay for the next user, and
 * listeners with LISTEN_F_KEEP have no session.
 *
 * When the namespace dies, its network devices go first (default_device_ops), and RDMA devices on
 * them are queued to be removed. Then exit functions of subsystems are called in the reverse order
 * of their registration: net_ends() before that of rdma_cm, which this module needs to load; that
 * of rxe may come before or after. The order does not matter, because nothing is left to be
 * ended: net_ends() checks the count, rdma_cm its ports, and rxe frees its sockets.
 *
 * Context: all may sleep. Lock order: nets_mutex, links_lock.
 */
#include "base/log.h"

#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <rdma/ib_verbs.h>

#include "base/compat.h"
#include "base/fault.h"
#include "link/link.h"
#include "link/net.h"

/**
 * struct kxfer_net - what is in a namespace
 * @nr_sessions: sessions, until they have ended what they had
 */
struct kxfer_net {
	u32 nr_sessions;
};

static unsigned int net_id;
static DEFINE_MUTEX(nets_mutex);

/** kxfer_net_is_first() - whether it is the namespace that the kernel booted with */
bool kxfer_net_is_first(const struct net *net)
{
	return net_eq(net, &init_net);
}

/** kxfer_net_join() - count a new session. Return: the caller's namespace, with a reference */
struct net *kxfer_net_join(void)
{
	struct net *net = get_net(current->nsproxy->net_ns);
	struct kxfer_net *own = net_generic(net, net_id);

	mutex_lock(&nets_mutex);
	own->nr_sessions++;
	mutex_unlock(&nets_mutex);
	return net;
}

/**
 * kxfer_net_leave() - a session has ended; the last one ends the links of its namespace
 * @net: from kxfer_net_join(); the session has no listener, peer, line or connection any more
 */
void kxfer_net_leave(struct net *net)
{
	struct kxfer_net *own = net_generic(net, net_id);

	mutex_lock(&nets_mutex);
	if (!--own->nr_sessions && !kxfer_net_is_first(net))
		kxfer_link_fail_net(net, -ESHUTDOWN);
	mutex_unlock(&nets_mutex);
	put_net(net);
}

/**
 * kxfer_net_check_device() - may a device be used in a namespace?
 * @net: namespace of a listener or link
 * @ibdev: device that rdma_cm chose
 *
 * Drivers of iWARP (siw, irdma, cxgb4) connect and route in the first namespace, or in that of
 * the calling thread, whatever the id says; and so does rxe where KXFER_RXE_HAS_NETS is 0. With
 * equal addresses in both they would reach hosts of another namespace than the user's.
 *
 * Return: 0; -ENODEV: it belongs to another namespace; -EOPNOTSUPP: its driver has no namespaces.
 */
int kxfer_net_check_device(const struct net *net, struct ib_device *ibdev)
{
	if (!rdma_dev_access_netns(ibdev, net))
		return -ENODEV;
	if (kxfer_net_is_first(net))
		return 0;
	if (rdma_protocol_iwarp(ibdev, rdma_start_port(ibdev)))
		return -EOPNOTSUPP;
	return KXFER_RXE_HAS_NETS || !ib_uses_virt_dma(ibdev) ? 0 : -EOPNOTSUPP;
}

static void net_ends(struct net *net)
{
	const struct kxfer_net *own = net_generic(net, net_id);

	WARN_ON_ONCE(own->nr_sessions);
}

static struct pernet_operations net_ops = {
	.exit = net_ends,
	.id = &net_id,
	.size = sizeof(struct kxfer_net),
};

/** kxfer_net_init() - register for namespaces that come and go. Return: 0 or -ENOMEM */
int kxfer_net_init(void)
{
	return kxfer_try(NET_OPS, register_pernet_subsys(&net_ops));
}

/** kxfer_net_exit() - no session, listener or link is left; sleeps */
void kxfer_net_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}
