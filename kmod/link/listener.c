// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners: addresses on which this node accepts links, in the network namespace of a session.
 *
 * A listener belongs to the session that made it, or with LISTEN_F_KEEP to the
 * module, on which it holds no reference. A listener that is bound to an address is bound to
 * the device of that address. When the device goes the listener's cm_id is destroyed, and
 * retry_work makes it again once the address is back on a device. rdma_cm lets go of a device
 * later than this module. A listener made in between is bound to the device that goes: it
 * gets DEVICE_REMOVAL, and retry_work destroys its cm_id, for which rdma_cm waits.
 *
 * An address can leave its device while the device stays: by the failover of a bond, or because
 * an administrator moves it. A listener that stayed there would get no requests, and rdma_cm
 * reports only one such case (ADDR_CHANGE, when a bond takes another MAC address). So each
 * change of addresses or GIDs queues check_work, which checks for each listener where rdma_cm
 * would bind it now. GIDs follow addresses later, by a work of the RDMA core, with an event
 * of their own.
 *
 * The event handler hands requests to cm.c and takes no lock of this file. So
 * rdma_destroy_id(), which waits for the handler, may be called under listeners_mutex, and
 * the listener is freed after that.
 *
 * Lock order: listeners_mutex, then the locks of rdma_cm.
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/inetdevice.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/stats.h"
#include "link/cm.h"
#include "link/key.h"
#include "link/link.h"
#include "link/listener.h"
#include "link/net.h"
#include "node/session.h"

#define BACKLOG		128
#define RETRY_MS	2000
#define CHECK_MS	100	/* delay: addresses change several at a time */

/**
 * struct kxfer_listener - an address that is listened on
 * @node: in the list of listeners
 * @id: node-wide id
 * @session: session that the listener belongs to, or NULL: the module
 * @net: network namespace; held by @session, or the first one, which stays
 * @addr: address and port
 * @flags: KXFER_LISTEN_F_*
 * @keys: keys, one of which an initiator has to prove, or NULL; a reference
 * @patience: how long accepted links wait for their peers
 * @memcg: memory cgroup of the creator, charged for the accepted links; a reference
 * @cm_id: listening id, or NULL: not listening
 * @outdated: @cm_id must be made again: its device goes, or no longer has the address
 * @nr_accepted: connections accepted
 * @nr_refused: connections refused
 */
struct kxfer_listener {
	struct list_head node;
	u64 id;
	struct kxfer_session *session;
	struct net *net;
	struct kxfer_addr addr;
	u32 flags;
	struct kxfer_keys *keys;
	struct kxfer_patience patience;
	struct mem_cgroup *memcg;
	struct rdma_cm_id *cm_id;
	bool outdated;
	atomic64_t nr_accepted;
	atomic64_t nr_refused;
};

static DEFINE_MUTEX(listeners_mutex);
static LIST_HEAD(listeners);
static u32 nr_listeners;
static u64 last_listener_id;

static void retry_inactive(struct work_struct *work);
static DECLARE_DELAYED_WORK(retry_work, retry_inactive);

static void check_addresses(struct work_struct *work);
static DECLARE_DELAYED_WORK(check_work, check_addresses);

static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kxfer_listener *listener = id->context;
	struct mem_cgroup *old;
	int ret;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ||
	    event->event == RDMA_CM_EVENT_ADDR_CHANGE) {
		WRITE_ONCE(listener->outdated, true);
		mod_delayed_work(kxfer_wq, &retry_work, 0);
	}
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	old = set_active_memcg(listener->memcg);
	ret = kxfer_cm_request(id, event, listener->flags & KXFER_LISTEN_F_ANY_PORT,
			       listener->keys, &listener->patience);
	set_active_memcg(old);
	atomic64_inc(ret ? &listener->nr_refused : &listener->nr_accepted);
	return ret;
}

