// SPDX-License-Identifier: GPL-2.0
/*
 * Links: the life of a connection with a peer node. The table of links, and how sessions
 * share a link, is in link_table.c.
 *
 * A link has a control QP, data lanes and a protection domain of its own: an
 * rkey of one link is worthless on another. It is directional: its initiator
 * opens targets, the passive side serves grants. Sessions that want the same
 * (struct kxfer_link_key) share it. States only go forward (state.c):
 *
 *	state		used by				next
 *	CONNECTING	connect_thread (initiator),	LIVE by the handshake,
 *			the listener (passive)		CLOSING by any failure
 *	LIVE		all contexts			CLOSING by failure, silence,
 *							removal, disuse
 *	CLOSING		teardown_work			DEAD when done
 *	DEAD		holders of a reference		-
 *
 * kxfer_link_fail() leads to CLOSING, and so does close_if_unused() for an unused link. It may
 * be called in any context, any number of times; the first caller's error counts.
 *
 * Teardown, as a proof that nothing is left over and no context waits for ever:
 *  1. The state is CLOSING: no lane, grant or target joins; keep-alive and connect_thread
 *     do not start again, and the teardown waits for running ones. All waits of
 *     connect_thread end. Those for rdma_cm are bounded and wake early on CLOSING. A
 *     signal ends a wait within rdma_connect(), and the wait for the answer to HELLO, which
 *     would otherwise last until the lane is closed. The wait for a registration ends
 *     when the link is CLOSING (kxfer_mr_register()).
 *  2. Each lane is drained and stopped (lane.c): its QP is reset or destroyed, no callback
 *     runs, and handlers of requests have ended. A handler waits for a registration, which is
 *     flushed by the drain or else ended by the stopping of the lane; or for posted jobs of
 *     a withdrawn target and the placement READ after them, until it sees CLOSING.
 *     Each unanswered request ends.
 *  3. No device touches memory through this link. Its user is told (@ended of struct
 *     kxfer_link_ops). On the initiator this cancels release_work, which waits for nothing
 *     but a placement READ (release.c), and completes jobs.
 *  4. On the passive side it deregisters the exposures of the link (exposure.c). The context
 *     that takes an exposure off the link's list deregisters it: this teardown, for all that
 *     are listed; or earlier a withdrawal that has its answer, which may still be running.
 *     (So does the release of a last grant, in a handler, for which step 2 waits.) A
 *     withdrawal that waits for this link goes on. Grants are freed, the bytes for placement
 *     READs are deregistered. Each lane is closed: what it still has on the device is destroyed.
 *  5. @nr_objects falls to 0. It counts each MR in the PD from its allocation to the
 *     end of ib_dereg_mr(), whatever the owner: exposures, sinks, landings, offers,
 *     both ends of placement READs, status sinks and runs. It also counts each lane,
 *     with its QPs, CQ and address handle, to the end of step 4. No more are made:
 *     connect_thread, accept_work and handlers have ended; the works of a lane and a
 *     run find it closed. All are destroyed by now, except MRs of withdrawals in step
 *     4, which wait for no peer: a withdrawal that has taken its exposure stays in
 *     kxfer_registration_end() to the end, and ib_dereg_mr() waits only for responders
 *     of this PD, whose QPs are reset or destroyed.
 *  6. The PD is freed and the device let go, so that the device's removal can go on. The
 *     module's exit waits for the end of all links, and then for the queues on which a
 *     withdrawal or a teardown may still be returning (kxfer_exposure_exit(),
 *     kxfer_link_exit()). The network namespace is held up to the end of the struct (net.c).
 *  7. DEAD. Sessions' targets and peers may hold references to the struct, but can only read
 *     its state.
 *
 * Context: teardown and connecting may sleep; changes of the state and counting of users do
 * not. Lock order: links_lock (link_table.c), link->lock. link->lock may be taken with
 * devices_lock held.
 */
#include "base/log.h"

#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>

#include "base/fault.h"
#include "base/state.h"
#include "base/stats.h"
#include "base/wait.h"
#include "link/cm.h"
#include "link/hello.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "link/link_trace.h"
#include "link/net.h"
#include "node/device.h"
#include "node/memory.h"

#define HANDSHAKE_MS	15000	/* a link that is not LIVE after this is dropped */
#define REFUSED_MS	500	/* a link whose key was refused is dropped after this */

