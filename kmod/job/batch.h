/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs of one call until they are handed over. See batch.c. */
#ifndef KXFER_BATCH_H
#define KXFER_BATCH_H

#include <linux/types.h>

#include "job/job.h"

struct io_uring_cmd;
struct kxfer_device;
struct kxfer_flow;
struct kxfer_job;
struct kxfer_lane;
struct kxfer_mapping;
struct kxfer_region;
struct kxfer_session;

/**
 * struct kxfer_batch - jobs of one call until they are handed over
 * @session: session of the caller
 * @now_ns: ktime_get_ns() when the call began
 * @uring: io_uring command of the next job, or NULL
 * @may_sleep: the caller may sleep
 * @at_once: jobs are posted as they are handed over; else the caller pumps @lane
 * @places: places reserved among the session's jobs and not used yet
 * @full: result for a job that finds no place: -errno or KXFER_WOULD_SLEEP
 * @spares: free jobs to be used first, by kxfer_active_job.next
 * @jobs: accepted jobs, in no other list yet
 * @recvs: the same for RECVs, which go to no lane
 * @nr: length of @jobs and @recvs
 * @longest: length of the longest of @jobs, in bytes: it chooses the lane
 * @flow: flow of those of @jobs that have a target; kept after a flush; or NULL
 * @lane: lane that jobs of @flow were handed to last; or NULL
 * @mapping: mapping looked up last, in use by a job not handed over yet; or NULL
 */
struct kxfer_batch {
	struct kxfer_session *session;
	u64 now_ns;
	struct io_uring_cmd *uring;
	bool may_sleep;
	bool at_once;
	u32 places;
	int full;
	struct kxfer_active_job *spares;
	struct kxfer_job_list jobs;
	struct kxfer_job_list recvs;
	u32 nr;
	u64 longest;
	struct kxfer_flow *flow;
	struct kxfer_lane *lane;
	struct kxfer_mapping *mapping;
};

void kxfer_batch_begin(struct kxfer_batch *batch, struct kxfer_session *session, u32 want,
		       bool may_sleep);
struct kxfer_active_job *kxfer_batch_job(struct kxfer_batch *batch,
					 const struct kxfer_job *user);
struct kxfer_mapping *kxfer_batch_find_mapping(struct kxfer_batch *batch,
					       struct kxfer_region *region,
					       struct kxfer_device *dev);
struct kxfer_mapping *kxfer_batch_make_mapping(struct kxfer_batch *batch,
					       struct kxfer_region *region,
					       struct kxfer_device *dev);
int kxfer_batch_add(struct kxfer_batch *batch, struct kxfer_active_job *job);
void kxfer_batch_refuse(struct kxfer_batch *batch, struct kxfer_active_job *job);
void kxfer_batch_flush(struct kxfer_batch *batch);
void kxfer_batch_end(struct kxfer_batch *batch);

#endif /* KXFER_BATCH_H */
