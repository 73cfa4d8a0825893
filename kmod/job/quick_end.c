// SPDX-License-Identifier: GPL-2.0
/*
 * Quick jobs in flight: their end, and who looks for them. quick.c accepts them.
 *
 * A quick job is a chain of its lane: it is in no list, and there is no struct kxfer_active_job
 * of it. The chain says by @session that it is a quick job. That is set when the job is accepted
 * and cleared when it ends, both with the session's job_lock and the lane's lock held. So a
 * context that holds job_lock sees each quick job of the session that is in flight, by the flows
 * of the session; the other chains of a lane may change meanwhile, but to no chain of this session.
 *
 * Each quick job completes once, and not before no device touches its memory:
 *  1. Its work request is signalled, so it has one completion. The owner of the CQ, which is
 *     only one, ends the job if that completion is a success (kxfer_chain_settle()).
 *  2. Else the chain stays as it is, and the link is broken. The link's teardown ends all quick
 *     jobs that are left, after the lane was stopped: no device works on them, and the CQ has no
 *     owner (kxfer_quick_fail()). No new ones come, because the lane is not open.
 *
 * What a quick job uses stays until then: it is counted as a user of its target, its region and
 * its mapping, and as a job of its session. These counts are dropped under job_lock after the
 * chain is no longer the job's, and nothing of the job is read after that.
 *
 * Context: any but hard interrupts; nothing sleeps. Lock order: as in job.c.
 */
#include <linux/ktime.h>
#include <linux/list.h>

#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/done.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/latency.h"
#include "job/quick.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/mapping.h"
#include "node/region.h"

/**
 * struct ended - quick jobs that end in one hold of the locks
 * @session: session of all of them
 * @target: target of all of them
 * @region: region of all of them
 * @mapping: mapping of @region
 * @nr: number of the jobs
 * @nr_reads: READs among them
 * @nr_failed: those that did not succeed
 * @bytes: bytes of all
 * @bytes_read: bytes of READs that succeeded
 * @bytes_written: bytes of WRITEs that succeeded
 */
struct ended {
	struct kxfer_session *session;
	struct kxfer_target *target;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	u32 nr;
	u32 nr_reads;
	u32 nr_failed;
	u64 bytes;
	u64 bytes_read;
	u64 bytes_written;
};

/* Whether a chain, or NULL, is a quick job like the others. Others have no session. */
static bool is_alike(const struct kxfer_chain *chain, const struct ended *ended)
{
	return chain && chain->session == ended->session && chain->target == ended->target &&
	       chain->region == ended->region && chain->mapping == ended->mapping;
}

static void sync_alike(const struct kxfer_chain *chain, const struct ended *ended)
{
	for (; is_alike(chain, ended); chain = chain->next)
		if (chain->completion.op == KXFER_OP_READ)
			kxfer_mapping_to_cpu(chain->mapping, chain->offset, chain->bytes);
}

/* Called with both locks held: write the completion into its place. */
static void end_job(struct kxfer_lane *lane, struct kxfer_chain *chain, int status, u64 now_ns,
		    struct ended *ended)
{
	struct kxfer_completion *completion = &chain->completion;
	u32 op = completion->op;

	completion->completed_ns = now_ns;
	if (status && !completion->status)
		completion->status = status;
	if (completion->status) {
		ended->nr_failed++;
	} else {
		completion->bytes = chain->bytes;
		if (op == KXFER_OP_READ)
			ended->bytes_read += chain->bytes;
		else if (op == KXFER_OP_WRITE)
			ended->bytes_written += chain->bytes;
	}
	ended->nr++;
	ended->bytes += chain->bytes;
	ended->nr_reads += op == KXFER_OP_READ;
	kxfer_latency_count(lane->latencies, completion);
	*kxfer_done_next(ended->session) = *completion;
	trace_kxfer_job_completed(ended->session, completion, chain->bytes, lane, ended->target);
	WRITE_ONCE(chain->session, NULL);
}

/* Called with both locks held. */
static void leave_lane(struct kxfer_lane *lane, const struct ended *ended)
{
	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, ended->nr));
	lane->bytes_posted -= ended->bytes;
	WRITE_ONCE(lane->nr_posted, lane->nr_posted - ended->nr);
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + ended->nr - ended->nr_failed);
	WRITE_ONCE(lane->bytes_read, lane->bytes_read + ended->bytes_read);
	WRITE_ONCE(lane->bytes_written, lane->bytes_written + ended->bytes_written);
	kxfer_flow_leave_some(ended->target->flow, ended->nr, ended->nr_reads);
}

/* Called with job_lock held; a waiter may free the objects of the jobs after that. */
static void release(const struct ended *ended)
{
	struct kxfer_session *session = ended->session;

	kxfer_mapping_put(ended->mapping, ended->nr);
	atomic_sub(ended->nr, &ended->region->users);
	kxfer_complete_target(ended->target, ended->nr);
	kxfer_complete_places(session, ended->nr, ended->nr);
}

static void count(const struct ended *ended)
{
	u32 nr = ended->nr - ended->nr_failed;

	kxfer_stat_add(KXFER_STAT_COMPLETIONS, nr);
	kxfer_stat_add(KXFER_STAT_JOBS_COMPLETED, nr);
	if (ended->nr_failed)
		kxfer_stat_add(KXFER_STAT_JOBS_FAILED, ended->nr_failed);
	if (ended->bytes_read)
		kxfer_stat_add(KXFER_STAT_BYTES_READ, ended->bytes_read);
	if (ended->bytes_written)
		kxfer_stat_add(KXFER_STAT_BYTES_WRITTEN, ended->bytes_written);
}