/*
 * Three queues, so that a work that waits for a peer cannot delay the work that ends the wait:
 *
 *	kxfer_wq		works that wait for no peer: accepting, posting on, deadlines
 *	kxfer_handler_wq	handlers of requests, and giving grants back: for each link at
 *				most one handler that waits, and one for each other slot
 *	life_wq			keep-alive and teardown, which end all waits of the others
 */
struct workqueue_struct *kxfer_wq;
struct workqueue_struct *kxfer_handler_wq;
static struct workqueue_struct *life_wq;

static DECLARE_WAIT_QUEUE_HEAD(links_gone);
static atomic_t links_existing = ATOMIC_INIT(0);

/* Hooks of shared links: [0] for the passive side, [1] for the initiator. */
static const struct kxfer_link_ops *shared_ops[2];

static void keepalive_work(struct work_struct *work);
static void teardown_work(struct work_struct *work);

/** kxfer_link_ref() - one more reference; the caller has one */
void kxfer_link_ref(struct kxfer_link *link)
{
	kref_get(&link->ref);
}

static void link_release(struct kref *ref)
{
	struct kxfer_link *link = container_of(ref, struct kxfer_link, ref);
	struct kxfer_lane *lane, *next;

	list_for_each_entry_safe(lane, next, &link->lanes, node)
		kxfer_lane_free(lane);
	kxfer_link_hook(link->ops->free, link);
	module_put(link->ops->owner);
	kxfer_handshake_end(&link->handshake);
	kxfer_keys_put(link->keys);
	kxfer_key_put(link->key.secret);
	if (link->dev)
		kxfer_device_put(link->dev);
	xa_destroy(&link->revoked);
	xa_destroy(&link->grants);
	mem_cgroup_put(link->memcg);
	put_net(link->net);
	/* The end of a target's last job may be about to look at @wait. */
	kfree_rcu(link, rcu);
	kxfer_stat_dec(KXFER_STAT_LIVE_LINKS);
	if (atomic_dec_and_test(&links_existing))
		wake_up_all(&links_gone);
}

/** kxfer_link_put() - one reference less; does not sleep */
void kxfer_link_put(struct kxfer_link *link)
{
	kref_put(&link->ref, link_release);
}

/**
 * kxfer_link_count() - count objects that the link's PD has to outlive
 * @link: the caller has a reference, or the teardown waits for the caller
 * @nr: number of objects made; negative: destroyed
 *
 * Any context.
 */
void kxfer_link_count(struct kxfer_link *link, int nr)
{
	if (!atomic_add_return(nr, &link->nr_objects))
		wake_up_all(&link->wait);
}

static void device_gone(struct kxfer_device_user *user)
{
	kxfer_link_fail(container_of(user, struct kxfer_link, on_device), -ENODEV);
}

/**
 * kxfer_link_alloc() - make a link, not published yet
 * @initiator: made by this node
 * @net: network namespace of the link
 * @ops: hooks of the user of the link; NULL: the hooks of shared links
 * @context: private pointer for @ops
 *
 * The link, and all that its lanes allocate later, is charged to the active memory cgroup.
 * May sleep. Return: the link, CONNECTING, with the one reference of its life; or NULL.
 */
