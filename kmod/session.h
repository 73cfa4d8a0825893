/* SPDX-License-Identifier: GPL-2.0 */
/* One open file on /dev/kxfer. See session.c. */
#ifndef KXFER_SESSION_H
#define KXFER_SESSION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "job.h"

struct file;
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

/* An xarray tries without the caller's gfp flags first, hence ACCOUNT. */
#define KXFER_TABLE_FLAGS	(XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT)

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
 * @lock: over the five tables: read to look up, write to change
 * @regions: struct kxfer_region by id
 * @exports: struct kxfer_export by id
 * @peers: struct kxfer_peer by id
 * @targets: struct kxfer_target by id
 * @dedicated: struct kxfer_dedicated by id
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
	struct xarray peers;
	struct xarray targets;
	struct xarray dedicated;
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

struct kxfer_session *kxfer_session_create(const struct file *file);
int kxfer_session_may_wait(const struct kxfer_session *session);
int kxfer_session_begin_reap(struct kxfer_session *session);
void kxfer_session_destroy(struct kxfer_session *session);
int kxfer_session_insert(struct xarray *table, void *object, u32 *id, u32 max);
u32 kxfer_session_count(struct xarray *table);
bool kxfer_session_sees(const struct kxfer_session *viewer, const struct kxfer_session *owner,
			u32 uid);
u32 kxfer_session_info(const struct kxfer_session *viewer, u64 *cursor,
		       void *records, u32 nr);
void kxfer_session_for_each(void (*look)(struct kxfer_session *session, void *context),
			    void *context);

int kxfer_session_prepare_events(struct kxfer_session *session);
int kxfer_session_push_event(struct kxfer_session *session,
			     const struct kxfer_event *event);
bool kxfer_session_has_event(struct kxfer_session *session);
int kxfer_event_reap(struct kxfer_session *session, void *arg);

#define KXFER_CLOSE_MS	10000	/* close() waits for posted jobs; then their links go */

#endif /* KXFER_SESSION_H */