/* Called with listeners_mutex held. */
static int start(struct kxfer_listener *listener)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;
	int ret;

	id = kxfer_try_ptr(LISTENER_ID, rdma_create_id(listener->net, listener_event, listener,
						       RDMA_PS_TCP, IB_QPT_RC));
	if (IS_ERR(id))
		return PTR_ERR(id);
	kxfer_addr_to_sockaddr(&listener->addr, &ss);
	ret = kxfer_try(LISTENER_AFONLY, rdma_set_afonly(id, 1));
	if (!ret)
		ret = kxfer_try(LISTENER_BIND, rdma_bind_addr(id, (struct sockaddr *)&ss));
	/* Under a wildcard address there is no device yet: each link is checked. */
	if (!ret && id->device)
		ret = kxfer_net_check_device(listener->net, id->device);
	if (!ret)
		ret = kxfer_try(LISTENER_LISTEN, rdma_listen(id, BACKLOG));
	if (ret) {
		rdma_destroy_id(id);
		return ret == -ENODEV ? -EADDRNOTAVAIL : ret;
	}
	listener->cm_id = id;
	return 0;
}

/* Called with listeners_mutex held. */
static void stop(struct kxfer_listener *listener)
{
	if (listener->cm_id)
		rdma_destroy_id(listener->cm_id);
	listener->cm_id = NULL;
	listener->outdated = false;
}

static void free_listener(struct kxfer_listener *listener)
{
	kxfer_keys_put(listener->keys);
	mem_cgroup_put(listener->memcg);
	kfree(listener);
}

/* Called with listeners_mutex held. */
static void destroy(struct kxfer_listener *listener)
{
	list_del(&listener->node);
	nr_listeners--;
	stop(listener);
	free_listener(listener);
	kxfer_stat_dec(KXFER_STAT_LIVE_LISTENERS);
}

static void retry_inactive(struct work_struct *work)
{
	struct kxfer_listener *listener;
	bool again = false;

	kxfer_delay(LISTENER_RETRY);
	mutex_lock(&listeners_mutex);
	list_for_each_entry(listener, &listeners, node) {
		if (READ_ONCE(listener->outdated))
			stop(listener);
		if (!listener->cm_id && start(listener))
			again = true;
	}
	if (again)
		queue_delayed_work(kxfer_wq, &retry_work, msecs_to_jiffies(RETRY_MS));
	mutex_unlock(&listeners_mutex);
}

static int probe_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/*
 * Whether rdma_cm would bind the listener where it is now. To find out, bind another id to its
 * address, with any free port. Called with listeners_mutex held.
 */
static bool is_in_place(const struct kxfer_listener *listener)
{
	const struct rdma_cm_id *id = listener->cm_id;
	struct kxfer_addr addr = listener->addr;
	struct sockaddr_storage ss;
	struct rdma_cm_id *probe;
	bool in_place;
	int ret;

	probe = rdma_create_id(listener->net, probe_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(probe))
		return true;
	addr.port = 0;
	kxfer_addr_to_sockaddr(&addr, &ss);
	ret = rdma_bind_addr(probe, (struct sockaddr *)&ss);
	if (ret)
		in_place = ret != -EADDRNOTAVAIL && ret != -ENODEV;
	else
		in_place = probe->device == id->device && probe->port_num == id->port_num &&
			   probe->route.addr.dev_addr.bound_dev_if ==
			   id->route.addr.dev_addr.bound_dev_if;
	rdma_destroy_id(probe);
	return in_place;
}

/* A wildcard listener is bound to no device: rdma_cm listens on all of them. */
static void check_addresses(struct work_struct *work)
{
	struct kxfer_listener *listener;
	bool again = false;

	kxfer_delay(LISTENER_CHECK);
	mutex_lock(&listeners_mutex);
	list_for_each_entry(listener, &listeners, node) {
		if (listener->cm_id && listener->cm_id->device && !is_in_place(listener))
			WRITE_ONCE(listener->outdated, true);
		again |= !listener->cm_id || READ_ONCE(listener->outdated);
	}
	if (again)
		mod_delayed_work(kxfer_wq, &retry_work, 0);
	mutex_unlock(&listeners_mutex);
}

/** kxfer_listener_check() - addresses or GIDs of this node have changed; any context */
void kxfer_listener_check(void)
{
	queue_delayed_work(kxfer_wq, &check_work, msecs_to_jiffies(CHECK_MS));
}

static int address_event(struct notifier_block *block, unsigned long event, void *address)
{
	kxfer_listener_check();
	return NOTIFY_DONE;
}