struct kxfer_link *kxfer_link_alloc(bool initiator, struct net *net,
				    const struct kxfer_link_ops *ops, void *context)
{
	struct kxfer_link *link;

	link = kxfer_try_alloc(LINK, kzalloc_obj(*link, KXFER_GFP_FOR_PEER));
	if (!link)
		return NULL;
	kref_init(&link->ref);
	INIT_LIST_HEAD(&link->node);
	link->initiator = initiator;
	link->net = get_net(net);
	link->ops = ops ?: shared_ops[initiator];
	__module_get(link->ops->owner);
	link->context = context;
	link->memcg = get_mem_cgroup_from_mm(NULL);
	link->on_device.gone = device_gone;
	link->gid_type = ~0;
	kxfer_patience_init(&link->patience, 0, 0, 0);
	spin_lock_init(&link->lock);
	link->state = KXFER_LINK_CONNECTING;
	INIT_LIST_HEAD(&link->lanes);
	init_waitqueue_head(&link->wait);
	init_completion(&link->connect_done);
	INIT_DELAYED_WORK(&link->keepalive_work, keepalive_work);
	INIT_WORK(&link->teardown_work, teardown_work);
	link->created_ns = ktime_get_ns();
	link->unused_ns = link->created_ns;
	spin_lock_init(&link->targets_lock);
	INIT_LIST_HEAD(&link->targets);
	INIT_LIST_HEAD(&link->closed_targets);
	INIT_LIST_HEAD(&link->orphans);
	INIT_LIST_HEAD(&link->opening);
	xa_init_flags(&link->revoked, XA_FLAGS_LOCK_BH);
	INIT_LIST_HEAD(&link->exposures);
	xa_init_flags(&link->grants, XA_FLAGS_LOCK_BH | XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	mutex_init(&link->register_mutex);
	kxfer_link_hook(link->ops->init, link);
	kxfer_stat_inc(KXFER_STAT_LIVE_LINKS);
	atomic_inc(&links_existing);
	return link;
}

/**
 * kxfer_link_kvzalloc() - allocate zeroed memory for a link, from one of its works
 * @link: with its device; the memory is near that
 * @bytes: size of the memory
 *
 * Charged to the link's memory cgroup. May sleep. Return: memory for kvfree(), or NULL.
 */
void *kxfer_link_kvzalloc(const struct kxfer_link *link, size_t bytes)
{
	struct mem_cgroup *old = set_active_memcg(link->memcg);
	void *memory = kvzalloc_node(bytes, KXFER_GFP_FOR_PEER, kxfer_link_numa_node(link));

	set_active_memcg(old);
	return memory;
}

static bool change_state(struct kxfer_link *link, enum kxfer_link_state to)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&link->lock, flags);
	ok = kxfer_state_change(&link->state, to);
	if (ok)
		trace_kxfer_link(link);
	spin_unlock_irqrestore(&link->lock, flags);
	if (ok)
		wake_up_all(&link->wait);
	return ok;
}

/* The link is CLOSING, for a reason. Called with link->lock held. */
static void begin_teardown(struct kxfer_link *link, int error)
{
	link->error = error;
	trace_kxfer_link(link);
	queue_work(life_wq, &link->teardown_work);
}

/**
 * kxfer_link_fail() - begin to take a link down
 * @link: the caller has a reference, or knows that its teardown has not ended
 * @error: reason, -errno
 *
 * Any context. Does nothing if the teardown has begun already.
 */
void kxfer_link_fail(struct kxfer_link *link, int error)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&link->lock, flags);
	first = kxfer_state_change(&link->state, KXFER_LINK_CLOSING);
	if (first)
		begin_teardown(link, error);
	spin_unlock_irqrestore(&link->lock, flags);
	if (first)
		wake_up_all(&link->wait);
}

/** kxfer_link_queue_content() - run content_work, unless the link is not live; any context */
void kxfer_link_queue_content(struct kxfer_link *link)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	if (link->state == KXFER_LINK_LIVE)
		queue_work(kxfer_wq, &link->content_work);
	spin_unlock_irqrestore(&link->lock, flags);
}

/** kxfer_link_queue_release() - run release_work, any context. Return: false: link not live */
bool kxfer_link_queue_release(struct kxfer_link *link)
{
	unsigned long flags;
	bool live;

	spin_lock_irqsave(&link->lock, flags);
	live = link->state == KXFER_LINK_LIVE;
	if (live)
		queue_work(kxfer_handler_wq, &link->release_work);
	spin_unlock_irqrestore(&link->lock, flags);
	return live;
}

/** kxfer_link_is_live() - whether jobs flow; may be outdated at once */
bool kxfer_link_is_live(struct kxfer_link *link)
{
	return READ_ONCE(link->state) == KXFER_LINK_LIVE;
}

/** kxfer_link_is_dead() - whether the link has left its device, for good */
bool kxfer_link_is_dead(struct kxfer_link *link)
{
	return READ_ONCE(link->state) == KXFER_LINK_DEAD;
}

/** kxfer_link_job_error() - error for the jobs of a link that is going down */
int kxfer_link_job_error(struct kxfer_link *link)
{
	return READ_ONCE(link->error) == -ENODEV ? -ENODEV : -ECONNRESET;
}

