/* SPDX-License-Identifier: GPL-2.0 */
/* Shared state of the calls on one open file of /dev/kxfer; made and ended in sessions.c. */
#ifndef KXFER_SESSION_H
#define KXFER_SESSION_H

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "node/table.h"

struct kxfer_active_job;
struct kxfer_completion;
struct kxfer_engine;
struct kxfer_event;
struct kxfer_region;
struct kxfer_session_ring;
struct kxfer_session_sq;
struct kxfer_target;
struct kxfer_user;

/* Caps of a session and of the node, reported by QUERY. */
#define KXFER_MAX_SESSIONS	4096
#define KXFER_MAX_REGIONS	1024
#define KXFER_MAX_EXPORTS	1024
#define KXFER_MAX_TARGETS	4096
#define KXFER_MAX_PEERS		256
#define KXFER_MAX_JOBS		4096
#define KXFER_MAX_EVENTS	256

/**
 * struct kxfer_session - all objects that one open file owns
 * @id: id, unique on the node
 * @node: entry of the list of sessions
 * @pid: pid of the opener
 * @uid: effective uid of the opener, in the initial user namespace
 * @gid: effective gid of the opener, in the initial user namespace
 * @user: the opener as a user of its own user namespace; a reference
 * @file: the open file
 * @net: network namespace of the opener; a reference (link/net.c)
 * @lock: protects the six xarrays: read to look up, write to change
 * @regions: struct kxfer_region by id
 * @exports: struct kxfer_export by id
 * @mailboxes: struct kxfer_mailbox of those @exports that have one, by the export's id
 * @peers: struct kxfer_peer by id
 * @targets: struct kxfer_target by id
 * @engine: engine that the session has called, with a reference to the engine's module;
 *	set once; or NULL
 * @engine_objects: objects of the engine in this session, by id
 * @last_region: entry of @regions that was looked up last for a job; or NULL
 * @last_target: entry of @targets that was looked up last for a job; or NULL
 * @pinned_bytes: bytes of all regions, in whole pages
 * @charges: charges to the rdma cgroup, for devices in use; see charge.c
 * @sq: submission ring (job/sq.c), or NULL; set once
 * @job_lock: protects the next thirteen members; bh-safe
 * @jobs: jobs in flight, by kxfer_active_job.session_node, but those of @flows that are quick
 * @flows: flows of @targets (job/flow.h), in the order of their last quick jobs
 * @done: completions, in a ring of @done_entries (done.c): those that are not reaped; with a
 *	@ring: what that shares with the process
 * @done_entries: a power of two; 0: there was no job yet
 * @done_tail: number of the next completion
 * @nr_jobs: jobs in flight, and the places of batches under way
 * @nr_recvs: number of RECVs in @jobs
 * @nr_done: completions that are not reaped; with a @ring: most that are unread in it (ring.c)
 * @max_jobs: limit of @nr_jobs + @nr_done, and of @done_entries
 * @ring: completion ring, or NULL; set once
 * @spare_jobs: free jobs kept for reuse, by kxfer_active_job.next
 * @nr_spare_jobs: length of @spare_jobs
 * @peak_jobs: largest @nr_jobs + @nr_done so far
 * @wait: woken for completions, events and the end of jobs
 * @event_mutex: held by the one caller that takes events
 * @look_ns: how long to poll for completions before sleeping (reap.c)
 * @look_rests: waits while @look_ns was 0
 * @uring_watch: ends jobs of io_uring whose ring or task is ending (uring.c)
 * @event_lock: protects the next four members; bh-safe
 * @events: ring of @nr_events events, made with the first export
 * @nr_events: length of @events, at least KXFER_MAX_EVENTS once it is made; a power of two
 * @event_head: number of the next event to take
 * @event_tail: number of the next event to put
 */
struct kxfer_session {
	u64 id;
	struct list_head node;
	pid_t pid;
	u32 uid;
	u32 gid;
	struct kxfer_user *user;
	const struct file *file;
	struct net *net;
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
	struct kxfer_session_sq *sq;