static struct notifier_block ipv4_events = { .notifier_call = address_event };
static struct notifier_block ipv6_events = { .notifier_call = address_event };

/* Called with listeners_mutex held. Does nothing without listeners, as at the module's exit. */
static void schedule_retry(void)
{
	if (!list_empty(&listeners))
		mod_delayed_work(kxfer_wq, &retry_work, msecs_to_jiffies(RETRY_MS));
}

/** kxfer_listener_device_added() - a device came, perhaps one that a listener waits for */
void kxfer_listener_device_added(void)
{
	mutex_lock(&listeners_mutex);
	schedule_retry();
	mutex_unlock(&listeners_mutex);
}

/** kxfer_listener_device_removed() - stop listening on a device; sleeps */
void kxfer_listener_device_removed(struct ib_device *ibdev)
{
	struct kxfer_listener *listener;

	mutex_lock(&listeners_mutex);
	list_for_each_entry(listener, &listeners, node)
		if (listener->cm_id && listener->cm_id->device == ibdev)
			stop(listener);
	schedule_retry();
	mutex_unlock(&listeners_mutex);
}

static bool is_wildcard(const struct kxfer_addr *addr)
{
	return !memchr_inv(addr->addr, 0, sizeof(addr->addr));
}

/*
 * rdma_cm refuses a taken address too, but reports a conflict with a wildcard as EADDRNOTAVAIL
 * (cma_check_port()), as if this node did not have the address. Called with listeners_mutex
 * held.
 */
static bool is_taken(const struct net *net, const struct kxfer_addr *addr)
{
	const struct kxfer_listener *other;

	list_for_each_entry(other, &listeners, node) {
		if (!net_eq(other->net, net) || other->addr.family != addr->family ||
		    other->addr.port != addr->port)
			continue;
		if (is_wildcard(addr) || is_wildcard(&other->addr) ||
		    kxfer_addr_equal(addr, &other->addr))
			return true;
	}
	return false;
}

/* Once the listener is in the list another session may delete it. */
static int insert(struct kxfer_listener *listener, struct kxfer_listen_add *cmd)
{
	int ret;

	mutex_lock(&listeners_mutex);
	if (nr_listeners >= KXFER_MAX_LISTENERS)
		ret = -EDQUOT;
	else
		ret = is_taken(listener->net, &listener->addr) ? -EADDRINUSE : start(listener);
	if (!ret) {
		nr_listeners++;
		listener->id = ++last_listener_id;
		list_add_tail(&listener->node, &listeners);
		cmd->addr = listener->addr;
		cmd->listener = listener->id;
		kxfer_stat_inc(KXFER_STAT_LIVE_LISTENERS);
	}
	mutex_unlock(&listeners_mutex);
	return ret;
}

/*
 * What is refused in other namespaces than the first. A listener that belongs to no session would
 * keep its namespace for ever (net.c). A source port below 1024 proves nothing of a peer in a
 * network of namespaces: root of any of them can bind it.
 */
static int check_first(const struct net *net, const struct kxfer_listen_add *cmd)
{
	if (kxfer_net_is_first(net))
		return 0;
	if (cmd->flags & KXFER_LISTEN_F_KEEP)
		return -EOPNOTSUPP;
	return cmd->nr_keys ? 0 : -EACCES;
}

/** kxfer_listener_add() - KXFER_LISTEN_ADD */
int kxfer_listener_add(struct kxfer_session *session, void *arg)
{
	struct kxfer_listen_add *cmd = arg;
	struct kxfer_listener *listener;
	struct kxfer_patience patience;
	int ret;

	if (cmd->flags & ~(KXFER_LISTEN_F_KEEP | KXFER_LISTEN_F_ANY_PORT))
		return -EOPNOTSUPP;
	if (kxfer_addr_check(&cmd->addr) || cmd->__reserved ||
	    kxfer_patience_init(&patience, cmd->silence_ms, cmd->ack_timeout, 0))
		return -EINVAL;
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	ret = check_first(session->net, cmd);
	if (ret)
		return ret;
	listener = kxfer_try_alloc(LISTENER, kzalloc_obj(*listener, GFP_KERNEL_ACCOUNT));
	if (!listener)
		return -ENOMEM;
	listener->session = cmd->flags & KXFER_LISTEN_F_KEEP ? NULL : session;
	listener->net = session->net;
	listener->addr = cmd->addr;
	if (!listener->addr.port)
		listener->addr.port = KXFER_PORT;
	listener->flags = cmd->flags;
	listener->patience = patience;
	listener->memcg = get_mem_cgroup_from_mm(current->mm);
	ret = kxfer_keys_copy(&listener->keys, cmd->keys, cmd->nr_keys) ?:
	      insert(listener, cmd);
	if (ret)
		free_listener(listener);
	return ret;
}