/**
 * kxfer_link_numa_node() - the best NUMA node for memory of a link's lanes
 * @link: its device, if any, is not let go meanwhile
 */
int kxfer_link_numa_node(const struct kxfer_link *link)
{
	return link->dev ? ibdev_to_node(link->dev->ibdev) : NUMA_NO_NODE;
}

/**
 * kxfer_link_longest() - bytes of the longest message that a link carries
 * @link: LIVE
 *
 * The limit of this end; the peer's device may take less.
 */
u64 kxfer_link_longest(const struct kxfer_link *link)
{
	return link->features & KXFER_WIRE_FEATURE_LONG ? kxfer_device_longest(link->dev) :
	       KXFER_MESSAGE_MAX;
}

/** kxfer_link_protocol_error() - the peer broke the protocol: end the link; any context */
void kxfer_link_protocol_error(struct kxfer_link *link, const char *what)
{
	kxfer_stat_inc(KXFER_STAT_PROTOCOL_ERRORS);
	kxfer_notice("link %llu: the peer broke the protocol: %s", link->id, what);
	kxfer_link_fail(link, -EPROTO);
}

/** kxfer_link_use() - one more user; the link stays while it has any */
void kxfer_link_use(struct kxfer_link *link)
{
	unsigned long flags;

	kxfer_link_ref(link);
	spin_lock_irqsave(&link->lock, flags);
	link->users++;
	spin_unlock_irqrestore(&link->lock, flags);
}

/**
 * kxfer_link_try_use() - kxfer_link_use() of a link that may be going down
 * @link: stays while this runs
 *
 * Return: false, with no user added, if the link is going down.
 */
bool kxfer_link_try_use(struct kxfer_link *link)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&link->lock, flags);
	ok = kxfer_state_is_open(link->state);
	if (ok)
		link->users++;
	spin_unlock_irqrestore(&link->lock, flags);
	if (ok)
		kxfer_link_ref(link);
	return ok;
}

/** kxfer_link_unuse() - drop a user and its reference */
void kxfer_link_unuse(struct kxfer_link *link)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	if (!--link->users)
		link->unused_ns = ktime_get_ns();
	spin_unlock_irqrestore(&link->lock, flags);
	kxfer_link_put(link);
}

/**
 * kxfer_link_attach_device() - join the device that rdma_cm chose; make the PD
 * @link: CONNECTING, without device
 * @ibdev: device of the cm_id of its first lane
 *
 * May sleep. Return: 0; -ENODEV; -EADDRNOTAVAIL if another device was asked for; the error of
 * kxfer_net_check_device(); or that of ib_alloc_pd().
 */
int kxfer_link_attach_device(struct kxfer_link *link, struct ib_device *ibdev)
{
	int ret = kxfer_net_check_device(link->net, ibdev);

	if (ret)
		return ret;
	if (link->key.device[0] &&
	    strcmp((const char *)link->key.device, dev_name(&ibdev->dev)))
		return -EADDRNOTAVAIL;
	link->dev = kxfer_device_attach(ibdev, &link->on_device);
	if (!link->dev)
		return -ENODEV;
	kref_get(&link->dev->ref);
	strscpy((char *)link->device_name, dev_name(&ibdev->dev), sizeof(link->device_name));
	link->pd = kxfer_try_ptr(LINK_PD, ib_alloc_pd(ibdev, 0));
	if (IS_ERR(link->pd)) {
		ret = PTR_ERR(link->pd);
		link->pd = NULL;
	}
	return ret;
}

/**
 * kxfer_link_add_lane() - let the link own a lane; its teardown will close it
 * @link: CONNECTING, or passive and LIVE
 * @lane: made for @link
 *
 * Return: 0, -ECONNRESET if the link is going down, -ERANGE if the index of the lane was not
 * agreed on, -EEXIST if the link has a lane of that index.
 */
int kxfer_link_add_lane(struct kxfer_link *link, struct kxfer_lane *lane)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&link->lock, flags);
	if (!kxfer_state_is_open(link->state)) {
		ret = -ECONNRESET;
	} else if (kxfer_lane_is_control(lane)) {
		link->control = lane;
	} else if (lane->index > link->max_data) {
		ret = -ERANGE;
	} else if (link->data[lane->index - 1]) {
		ret = -EEXIST;
	} else {
		link->data[lane->index - 1] = lane;
		link->nr_data = max(link->nr_data, lane->index);
	}
	if (!ret) {
		list_add_tail(&lane->node, &link->lanes);
		kxfer_link_count(link, 1);
	}
	/* Under the same lock as the check: the teardown cancels this work only once. */
	if (!ret && !link->initiator)
		queue_work(kxfer_wq, &lane->accept_work);
	spin_unlock_irqrestore(&link->lock, flags);
	return ret;
}