	spinlock_t job_lock;
	struct list_head jobs;
	struct list_head flows;
	struct kxfer_completion *done;
	u32 done_entries;
	u32 done_tail;
	u32 nr_jobs;
	u32 nr_recvs;
	u32 nr_done;
	u32 max_jobs;
	struct kxfer_session_ring *ring;
	struct kxfer_active_job *spare_jobs;
	u32 nr_spare_jobs;
	u32 peak_jobs;
	wait_queue_head_t wait;
	struct mutex event_mutex;
	u32 look_ns;
	u32 look_rests;
	struct delayed_work uring_watch;

	spinlock_t event_lock;
	struct kxfer_event *events;
	u32 nr_events;
	u32 event_head;
	u32 event_tail;
};

/* The time until @deadline_ns, which is not 0; negative: it has passed. */
static inline ktime_t kxfer_left(u64 deadline_ns)
{
	u64 now_ns = ktime_get_ns();

	return deadline_ns <= now_ns ? -1 : min_t(u64, deadline_ns - now_ns, KTIME_MAX);
}

/*
 * Sleep on @wait of a session until @condition. @deadline_ns: end of the sleep, as by
 * ktime_get_ns(); 0: none. Return: 0, -ETIMEDOUT or -EINTR.
 */
#define kxfer_session_wait(session, condition, deadline_ns)				\
({											\
	ktime_t __left = (deadline_ns) ? kxfer_left(deadline_ns) : KTIME_MAX;		\
	int __ret = -ETIME;								\
											\
	if (__left >= 0)								\
		__ret = wait_event_interruptible_hrtimeout((session)->wait, condition, __left);	\
	__ret == -ETIME ? -ETIMEDOUT : __ret ? -EINTR : 0;				\
})

/** kxfer_session_may_wait() - may calls wait? Return: 0, or -EAGAIN: O_NONBLOCK is set */
static inline int kxfer_session_may_wait(const struct kxfer_session *session)
{
	return READ_ONCE(session->file->f_flags) & O_NONBLOCK ? -EAGAIN : 0;
}

/**
 * struct kxfer_viewer - a caller of INFO
 * @session: session of the call; it sees what is in its network namespace
 * @admin: the caller has CAP_NET_ADMIN, and sees what others have there, too
 * @links: without @admin, for a list of links or lanes: a value for each link, by link id. An
 *	initiated link has 1 if a session of the caller's uid has a peer on it, else 0. An accepted
 *	link has the number of grants that its peer holds on exports of that uid. Link ids are never
 *	reused, so no entry is of another link
 */
struct kxfer_viewer {
	const struct kxfer_session *session;
	bool admin;
	struct xarray links;
};

/** kxfer_viewer_is_in() - does INFO list what is in @net (NULL: all)? @viewer: NULL: debugfs */
static inline bool kxfer_viewer_is_in(const struct kxfer_viewer *viewer, const struct net *net)
{
	return !viewer || !net || net_eq(viewer->session->net, net);
}

/**
 * kxfer_viewer_sees() - may INFO show the caller an object?
 * @viewer: the caller; NULL: debugfs
 * @owner: session that made the object; NULL: the module made it
 * @uid: uid of @owner
 * @net: network namespace of @owner
 *
 * @uid is compared with that of the calling task, not of the opener of the file. So a file
 * that was handed on shows a task of another uid none of the opener's other sessions.
 * Return: true if it may.
 */
static inline bool kxfer_viewer_sees(const struct kxfer_viewer *viewer,
				     const struct kxfer_session *owner, u32 uid,
				     const struct net *net)
{
	if (!kxfer_viewer_is_in(viewer, net))
		return false;
	if (!viewer || viewer->admin || viewer->session == owner)
		return true;
	return owner && uid == from_kuid_munged(&init_user_ns, current_euid());
}

#define KXFER_CLOSE_MS	10000	/* wait of close() for posted jobs; then their links fail */

#endif /* KXFER_SESSION_H */
