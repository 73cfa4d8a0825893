// SPDX-License-Identifier: GPL-2.0
/*
 * How MRs that a run registers for each operation become invalid (enum
 * kxfer_bench_invalidate):
 *  - deferred: [LOCAL_INV of the last registration] REG_MR operation. The MR is mapped again
 *    while it is still valid, and no work request that uses it is under way;
 *  - local: REG_MR operation LOCAL_INV. The LOCAL_INV is signalled instead of the operation.
 *    It is fenced: earlier READs have ended. (Other earlier work requests have ended, too, if
 *    the device implements the local invalidate fence of the InfiniBand specification,
 *    10.6.5.1.) rxe of 6.1 fences each LOCAL_INV, and on two CPUs may forget to go on (see
 *    flow.c). With more than one in flight the run can then stall until kxfer_lane_stuck().
 *    That follows from the source, and was not observed. A nudge would end the stall, but
 *    needs a responder whose memory may be written;
 *  - remote: REG_MR SEND, and the responder's answer (dedicated_answers.c).
 */
#include "bench/dedicated.h"
#include "bench/mrs.h"
#include "bench/run.h"
#include "link/lane.h"

/**
 * kxfer_run_check_invalidate() - does the way of invalidation fit the connection?
 * @run: run with its connection, if any
 *
 * Return: 0 or -EINVAL.
 */
int kxfer_run_check_invalidate(const struct kxfer_run *run)
{
	bool remote = run->cmd->invalidate == KXFER_BENCH_INVALIDATE_REMOTE;
	bool messages = run->cmd->op == KXFER_OP_SEND;

	if (!run->dedicated || !messages)
		return remote ? -EINVAL : 0;
	return remote != run->dedicated->answered ? -EINVAL : 0;
}

/** kxfer_run_registering() - number of work requests that an operation has for its MR */
u32 kxfer_run_registering(const struct kxfer_run *run)
{
	if (!run->each)
		return 0;
	return run->cmd->invalidate == KXFER_BENCH_INVALIDATE_REMOTE ? 1 : 2;
}

/* Add LOCAL_INV after the operation; it then is the last work request, to be signalled. */
static void invalidate_behind(struct kxfer_mr *mr, struct kxfer_run_post *post)
{
	mr->inv.ex.invalidate_rkey = mr->mr->rkey;
	mr->inv.send_flags = IB_SEND_FENCE;
	mr->mr->need_inval = false;
	post->last->next = &mr->inv;
	post->last = &mr->inv;
	post->nr++;
}

/**
 * kxfer_run_invalidate_locked() - arrange that an operation's MR becomes invalid
 * @run: run that registers for each operation; on an open lane, whose lock is held
 * @slot: slot of the operation, whose MR is mapped
 * @valid: the MR was valid before it was mapped
 * @post: work requests of the operation, beginning with REG_MR
 */
void kxfer_run_invalidate_locked(struct kxfer_run *run, u32 slot, bool valid,
				 struct kxfer_run_post *post)
{
	struct kxfer_mr *mr = &run->mrs->each[slot];

	switch (run->cmd->invalidate) {
	case KXFER_BENCH_INVALIDATE_LOCAL:
		invalidate_behind(mr, post);
		break;
	case KXFER_BENCH_INVALIDATE_REMOTE:
		kxfer_dedicated_command_locked(run->dedicated, &run->wr[slot].wr,
					       &run->sge[slot], mr->mr->rkey);
		mr->mr->need_inval = false;
		break;
	default:
		if (!valid)
			break;
		mr->inv.next = post->first;
		post->first = &mr->inv;
		post->nr++;
	}
}