/** kxfer_link_set_live() - the handshake is done. Return: 0 or -ECONNRESET */
int kxfer_link_set_live(struct kxfer_link *link)
{
	if (!change_state(link, KXFER_LINK_LIVE))
		return -ECONNRESET;
	mod_delayed_work(life_wq, &link->keepalive_work,
			 msecs_to_jiffies(kxfer_patience_keepalive_ms(&link->patience)));
	return 0;
}

/** kxfer_link_has_key() - whether both ends have to prove, or have proved, a key */
bool kxfer_link_has_key(const struct kxfer_link *link)
{
	return link->initiator ? !!link->key.secret : !!link->keys;
}

/**
 * kxfer_link_end_soon() - give the peer time to take an answer, then end the link
 * @link: its handshake has failed
 *
 * Does nothing if the link is going down. Queues under the same lock as the check: the
 * teardown cancels keepalive_work only once.
 */
void kxfer_link_end_soon(struct kxfer_link *link)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	if (link->state == KXFER_LINK_CONNECTING)
		mod_delayed_work(life_wq, &link->keepalive_work, msecs_to_jiffies(REFUSED_MS));
	spin_unlock_irqrestore(&link->lock, flags);
}

/*
 * A thread, not a work: siw's rdma_connect() connects a TCP socket (siw_connect()). That waits
 * two minutes for a host that does not answer, and only a signal ends it. A signal that
 * comes before allow_signal() is lost, but then the link is already CLOSING and takes no
 * lane.
 */
static int connect_thread(void *data)
{
	struct kxfer_link *link = data;
	int ret;

	allow_signal(SIGKILL);
	ret = kxfer_cm_connect(link);
	if (ret)
		kxfer_link_fail(link, ret);
	else
		kxfer_stat_inc(KXFER_STAT_LINKS_MADE);
	kthread_complete_and_exit(&link->connect_done, 0);
}

/* Nothing fails the link before this, because it has no device yet. */
static void start_connecting(struct kxfer_link *link)
{
	struct task_struct *task;

	task = kxfer_try_ptr(LINK_THREAD, kthread_create(connect_thread, link, "kxfer_connect"));
	if (IS_ERR(task)) {
		kxfer_link_fail(link, -ENOMEM);
		return;
	}
	link->connect_task = get_task_struct(task);
	queue_delayed_work(life_wq, &link->keepalive_work,
			   msecs_to_jiffies(HANDSHAKE_MS));
	wake_up_process(task);
}

/**
 * kxfer_link_start() - start a link: it becomes LIVE within HANDSHAKE_MS, or fails
 * @link: just published; without device and lanes, so nothing fails it meanwhile
 *
 * May sleep.
 */
void kxfer_link_start(struct kxfer_link *link)
{
	if (link->initiator)
		start_connecting(link);
	else
		queue_delayed_work(life_wq, &link->keepalive_work,
				   msecs_to_jiffies(HANDSHAKE_MS));
}

static void stop_connecting(struct kxfer_link *link)
{
	if (!link->connect_task)
		return;
	send_sig(SIGKILL, link->connect_task, 1);
	wait_for_completion(&link->connect_done);
	put_task_struct(link->connect_task);
	link->connect_task = NULL;
}

/** kxfer_link_heard_ns() - time of the last message or completion on any lane */
u64 kxfer_link_heard_ns(const struct kxfer_link *link)
{
	u64 heard_ns = link->created_ns;
	u32 i;

	if (link->control)
		heard_ns = max(heard_ns, READ_ONCE(link->control->heard_ns));
	for (i = 0; i < READ_ONCE(link->nr_data); i++) {
		const struct kxfer_lane *lane = READ_ONCE(link->data[i]);

		if (lane)
			heard_ns = max(heard_ns, READ_ONCE(lane->heard_ns));
	}
	return heard_ns;
}

