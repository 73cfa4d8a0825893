// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: one open file on /dev/kxfer, its tables, its events, its end.
 *
 * The end of a session, leaf first, as a proof. It runs when the last reference
 * to the file is gone: no call of it is under way and none comes. What waits for peers waits
 * side by side: exports are withdrawn from the beginning on.
 *  1. Jobs: queued ones end, posted ones are waited for (job.c says how long).
 *     None came by io_uring: each of those holds the file. Afterwards nothing uses its
 *     targets and regions but exports, and nothing its completion ring, of which no
 *     mapping is left: that would be a reference to the file.
 *  2. Targets: grants are given back later, by their links (release.c); peers: links lose a
 *     user; dedicated connections are taken down, for no run is under way.
 *  3. Exports: waited for until they are withdrawn (export.c). Afterwards no peer reaches
 *     its memory, and no
 *     event comes: delivery looks at the export's session under its lock.
 *  4. Listeners of the session.
 *  5. Regions: no users are left; unmapped and unpinned.
 */
#include "log.h"

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kxfer.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "charge.h"
#include "dedicated.h"
#include "export.h"
#include "fault.h"
#include "job.h"
#include "listener.h"
#include "memory.h"
#include "reap.h"
#include "region.h"
#include "ring.h"
#include "session.h"
#include "stats.h"
#include "target.h"
#include "uring.h"
#include "user.h"

static DEFINE_MUTEX(sessions_mutex);
static LIST_HEAD(sessions);
static u32 nr_sessions;
static u64 last_session_id;

static int publish(struct kxfer_session *session)
{
	int ret = 0;

	mutex_lock(&sessions_mutex);
	if (!kxfer_user_room(nr_sessions, KXFER_MAX_SESSIONS)) {
		ret = -EMFILE;
	} else {
		nr_sessions++;
		session->id = ++last_session_id;
		list_add_tail(&session->node, &sessions);
	}
	mutex_unlock(&sessions_mutex);
	return ret;
}

/** kxfer_session_create() - a session of a file, for the calling process, or ERR_PTR */
struct kxfer_session *kxfer_session_create(const struct file *file)
{
	struct kxfer_session *session;
	int ret;

	session = kxfer_fault(SESSION) ? NULL :
		  kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	if (!session)
		return ERR_PTR(-ENOMEM);
	session->file = file;
	session->pid = task_tgid_nr(current);
	session->uid = from_kuid_munged(&init_user_ns, current_euid());
	session->gid = from_kgid_munged(&init_user_ns, current_egid());
	session->init_net = net_eq(current->nsproxy->net_ns, &init_net);
	session->user = kxfer_user_get();
	if (!session->user) {
		ret = -ENOMEM;
		goto err_free;
	}
	if (kxfer_user_take(session->user, KXFER_SHARE_SESSIONS)) {
		ret = -EMFILE;
		goto err_user;
	}
	init_rwsem(&session->lock);
	INIT_LIST_HEAD(&session->charges);
	xa_init_flags(&session->regions, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->exports, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->peers, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->targets, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->dedicated, KXFER_TABLE_FLAGS);
	spin_lock_init(&session->job_lock);
	INIT_LIST_HEAD(&session->jobs);
	session->max_jobs = KXFER_MAX_JOBS;
	init_waitqueue_head(&session->wait);
	mutex_init(&session->reap_mutex);
	session->look_ns = KXFER_LOOK_PROBE_NS;
	INIT_DELAYED_WORK(&session->uring_watch, kxfer_uring_watch);
	spin_lock_init(&session->event_lock);
	ret = publish(session);
	if (ret)
		goto err_share;
	kxfer_stat_inc(KXFER_STAT_LIVE_SESSIONS);
	return session;

err_share:
	kxfer_user_return(session->user, KXFER_SHARE_SESSIONS, 1);
err_user:
	kxfer_user_put(session->user);
err_free:
	kfree(session);
	return ERR_PTR(ret);
}

static void close_targets(struct kxfer_session *session)
{
	struct kxfer_target *target;
	unsigned long id;

	xa_for_each(&session->targets, id, target)
		kxfer_target_put(target);
	xa_destroy(&session->targets);
}

static void close_peers(struct kxfer_session *session)
{
	struct kxfer_peer *peer;
	unsigned long id;

	xa_for_each(&session->peers, id, peer)
		kxfer_peer_put(peer);
	xa_destroy(&session->peers);
}

/* Side by side: their holders may all be silent. */
static void begin_withdrawals(struct kxfer_session *session)
{
	struct kxfer_export *export;
	unsigned long id;

	xa_for_each(&session->exports, id, export)
		kxfer_export_begin_withdrawal(export);
}

static void end_withdrawals(struct kxfer_session *session)
{
	struct kxfer_export *export;
	unsigned long id;

	xa_for_each(&session->exports, id, export)
		kxfer_export_end_withdrawal(export);
	xa_destroy(&session->exports);
}

