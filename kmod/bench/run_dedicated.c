// SPDX-License-Identifier: GPL-2.0
/*
 * A measuring run on a dedicated connection (dedicated.c): what may be done there, and
 * messages, which take receives of the responder.
 *
 * Whoever posts messages may post as many as there are receives that are not known to be
 * taken. A list of operations is posted only if there are receives to go on to the next
 * operation that is signalled. So, whenever the run is stopped, what is left to post up
 * to that one has its receives already: a responder that posts no more holds up no end.
 * UD may lose messages, whose receives stay posted and are told of by nobody: they are
 * given up after a while (dedicated_ud.c).
 *
 * Context: may sleep, but kxfer_run_*_locked().
 */
#include <linux/math64.h>

#include "bench/dedicated.h"
#include "bench/run.h"
#include "job/job.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/region.h"

/* Messages are those that the responder was told of. */
static int check_messages(const struct kxfer_run *run)
{
	const struct kxfer_dedicated *dedicated = run->dedicated;
	const struct kxfer_bench *cmd = run->cmd;

	/* An MR is registered again when its last message has gone. */
	if (cmd->memory == KXFER_BENCH_MEMORY_MR_EACH && cmd->depth > dedicated->slots)
		return -EINVAL;
	if (cmd->op != dedicated->op || !(cmd->flags & KXFER_BENCH_F_IMM) != !dedicated->imm ||
	    cmd->length != dedicated->bytes || cmd->depth > dedicated->receives)
		return -EINVAL;
	/* A slot has one work request, which a list has once. */
	if (cmd->list > dedicated->slots)
		return -EINVAL;
	/* A UD QP registers no memory. */
	if (dedicated->ud.wanted && cmd->memory == KXFER_BENCH_MEMORY_MR_EACH)
		return -EOPNOTSUPP;
	return dedicated->slots > 1 && !cmd->stride ? -EINVAL : 0;
}

/**
 * kxfer_run_check_dedicated() - may it do what it is to do there?
 * @run: its connection is found; gets its memory and its slots
 *
 * Return: 0 or -errno.
 */
int kxfer_run_check_dedicated(struct kxfer_run *run)
{
	const struct kxfer_dedicated *dedicated = run->dedicated;
	u32 op = run->cmd->op;

	run->awaits = run->cmd->invalidate == KXFER_BENCH_INVALIDATE_REMOTE;
	run->remote = &dedicated->remote;
	run->nr_remote = 1;
	run->nr_slots = run->cmd->depth;
	if (kxfer_run_has_messages(run)) {
		run->nr_slots = dedicated->slots;
		return check_messages(run);
	}
	if (kxfer_op_is_atomic(op) && op != dedicated->op)
		return -EACCES;
	return op == KXFER_OP_WRITE && !dedicated->writable ? -EACCES : 0;
}

/** kxfer_run_take_dedicated() - get the lane; messages go on where the last run has ended */
int kxfer_run_take_dedicated(struct kxfer_run *run)
{
	struct kxfer_dedicated *dedicated = run->dedicated;
	int ret;

	run->lane = kxfer_dedicated_lane(dedicated);
	ret = kxfer_dedicated_take(dedicated, run);
	if (ret)
		return ret;
	dedicated->ud.starved_ns = 0;
	if (kxfer_run_has_messages(run))
		div_u64_rem(dedicated->sent, run->nr_slots, &run->slot);
	return 0;
}

static u64 nr_receives(const struct kxfer_dedicated *dedicated)
{
	u64 received = READ_ONCE(dedicated->received);

	smp_rmb(); /* pairs with learn() */
	return dedicated->receives -
	       (dedicated->sent - received - READ_ONCE(dedicated->ud.given_up));
}

/** kxfer_run_receives() - messages that may be posted */
u64 kxfer_run_receives(const struct kxfer_run *run)
{
	return nr_receives(run->dedicated);
}

/**
 * kxfer_run_lacks_receives() - whether the next operations have to wait for receives
 * @run: of messages, on its lane
 * @nr: operations that would be posted
 *
 * If so, the status is asked for, and @starved set.
 */
bool kxfer_run_lacks_receives(struct kxfer_run *run, u32 nr)
{
	struct kxfer_lane *lane = run->lane;
	u32 need = roundup(run->posted + nr, run->signal) - run->posted;

	if (nr_receives(run->dedicated) >= need)
		return false;
	spin_lock_bh(&lane->lock);
	if (run->dedicated->ud.wanted)
		kxfer_dedicated_give_up_locked(run->dedicated);
	/* A link that fails ends the run. */
	if (lane->open && kxfer_link_is_live(lane->link))
		kxfer_dedicated_ask_locked(lane);
	spin_unlock_bh(&lane->lock);
	run->starved = true;
	return true;
}

/** kxfer_run_number_locked() - a message is about to be posted: give it its number */
void kxfer_run_number_locked(struct kxfer_run *run, struct ib_send_wr *wr)
{
	struct kxfer_dedicated *dedicated = run->dedicated;

	wr->ex.imm_data = cpu_to_be32((u32)dedicated->sent ^ KXFER_RESPONDER_IMMEDIATE);
	dedicated->sent++;
}

/** kxfer_run_posted_locked() - messages were posted. Return: false if the link fails */
bool kxfer_run_posted_locked(struct kxfer_run *run)
{
	struct kxfer_dedicated *dedicated = run->dedicated;

	if (nr_receives(dedicated) >= dedicated->receives / 2)
		return true;
	return !kxfer_dedicated_ask_locked(run->lane);
}