static bool silent_for_too_long(struct kxfer_link *link)
{
	const struct kxfer_request *ping =
		&link->control->channel.requests[KXFER_WIRE_PING_SLOT];
	/* A peer that still acknowledges is busy, not silent. */
	u64 since_ns = max(READ_ONCE(ping->sent_ns), kxfer_link_heard_ns(link));
	u64 now_ns = ktime_get_ns();

	return now_ns > since_ns &&
	       now_ns - since_ns > (u64)link->patience.silence_ms * NSEC_PER_MSEC;
}

static bool any_lane_stuck(struct kxfer_link *link)
{
	u32 i;

	for (i = 0; i < READ_ONCE(link->nr_data); i++) {
		struct kxfer_lane *lane = READ_ONCE(link->data[i]);

		/* A peer connects data lanes in any order: some may be missing. */
		if (!lane)
			continue;
		kxfer_cq_check(&lane->cq);
		if (link->ops->stuck(lane))
			return true;
	}
	return false;
}

static bool any_message_overdue(struct kxfer_link *link)
{
	bool overdue = link->control && kxfer_lane_overdue(link->control);
	u32 i;

	for (i = 0; !overdue && i < READ_ONCE(link->nr_data); i++) {
		struct kxfer_lane *lane = READ_ONCE(link->data[i]);

		overdue = lane && kxfer_lane_overdue(lane);
	}
	return overdue;
}

static void check_peer(struct kxfer_link *link)
{
	int ret = link->control ? kxfer_hello_ping(link) : 0;

	if (ret == -EBUSY && silent_for_too_long(link))
		kxfer_notice("link %llu: no answer for %u ms, giving it up", link->id,
			     link->patience.silence_ms);
	else if (any_lane_stuck(link))
		kxfer_notice("link %llu: the peer holds jobs up, giving it up", link->id);
	else if (any_message_overdue(link))
		kxfer_notice("link %llu: the peer does not take or answer messages, giving it up",
			     link->id);
	else
		return;
	kxfer_stat_inc(KXFER_STAT_LINKS_LOST);
	kxfer_link_fail(link, -ETIMEDOUT);
}

/* Check and fail under one lock: no session must begin to use the link in between. */
static void close_if_unused(struct kxfer_link *link)
{
	u64 limit_ns = READ_ONCE(link->keeps_grant) ? 0 :
		       (u64)KXFER_IDLE_MS * NSEC_PER_MSEC;
	unsigned long flags;
	bool closing = false;

	spin_lock_irqsave(&link->lock, flags);
	if (link->initiator && !link->users && link->state == KXFER_LINK_LIVE &&
	    ktime_get_ns() - link->unused_ns > limit_ns) {
		closing = kxfer_state_change(&link->state, KXFER_LINK_CLOSING);
		begin_teardown(link, -ESHUTDOWN);
	}
	spin_unlock_irqrestore(&link->lock, flags);
	if (closing)
		wake_up_all(&link->wait);
}

static void keepalive_work(struct work_struct *work)
{
	struct kxfer_link *link =
		container_of(to_delayed_work(work), struct kxfer_link, keepalive_work);

	kxfer_delay(LINK_KEEPALIVE);
	if (kxfer_link_is_live(link)) {
		check_peer(link);
		close_if_unused(link);
	} else {
		kxfer_link_fail(link, -ETIMEDOUT);
	}
	if (kxfer_link_is_live(link))
		queue_delayed_work(life_wq, &link->keepalive_work,
				   msecs_to_jiffies(kxfer_patience_keepalive_ms(&link->patience)));
}

static void stop_works(struct kxfer_link *link)
{
	struct kxfer_lane *lane;

	stop_connecting(link);
	cancel_delayed_work_sync(&link->keepalive_work);
	kxfer_link_hook(link->ops->stop, link);
	list_for_each_entry(lane, &link->lanes, node)
		cancel_work_sync(&lane->accept_work);
}

static void stop_lanes(struct kxfer_link *link)
{
	struct kxfer_lane *lane;

	list_for_each_entry(lane, &link->lanes, node)
		kxfer_lane_drain(lane);
	/* For rxe of Linux 6.1; see lane.c. */
	if (link->dev && !link->dev->iwarp)
		synchronize_rcu();
	list_for_each_entry(lane, &link->lanes, node)
		kxfer_lane_stop(lane);
}