/**
 * kxfer_quick_end() - end quick jobs at the head of a list
 * @lane: lane of the chains; the caller holds no lock, and bottom halves are off
 * @chain: first chain of a list by @next, which is the caller's; it is a quick job
 * @status: 0; or -errno for jobs without a status of their own
 * @now_ns: ktime_get_ns()
 *
 * Ends those that are alike in one hold of the locks. Return: the first chain that is left, or
 * NULL.
 */
struct kxfer_chain *kxfer_quick_end(struct kxfer_lane *lane, struct kxfer_chain *chain, int status,
				    u64 now_ns)
{
	struct ended ended = {
		.session = chain->session,
		.target = chain->target,
		.region = chain->region,
		.mapping = chain->mapping,
	};
	struct kxfer_chain *next;

	if (ended.mapping->synced)
		sync_alike(chain, &ended);
	spin_lock(&ended.session->job_lock);
	spin_lock(&lane->lock);
	do {
		next = chain->next;
		end_job(lane, chain, status, now_ns, &ended);
		kxfer_chain_free(lane, chain);
		chain = next;
	} while (is_alike(chain, &ended));
	leave_lane(lane, &ended);
	spin_unlock(&lane->lock);
	count(&ended);
	release(&ended);
	/* The session may go after this. */
	spin_unlock(&ended.session->job_lock);
	return chain;
}

/**
 * kxfer_quick_fail() - end the quick jobs of a stopped lane
 * @lane: any lane; a control QP has none
 * @error: -errno
 */
void kxfer_quick_fail(struct kxfer_lane *lane, int error)
{
	struct kxfer_chain *chains = NULL;
	u32 i;

	local_bh_disable();
	spin_lock(&lane->lock);
	for (i = 0; lane->chains && i < lane->credits.max; i++) {
		if (!lane->chains[i].session)
			continue;
		lane->chains[i].next = chains;
		chains = &lane->chains[i];
		chains->target->flow->cut = true;
	}
	spin_unlock(&lane->lock);
	while (chains)
		chains = kxfer_quick_end(lane, chains, error, ktime_get_ns());
	local_bh_enable();
}

/*
 * The following are called with job_lock of the session held. A flow with quick jobs stays on its
 * lane, and the lane stays.
 */

/** kxfer_quick_lane() - a lane with quick jobs of a session, of the longest unused flow; or NULL */
struct kxfer_lane *kxfer_quick_lane(const struct kxfer_session *session)
{
	const struct kxfer_flow *flow;

	list_for_each_entry(flow, &session->flows, session_node)
		if (flow->nr_quick)
			return flow->lane;
	return NULL;
}

/**
 * kxfer_quick_on() - count quick jobs of a session on a lane
 * @session: session
 * @lane: lane whose lock the caller holds
 * @withdrawn: set to true if a withdrawal may wait for some of them
 */
u32 kxfer_quick_on(const struct kxfer_session *session, const struct kxfer_lane *lane,
		   bool *withdrawn)
{
	const struct kxfer_flow *flow;
	u32 nr = 0;

	list_for_each_entry(flow, &session->flows, session_node) {
		if (!flow->nr_quick || flow->lane != lane)
			continue;
		nr += flow->nr_quick;
		*withdrawn |= flow->withdrawn;
	}
	return nr;
}

/* The quick job of a session that a chain is, or NULL. Chains of other sessions may change. */
static const struct kxfer_completion *job_of(const struct kxfer_session *session,
					     const struct kxfer_chain *chain)
{
	return READ_ONCE(chain->session) == session ? &chain->completion : NULL;
}

static u32 count_on(const struct kxfer_session *session, const struct kxfer_lane *lane, bool all,
		    u64 user_data)
{
	const struct kxfer_completion *job;
	u32 i, nr = 0;

	for (i = 0; i < lane->credits.max; i++) {
		job = job_of(session, &lane->chains[i]);
		nr += job && (all || job->user_data == user_data);
	}
	return nr;
}

/** kxfer_quick_count() - number of quick jobs in flight: of @all, or those of @user_data */
u32 kxfer_quick_count(const struct kxfer_session *session, bool all, u64 user_data)
{
	const struct kxfer_flow *flow;
	u32 nr = 0;

	list_for_each_entry(flow, &session->flows, session_node)
		if (flow->nr_quick)
			nr += count_on(session, flow->lane, all, user_data);
	return nr;
}

static u32 record_on(const struct kxfer_session *session, const struct kxfer_lane *lane,
		     struct kxfer_job_record *records, u32 nr)
{
	const struct kxfer_completion *job;
	u32 i, n = 0;

	for (i = 0; i < lane->credits.max && n < nr; i++) {
		job = job_of(session, &lane->chains[i]);
		if (!job)
			continue;
		records[n++] = (struct kxfer_job_record) {
			.user_data = job->user_data,
			.length = lane->chains[i].bytes,
			.submitted_ns = job->submitted_ns,
			.link = lane->link->id,
			.lane = lane->index,
			.op = job->op,
			.posted = true,
		};
	}
	return n;
}

/** kxfer_quick_records() - the part of kxfer_job_records() that is about quick jobs */
u32 kxfer_quick_records(const struct kxfer_session *session, struct kxfer_job_record *records,
			u32 nr)
{
	const struct kxfer_flow *flow;
	u32 n = 0;

	list_for_each_entry(flow, &session->flows, session_node)
		if (flow->nr_quick)
			n += record_on(session, flow->lane, records + n, nr - n);
	return n;
}

/** kxfer_quick_give_up() - give up the links that quick jobs of a closed session are on */
void kxfer_quick_give_up(struct kxfer_session *session)
{
	const struct kxfer_flow *flow;

	list_for_each_entry(flow, &session->flows, session_node)
		if (flow->nr_quick)
			kxfer_link_fail(flow->lane->link, -ETIMEDOUT);
}
