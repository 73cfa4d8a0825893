/* SPDX-License-Identifier: GPL-2.0 */
/* What a session holds of a peer over links that come and go. See line.c. */
#ifndef KXFER_LINE_H
#define KXFER_LINE_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "base/deadline.h"
#include "job/story.h"

struct cred;
struct kxfer_active_job;
struct kxfer_job_list;
struct kxfer_lane;
struct kxfer_link;
struct kxfer_peer;
struct kxfer_session;
struct kxfer_target;
struct mem_cgroup;

#define KXFER_LOSS_MAX_MS	3600000	/* longest time that jobs wait for a lost link */

/**
 * struct kxfer_line - the line to a peer that was opened with loss_ms
 * @peer: peer of the line, which has it to its end
 * @loss_ms: how long jobs wait for a lost link
 * @memcg: memory cgroup charged for new links and targets: of the call that opened the peer; a
 *	reference
 * @cred: of that call, too: its capabilities count; a reference
 * @work: finds a new link, and has @jobs go on (reconnect.c)
 * @backoff_ms: longest pause before the next try; this and the next eight are protected by the
 *	session's job_lock
 * @closed: no job may wait any more
 * @moving: all targets go to the peer's link, though theirs may live
 * @down: all jobs of the line's targets wait in @jobs
 * @taken: the work has a job that is neither in @jobs nor on a lane
 * @jobs: jobs that wait, by kxfer_active_job.lane_node, in the order of acceptance
 * @nr_jobs: number of @jobs
 * @until_ns: when @jobs end, if @down
 * @deadlines: deadlines of @jobs, and @until_ns
 * @home_ms: pause before the next look at the first path, 0: none is due; of @work alone
 * @home_at: when that is, in jiffies; of @work alone
 * @story: what happened
 */
struct kxfer_line {
	struct kxfer_peer *peer;
	u32 loss_ms;
	struct mem_cgroup *memcg;
	const struct cred *cred;
	struct delayed_work work;
	u32 backoff_ms;
	bool closed;
	bool moving;
	bool down;
	bool taken;
	struct list_head jobs;
	u32 nr_jobs;
	u64 until_ns;
	struct kxfer_deadlines deadlines;
	u32 home_ms;
	unsigned long home_at;
	struct kxfer_story story;
};

struct kxfer_line *kxfer_line_create(struct kxfer_peer *peer, u32 loss_ms);
void kxfer_line_close(struct kxfer_line *line);
void kxfer_line_close_all(struct kxfer_session *session);
void kxfer_line_free(struct kxfer_line *line);
void kxfer_line_sort(struct kxfer_job_list *jobs, struct list_head *kept);
void kxfer_line_keep(struct list_head *kept, int error);
bool kxfer_line_takes(struct kxfer_active_job *job, const struct kxfer_lane *lane);
bool kxfer_line_stop(struct kxfer_active_job *job, bool started, struct kxfer_job_list *ended);
void kxfer_line_rebind(struct kxfer_target *old, struct kxfer_target *fresh);
bool kxfer_line_is_down(struct kxfer_line *line);
struct kxfer_active_job *kxfer_line_take_first(struct kxfer_line *line,
					       const struct kxfer_link *link,
					       struct kxfer_target **target);
int kxfer_line_go_on(struct kxfer_active_job *job);
void kxfer_line_end_target(struct kxfer_line *line, struct kxfer_target *target);
bool kxfer_line_hold(struct kxfer_line *line, u32 most_ms);
void kxfer_line_let_go(struct kxfer_line *line);
bool kxfer_line_is_closed(struct kxfer_line *line);

#endif /* KXFER_LINE_H */
