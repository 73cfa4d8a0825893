// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: one open file on /dev/kxfer, its tables, its events, its end.
 *
 * The end of a session, leaf first, as a proof. It runs when the last reference to the file
 * is gone: no call of the session is under way and none comes. Waits for peers run in
 * parallel: the withdrawal of the exports begins first.
 *  1. Jobs: queued jobs end, posted jobs are waited for (job.c says how long). None came by
 *     io_uring: each of those holds the file. Afterwards only exports use the session's
 *     regions; nothing uses its targets and its two rings. No mapping of a ring is left: that
 *     would be a reference to the file.
 *  2. Targets: grants are given back later, by their links (release.c). Peers: links lose a
 *     user. Connections of the engine are taken down, for no run is under way.
 *  3. Exports: waited for until they are withdrawn (exposure.c). Afterwards no peer reaches
 *     the session's memory, and no event comes: delivery looks at the export's session under
 *     the export's lock.
 *  4. Listeners of the session; then the links of its network namespace have no session any
 *     more, if this was the last one there (net.c).
 *  5. Regions: no users are left; unmapped and unpinned.
 */
#include "base/log.h"

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kxfer.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "base/fault.h"
#include "base/stats.h"
#include "front/engine.h"
#include "front/sessions.h"
#include "job/job.h"
#include "job/peer.h"
#include "job/reap.h"
#include "job/ring.h"
#include "job/sq.h"
#include "job/target.h"
#include "job/uring.h"
#include "link/listener.h"
#include "link/net.h"
#include "node/charge.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"
#include "share/export.h"

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

/** kxfer_session_create() - make a session of a file, for the calling process; or ERR_PTR */
struct kxfer_session *kxfer_session_create(const struct file *file)
{
	struct kxfer_session *session;
	int ret;

	session = kxfer_try_alloc(SESSION, kzalloc_obj(*session, GFP_KERNEL_ACCOUNT));
	if (!session)
		return ERR_PTR(-ENOMEM);
	session->file = file;
	session->pid = task_tgid_nr(current);
	session->uid = from_kuid_munged(&init_user_ns, current_euid());
	session->gid = from_kgid_munged(&init_user_ns, current_egid());
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
	xa_init_flags(&session->mailboxes, XA_FLAGS_ACCOUNT);
	xa_init_flags(&session->peers, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->targets, KXFER_TABLE_FLAGS);
	xa_init_flags(&session->engine_objects, KXFER_TABLE_FLAGS);
	spin_lock_init(&session->job_lock);
	INIT_LIST_HEAD(&session->jobs);
	INIT_LIST_HEAD(&session->flows);
	session->max_jobs = KXFER_MAX_JOBS;
	init_waitqueue_head(&session->wait);
	mutex_init(&session->event_mutex);
	session->look_ns = KXFER_LOOK_PROBE_NS;
	INIT_DELAYED_WORK(&session->uring_watch, kxfer_uring_watch);
	spin_lock_init(&session->event_lock);
	session->net = kxfer_net_join();
	ret = publish(session);
	if (ret)
		goto err_net;
	kxfer_stat_inc(KXFER_STAT_LIVE_SESSIONS);
	return session;

err_net:
	kxfer_net_leave(session->net);
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

	xa_for_each(&session->targets, id, target) {
		kxfer_target_leave(session, target);
		kxfer_target_put(target);
	}
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

/* All in parallel: the holders of all exports may be silent. */
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
	xa_destroy(&session->mailboxes);
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
	/* Off the list first: sessions are walked under sessions_mutex. */
	mutex_lock(&sessions_mutex);
	list_del(&session->node);
	nr_sessions--;
	mutex_unlock(&sessions_mutex);

	kxfer_delay(SESSION_END);
	cancel_delayed_work_sync(&session->uring_watch);
	begin_withdrawals(session);
	kxfer_job_end_session(session);
	kxfer_sq_destroy(session->sq);
	kxfer_ring_destroy(session->ring);
	kxfer_delay(SESSION_TARGETS);
	close_targets(session);
	close_peers(session);
	kxfer_engine_end_session(session);
	kxfer_delay(SESSION_EXPORTS);
	end_withdrawals(session);
	kxfer_listener_end_session(session);
	kxfer_net_leave(session->net);
	kxfer_delay(SESSION_REGIONS);
	destroy_regions(session);
	kxfer_charge_drop(&session->charges);
	kvfree(session->events);
	kxfer_user_return(session->user, KXFER_SHARE_SESSIONS, 1);
	kxfer_user_put(session->user);
	kfree(session);
	kxfer_stat_dec(KXFER_STAT_LIVE_SESSIONS);
}

/*
 * The session's lock is not taken: a call that holds it may wait for user memory,
 * and opening a session would then wait for that call. Counting is safe without the
 * lock, and sessions_mutex keeps the session.
 */
static void fill_info(struct kxfer_session *session, struct kxfer_info_session *info)
{
	kxfer_ring_look(session);
	*info = (struct kxfer_info_session) {
		.id = session->id,
		.pid = session->pid,
		.uid = session->uid,
		.nr_regions = kxfer_table_count(&session->regions),
		.nr_exports = kxfer_table_count(&session->exports),
		.nr_peers = kxfer_table_count(&session->peers),
		.nr_targets = kxfer_table_count(&session->targets),
		.nr_jobs = READ_ONCE(session->nr_jobs),
		.nr_done = READ_ONCE(session->nr_done),
		.pinned_bytes = atomic64_read(&session->pinned_bytes),
	};
}

/** kxfer_session_info() - INFO records of sessions after *cursor; see info.c */
u32 kxfer_session_info(const struct kxfer_viewer *viewer, u64 *cursor,
		       void *records, u32 nr)
{
	struct kxfer_info_session *info = records;
	struct kxfer_session *session;
	u32 n = 0;

	mutex_lock(&sessions_mutex);
	list_for_each_entry(session, &sessions, node) {
		if (n == nr)
			break;
		if (session->id <= *cursor ||
		    !kxfer_viewer_sees(viewer, session, session->uid, session->net))
			continue;
		fill_info(session, &info[n++]);
		*cursor = session->id;
	}
	mutex_unlock(&sessions_mutex);
	return n;
}

/**
 * kxfer_session_for_each() - call a function for every session
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