static void destroy_regions(struct kxfer_session *session)
{
	struct kxfer_region *region;
	unsigned long id;

	xa_for_each(&session->regions, id, region)
		kxfer_region_destroy(region);
	xa_destroy(&session->regions);
}

/** kxfer_session_destroy() - end a session; the steps are those of the proof above */
void kxfer_session_destroy(struct kxfer_session *session)
{
	/* Out of the list first: who lists sessions holds sessions_mutex. */
	mutex_lock(&sessions_mutex);
	list_del(&session->node);
	nr_sessions--;
	mutex_unlock(&sessions_mutex);

	kxfer_delay(SESSION_END);
	cancel_delayed_work_sync(&session->uring_watch);
	begin_withdrawals(session);
	kxfer_job_end_session(session);
	kxfer_ring_destroy(session->ring);
	kxfer_delay(SESSION_TARGETS);
	close_targets(session);
	close_peers(session);
	kxfer_dedicated_end_session(session);
	kxfer_delay(SESSION_EXPORTS);
	end_withdrawals(session);
	kxfer_listener_end_session(session);
	kxfer_delay(SESSION_REGIONS);
	destroy_regions(session);
	kxfer_charge_drop(&session->charges);
	kvfree(session->events);
	kxfer_user_return(session->user, KXFER_SHARE_SESSIONS, 1);
	kxfer_user_put(session->user);
	kfree(session);
	kxfer_stat_dec(KXFER_STAT_LIVE_SESSIONS);
}

/**
 * kxfer_session_insert() - give an object an id
 * @table: of the session, whose lock is held for writing
 * @object: to be found from here on
 * @id: out
 * @max: objects of this kind
 *
 * Return: 0, -EDQUOT, -ENOMEM.
 */
int kxfer_session_insert(struct xarray *table, void *object, u32 *id, u32 max)
{
	int ret = kxfer_fault_error(SESSION_ID) ?:
		  xa_alloc(table, id, object, XA_LIMIT(1, max), GFP_KERNEL_ACCOUNT);

	return ret == -EBUSY ? -EDQUOT : ret;
}

/** kxfer_session_count() - objects in a table, as it stands; any context */
u32 kxfer_session_count(struct xarray *table)
{
	unsigned long id;
	void *object;
	u32 nr = 0;

	xa_for_each(table, id, object)
		nr++;
	return nr;
}

/** kxfer_session_prepare_events() - make the ring; the session's lock is held for writing */
int kxfer_session_prepare_events(struct kxfer_session *session)
{
	if (!session->events && !kxfer_fault(SESSION_EVENTS))
		session->events = kvcalloc(KXFER_MAX_EVENTS, sizeof(*session->events),
					   GFP_KERNEL_ACCOUNT);
	return session->events ? 0 : -ENOMEM;
}

/** kxfer_session_push_event() - deliver an event. Return: 0 or -EAGAIN: the ring is full */
int kxfer_session_push_event(struct kxfer_session *session,
			     const struct kxfer_event *event)
{
	int ret = -EAGAIN;

	spin_lock_bh(&session->event_lock);
	if (session->event_tail - session->event_head < KXFER_MAX_EVENTS) {
		session->events[session->event_tail++ % KXFER_MAX_EVENTS] = *event;
		wake_up(&session->wait);
		ret = 0;
	}
	spin_unlock_bh(&session->event_lock);
	return ret;
}

/** kxfer_session_has_event() - whether there is something to take */
bool kxfer_session_has_event(struct kxfer_session *session)
{
	bool has;

	spin_lock_bh(&session->event_lock);
	has = session->event_tail != session->event_head;
	spin_unlock_bh(&session->event_lock);
	return has;
}

static bool peek_event(struct kxfer_session *session, struct kxfer_event *event)
{
	bool has;

	spin_lock_bh(&session->event_lock);
	has = session->event_tail != session->event_head;
	if (has)
		*event = session->events[session->event_head % KXFER_MAX_EVENTS];
	spin_unlock_bh(&session->event_lock);
	return has;
}

static void drop_event(struct kxfer_session *session)
{
	spin_lock_bh(&session->event_lock);
	session->event_head++;
	spin_unlock_bh(&session->event_lock);
}

/** kxfer_session_may_wait() - whether calls may wait. Return: 0, or -EAGAIN: O_NONBLOCK is set */
int kxfer_session_may_wait(const struct kxfer_session *session)
{
	return READ_ONCE(session->file->f_flags) & O_NONBLOCK ? -EAGAIN : 0;
}

/**
 * kxfer_session_begin_reap() - take reap_mutex
 * @session: of the caller
 *
 * Another thread holds it as long as its memory is not there, which may be for ever
 * (userfaultfd). Return: 0; -EINTR: a fatal signal; -EAGAIN: O_NONBLOCK is set.
 */