static void leave_device(struct kxfer_link *link)
{
	if (!link->dev)
		return;
	/* Pairs with kxfer_link_count() after ib_dereg_mr(). */
	wait_event(link->wait, !atomic_read_acquire(&link->nr_objects));
	if (link->pd) {
		WARN_ON_ONCE(atomic_read(&link->pd->usecnt));
		ib_dealloc_pd(link->pd);
	}
	link->pd = NULL;
	kxfer_device_leave(link->dev, &link->on_device.node);
}

/* The steps are those of the proof at the head of this file. */
static void teardown_work(struct work_struct *work)
{
	struct kxfer_link *link = container_of(work, struct kxfer_link, teardown_work);
	struct kxfer_lane *lane;

	kxfer_delay(LINK_TEARDOWN);
	stop_works(link);
	stop_lanes(link);
	kxfer_delay(LINK_LANES_STOPPED);
	kxfer_link_hook(link->ops->ended, link);
	/* Whoever sees it may post again, on another link, what was posted on this one. */
	smp_store_release(&link->ended, true);
	wake_up_all(&link->wait);
	kxfer_iwarp_free_source(link);
	kxfer_delay(LINK_ENDED);
	list_for_each_entry(lane, &link->lanes, node)
		kxfer_lane_close(lane);
	kxfer_delay(LINK_LEAVE);
	leave_device(link);
	kxfer_delay(LINK_DEAD);
	kxfer_link_unpublish(link);
	change_state(link, KXFER_LINK_DEAD);
	kxfer_delay(LINK_LAST);
	kxfer_link_put(link);
}

static bool settled(struct kxfer_link *link)
{
	return READ_ONCE(link->state) != KXFER_LINK_CONNECTING;
}

/**
 * kxfer_link_wait_live() - wait for a connection
 * @link: of an initiator; the caller is a user of it
 * @timeout_ms: longest wait
 *
 * May sleep. Return: 0, -ETIMEDOUT, -EINTR, or the error that ended the connecting.
 */
int kxfer_link_wait_live(struct kxfer_link *link, unsigned int timeout_ms)
{
	long left;
	int error;

	left = kxfer_wait_event_timeout(link->wait, settled(link),
					msecs_to_jiffies(timeout_ms) + 1);
	if (kxfer_link_is_live(link))
		return 0;
	if (!settled(link))
		return left < 0 ? -EINTR : -ETIMEDOUT;
	error = READ_ONCE(link->error);
	return error && error != -ESHUTDOWN ? error : -ECONNRESET;
}

/** kxfer_link_init() - make the workqueues; @initiator, @passive: hooks of shared links */
int kxfer_link_init(const struct kxfer_link_ops *initiator,
		    const struct kxfer_link_ops *passive)
{
	shared_ops[false] = passive;
	shared_ops[true] = initiator;
	kxfer_wq = kxfer_try_alloc(LINK_WORKQUEUE,
				   alloc_workqueue("kxfer", WQ_UNBOUND, WQ_MAX_ACTIVE));
	if (!kxfer_wq)
		return -ENOMEM;
	kxfer_handler_wq = kxfer_try_alloc(LINK_HANDLERS,
					   alloc_workqueue("kxfer_handler", WQ_UNBOUND,
							   WQ_MAX_ACTIVE));
	if (!kxfer_handler_wq)
		goto err_wq;
	life_wq = kxfer_try_alloc(LINK_LIFE,
				  alloc_workqueue("kxfer_life", WQ_UNBOUND, WQ_MAX_ACTIVE));
	if (!life_wq)
		goto err_handlers;
	return 0;

err_handlers:
	destroy_workqueue(kxfer_handler_wq);
err_wq:
	destroy_workqueue(kxfer_wq);
	return -ENOMEM;
}

/** kxfer_link_wait_none() - wait until no link exists, in the table or out of it; may sleep */
void kxfer_link_wait_none(void)
{
	wait_event(links_gone, !atomic_read(&links_existing));
}

/** kxfer_link_exit() - destroy the workqueues; no link exists and none is made */
void kxfer_link_exit(void)
{
	destroy_workqueue(life_wq);
	destroy_workqueue(kxfer_handler_wq);
	destroy_workqueue(kxfer_wq);
}
