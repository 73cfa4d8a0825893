// SPDX-License-Identifier: GPL-2.0
/*
 * How MRs that a run registers for each operation become invalid (enum
 * kxfer_bench_invalidate):
 *  - deferred: [LOCAL_INV of the last time] REG_MR operation. The MR is mapped again while
 *    it is still valid, and no work request that uses it is under way;
 *  - local: REG_MR operation LOCAL_INV. That is signalled in place of the operation, and is
 *    fenced: READs before it have ended. (What else is before it has ended too where the
 *    device keeps the local invalidate fence of the InfiniBand specification, 10.6.5.1.)
 *    rxe of 6.1 fences each LOCAL_INV, and on two CPUs may forget to go on (flow.c says
 *    how): with more than one in flight the run can then stand still until kxfer_lane_stuck().
 *    That follows from the source, and was not seen. A nudge would mend it, but takes a
 *    responder that lets itself be written;
 *  - remote: REG_MR SEND, and the responder's answer (dedicated_answers.c).
 */
#include "bench/dedicated.h"
#include "bench/mrs.h"
#include "bench/run.h"
#include "link/lane.h"

/**
 * kxfer_run_check_invalidate() - does it fit the connection?
 * @run: its connection is found, if it has one
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

/** kxfer_run_registering() - work requests of an operation for its MR */
u32 kxfer_run_registering(const struct kxfer_run *run)
{
	if (!run->each)
		return 0;
	return run->cmd->invalidate == KXFER_BENCH_INVALIDATE_REMOTE ? 1 : 2;
}

/* Behind all of the operation, whose last work request is posted like any other. */
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
 * kxfer_run_invalidate_locked() - see to it that an operation's MR becomes invalid
 * @run: registers for each operation; on an open lane, whose lock is held
 * @slot: of the operation, whose MR is mapped
 * @valid: it was valid before that
 * @post: begins with its REG_MR
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
