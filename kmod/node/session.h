/* SPDX-License-Identifier: GPL-2.0 */
/* One open file on /dev/kxfer: what its calls share. Its beginning and end: sessions.c. */
#ifndef KXFER_SESSION_H
#define KXFER_SESSION_H

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "base/job_list.h"
#include "node/table.h"

struct kxfer_engine;
struct kxfer_event;
struct kxfer_region;
struct kxfer_session_ring;
struct kxfer_target;
struct kxfer_user;

/* Caps of a session and of the node, told by QUERY. */
#define KXFER_MAX_SESSIONS	4096
#define KXFER_MAX_REGIONS	1024
#define KXFER_MAX_EXPORTS	1024
#define KXFER_MAX_TARGETS	4096
#define KXFER_MAX_PEERS		256
#define KXFER_MAX_JOBS		4096
#define KXFER_MAX_EVENTS	256

/**
 * struct kxfer_session - all that one open file owns
 * @id: node-wide
 * @node: in the list of sessions
 * @pid: of the opener
 * @uid: effective uid of the opener, in the initial user namespace
 * @gid: effective gid
 * @user: of @uid in its user namespace; a reference
 * @file: that it is
 * @init_net: opened in the initial network namespace, the only one served
 * @lock: over the six tables: read to look up, write to change
 * @regions: struct kxfer_region by id
 * @exports: struct kxfer_export by id
 * @mailboxes: those of @exports that are one: struct kxfer_mailbox by the same id
 * @peers: struct kxfer_peer by id
 * @targets: struct kxfer_target by id
 * @engine: that it has made a call of, with a reference to its module; set once; or NULL
 * @engine_objects: what the engine has in this session, by id
 * @last_region: of @regions, looked up last for a job; or NULL
 * @last_target: of @targets, likewise
 * @pinned_bytes: of its regions
 * @charges: of the rdma cgroup: devices it uses; see charge.c
 * @job_lock: over the next eight; bh-safe
 * @jobs: in flight, by kxfer_active_job.session_node
 * @done: ended and not reaped; nothing with a @ring
 * @nr_jobs: length of @jobs
 * @nr_done: length of @done, or at most so many are unread in @ring (ring.c)
 * @max_jobs: of both together
 * @ring: where completions go, or NULL; set once
 * @spare_jobs: kept for reuse, by kxfer_active_job.next
 * @nr_spare_jobs: how many
 * @wait: for completions, events and the end of jobs
 * @reap_mutex: one reaper at a time
 * @look_ns: how long to look for completions before sleeping (reap.c)
 * @look_rests: waits without looking
 * @uring_watch: looks whether somebody waits for jobs that came by io_uring (uring.c)
 * @event_lock: over the next three; bh-safe
 * @events: ring of KXFER_MAX_EVENTS, made with the first export
 * @event_head: next to be taken
 * @event_tail: next to be put
 */
struct kxfer_session {
	u64 id;
	struct list_head node;
	pid_t pid;
	u32 uid;
	u32 gid;
	struct kxfer_user *user;
	const struct file *file;
	bool init_net;
	struct rw_semaphore lock;
	struct xarray regions;
	struct xarray exports;
	struct xarray mailboxes;
	struct xarray peers;
	struct xarray targets;
	const struct kxfer_engine *engine;
	struct xarray engine_objects;
	struct kxfer_region *last_region;
	struct kxfer_target *last_target;
	atomic64_t pinned_bytes;
	struct list_head charges;

	spinlock_t job_lock;
	struct list_head jobs;
	struct kxfer_job_list done;
	u32 nr_jobs;
	u32 nr_done;
	u32 max_jobs;
	struct kxfer_session_ring *ring;
	struct kxfer_active_job *spare_jobs;
	u32 nr_spare_jobs;
	wait_queue_head_t wait;
	struct mutex reap_mutex;
	u32 look_ns;
	u32 look_rests;
	struct delayed_work uring_watch;

	spinlock_t event_lock;
	struct kxfer_event *events;
	u32 event_head;
	u32 event_tail;
};

/** kxfer_session_may_wait() - whether calls may wait. Return: 0, or -EAGAIN: O_NONBLOCK is set */
static inline int kxfer_session_may_wait(const struct kxfer_session *session)
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
static inline int kxfer_session_begin_reap(struct kxfer_session *session)
{
	if (mutex_trylock(&session->reap_mutex))
		return 0;
	return kxfer_session_may_wait(session) ?: mutex_lock_killable(&session->reap_mutex);
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
static inline bool kxfer_session_sees(const struct kxfer_session *viewer,
				      const struct kxfer_session *owner, u32 uid)
{
	if (!viewer || viewer == owner)
		return true;
	return owner && uid == from_kuid_munged(&init_user_ns, current_euid());
}

/**
 * struct kxfer_viewer - a caller of INFO without CAP_NET_ADMIN
 * @session: of the call
 * @links: for a list of links or lanes an entry for the id of each link, a value: not 0 if a
 *	session of the caller's uid has a peer on it; of an accepted link how many grants its
 *	peer holds on exports of that uid. Ids are never used again: no entry is of another
 *	link
 */
struct kxfer_viewer {
	const struct kxfer_session *session;
	struct xarray links;
};

#define KXFER_CLOSE_MS	10000	/* close() waits for posted jobs; then their links go */

#endif /* KXFER_SESSION_H */