int kxfer_session_begin_reap(struct kxfer_session *session)
{
	if (mutex_trylock(&session->reap_mutex))
		return 0;
	return kxfer_session_may_wait(session) ?: mutex_lock_killable(&session->reap_mutex);
}

/* One taker at a time; an event that cannot be stored stays. */
static int store_events(struct kxfer_session *session, u64 to, u32 max, u32 *stored)
{
	struct kxfer_event __user *out = u64_to_user_ptr(to);
	struct kxfer_event event;
	int ret;

	*stored = 0;
	ret = kxfer_session_begin_reap(session);
	if (ret)
		return ret;
	for (*stored = 0; *stored < max && peek_event(session, &event); ++*stored) {
		if (copy_to_user(out + *stored, &event, sizeof(event))) {
			ret = -EFAULT;
			break;
		}
		drop_event(session);
	}
	mutex_unlock(&session->reap_mutex);
	return ret;
}

static int wait_for_event(struct kxfer_session *session, u64 deadline_ns)
{
	ktime_t left = KTIME_MAX;
	int ret;

	if (kxfer_session_has_event(session))
		return 0;
	ret = kxfer_session_may_wait(session);
	if (ret)
		return ret;
	if (deadline_ns) {
		u64 now = ktime_get_ns();

		if (deadline_ns <= now)
			return -ETIMEDOUT;
		left = ns_to_ktime(min_t(u64, deadline_ns - now, KTIME_MAX));
	}
	ret = wait_event_interruptible_hrtimeout(session->wait,
						 kxfer_session_has_event(session), left);
	if (ret == -ETIME)
		return -ETIMEDOUT;
	return ret ? -EINTR : 0;
}

/** kxfer_event_reap() - KXFER_EVENT_REAP */
int kxfer_event_reap(struct kxfer_session *session, void *arg)
{
	struct kxfer_event_reap *cmd = arg;
	u32 stored;
	int ret = 0;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!cmd->nr || cmd->nr > 1024 || cmd->wait > 1)
		return -EINVAL;
	if (cmd->wait)
		ret = wait_for_event(session, cmd->deadline_ns);
	if (!ret)
		ret = store_events(session, cmd->events, cmd->nr, &stored);
	else
		stored = 0;
	cmd->nr = stored;
	return stored ? 0 : ret;
}

/*
 * The session's lock is not taken: a call that holds it may wait for its user's
 * memory, and whoever opens a session would then wait for that. Counting is safe
 * without, and sessions_mutex keeps the session.
 */
static void fill_info(struct kxfer_session *session, struct kxfer_info_session *info)
{
	kxfer_ring_look(session);
	*info = (struct kxfer_info_session) {
		.id = session->id,
		.pid = session->pid,
		.uid = session->uid,
		.nr_regions = kxfer_session_count(&session->regions),
		.nr_exports = kxfer_session_count(&session->exports),
		.nr_peers = kxfer_session_count(&session->peers),
		.nr_targets = kxfer_session_count(&session->targets),
		.nr_jobs = READ_ONCE(session->nr_jobs),
		.nr_done = READ_ONCE(session->nr_done),
		.pinned_bytes = atomic64_read(&session->pinned_bytes),
	};
}

/**
 * kxfer_session_sees() - whether INFO may show a caller what a session has made
 * @viewer: session of the caller, or NULL: one with CAP_NET_ADMIN
 * @owner: session that has made it, or NULL: the module
 * @uid: of @owner
 *
 * The uid compared is that of the calling task: a file that was handed on shows its new
 * holder nothing but its own session. Return: whether it may.
 */
bool kxfer_session_sees(const struct kxfer_session *viewer, const struct kxfer_session *owner,
			u32 uid)
{
	if (!viewer || viewer == owner)
		return true;
	return owner && uid == from_kuid_munged(&init_user_ns, current_euid());
}

/** kxfer_session_info() - INFO records of sessions after *cursor; see info.c */
u32 kxfer_session_info(const struct kxfer_session *viewer, u64 *cursor,
		       void *records, u32 nr)
{
	struct kxfer_info_session *info = records;
	struct kxfer_session *session;
	u32 n = 0;

	mutex_lock(&sessions_mutex);
	list_for_each_entry(session, &sessions, node) {
		if (n == nr)
			break;
		if (session->id <= *cursor || !kxfer_session_sees(viewer, session, session->uid))
			continue;
		fill_info(session, &info[n++]);
		*cursor = session->id;
	}
	mutex_unlock(&sessions_mutex);
	return n;
}

/**
 * kxfer_session_for_each() - look at every session
 * @look: called with sessions_mutex held, which keeps the session; must not wait
 *	for anything that a user's call holds
 * @context: handed to @look
 */
void kxfer_session_for_each(void (*look)(struct kxfer_session *session, void *context),
			    void *context)
{
	struct kxfer_session *session;

	mutex_lock(&sessions_mutex);
	list_for_each_entry(session, &sessions, node)
		look(session, context);
	mutex_unlock(&sessions_mutex);
}