/** kxfer_listener_del() - KXFER_LISTEN_DEL */
int kxfer_listener_del(struct kxfer_session *session, void *arg)
{
	struct kxfer_listen_del *cmd = arg;
	struct kxfer_listener *listener;
	int ret = -ENOENT;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	mutex_lock(&listeners_mutex);
	list_for_each_entry(listener, &listeners, node) {
		if (listener->id == cmd->listener && net_eq(listener->net, session->net)) {
			destroy(listener);
			ret = 0;
			break;
		}
	}
	mutex_unlock(&listeners_mutex);
	return ret;
}

/** kxfer_listener_end_session() - end the listeners of a session */
void kxfer_listener_end_session(struct kxfer_session *session)
{
	struct kxfer_listener *listener, *next;

	mutex_lock(&listeners_mutex);
	list_for_each_entry_safe(listener, next, &listeners, node)
		if (listener->session == session)
			destroy(listener);
	mutex_unlock(&listeners_mutex);
}

/** kxfer_listener_end_all() - end the listeners that are left; no call comes any more */
void kxfer_listener_end_all(void)
{
	struct kxfer_listener *listener, *next;

	mutex_lock(&listeners_mutex);
	list_for_each_entry_safe(listener, next, &listeners, node)
		destroy(listener);
	mutex_unlock(&listeners_mutex);
}

/**
 * kxfer_listener_init() - register for events of addresses that come and go
 *
 * Changes of GIDs are reported by devices, through kxfer_listener_check(). Return: 0 or -errno.
 */
int kxfer_listener_init(void)
{
	int ret = register_inetaddr_notifier(&ipv4_events);

	if (ret)
		return ret;
	if (IS_ENABLED(CONFIG_IPV6))
		ret = register_inet6addr_notifier(&ipv6_events);
	if (ret)
		unregister_inetaddr_notifier(&ipv4_events);
	return ret;
}

/** kxfer_listener_exit() - undo kxfer_listener_init(); no listener or device is left; sleeps */
void kxfer_listener_exit(void)
{
	if (IS_ENABLED(CONFIG_IPV6))
		unregister_inet6addr_notifier(&ipv6_events);
	unregister_inetaddr_notifier(&ipv4_events);
	cancel_delayed_work_sync(&check_work);
	cancel_delayed_work_sync(&retry_work);
}

static void fill_info(struct kxfer_listener *listener, struct kxfer_info_listener *info)
{
	*info = (struct kxfer_info_listener) {
		.id = listener->id,
		.addr = listener->addr,
		.flags = listener->flags,
		.active = !!listener->cm_id,
		.nr_accepted = atomic64_read(&listener->nr_accepted),
		.nr_refused = atomic64_read(&listener->nr_refused),
		.nr_keys = listener->keys ? listener->keys->nr : 0,
		.silence_ms = listener->patience.silence_ms,
		.ack_timeout = listener->patience.ack_timeout,
	};
	if (listener->cm_id && listener->cm_id->device)
		strscpy(info->device, dev_name(&listener->cm_id->device->dev),
			sizeof(info->device));
}

/** kxfer_listener_info() - INFO records of listeners after *cursor; see info.c */
u32 kxfer_listener_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr)
{
	struct kxfer_info_listener *info = records;
	struct kxfer_listener *listener;
	u32 n = 0;

	mutex_lock(&listeners_mutex);
	list_for_each_entry(listener, &listeners, node) {
		if (n == nr)
			break;
		if (listener->id <= *cursor || !kxfer_viewer_is_in(viewer, listener->net))
			continue;
		fill_info(listener, &info[n++]);
		*cursor = listener->id;
	}
	mutex_unlock(&listeners_mutex);
	return n;
}
