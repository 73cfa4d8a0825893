// SPDX-License-Identifier: GPL-2.0
/*
 * A measuring run on a dedicated connection (dedicated.c): permitted operations, and messages,
 * which consume receives of the responder.
 *
 * A run may post as many messages as there are receives not known to be consumed. It posts
 * a list of operations only if there are receives up to the next signalled operation. So
 * whenever the run is stopped, the operations left to post up to that one have their
 * receives. A responder that posts no more receives cannot delay the end. UD may lose
 * messages: their receives stay posted and are never reported. The run gives these messages
 * up after a while (dedicated_ud.c).
 *
 * Context: may sleep, except kxfer_run_*_locked().
 */
#include <linux/math64.h>

#include "bench/dedicated.h"
#include "bench/run.h"
#include "job/job.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/region.h"

/* Messages must be those that the connection was opened for. Return: 0 or -errno */
static int check_messages(const struct kxfer_run *run)
{
	const struct kxfer_dedicated *dedicated = run->dedicated;
	const struct kxfer_bench *cmd = run->cmd;

	/* The MR of a slot can be registered again only when its last message is done. */
	if (cmd->memory == KXFER_BENCH_MEMORY_MR_EACH && cmd->depth > dedicated->slots)
		return -EINVAL;
	if (cmd->op != dedicated->op || !(cmd->flags & KXFER_BENCH_F_IMM) != !dedicated->imm ||
	    cmd->length != dedicated->bytes || cmd->depth > dedicated->receives)
		return -EINVAL;
	/* A slot has one work request, which can be in a list only once. */
	if (cmd->list > dedicated->slots)
		return -EINVAL;
	/* A UD QP registers no memory. */
	if (dedicated->ud.wanted && cmd->memory == KXFER_BENCH_MEMORY_MR_EACH)
		return -EOPNOTSUPP;
	return dedicated->slots > 1 && !cmd->stride ? -EINVAL : 0;
}

/**
 * kxfer_run_check_dedicated() - does the dedicated connection permit the run?
 * @run: run with its connection; gets @remote, @nr_slots and @awaits
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

/** kxfer_run_take_dedicated() - take the lane; messages go on where the last run ended */
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

/** kxfer_run_receives() - number of messages that may be posted */
u64 kxfer_run_receives(const struct kxfer_run *run)
{
	return nr_receives(run->dedicated);
}

/**
 * kxfer_run_lacks_receives() - whether the next operations have to wait for receives
 * @run: run of messages, on its lane
 * @nr: number of operations to be posted
 *
 * If so, asks for the status and sets @starved.
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
	/* Ignore errors: a link that fails ends the run. */
	if (lane->open && kxfer_link_is_live(lane->link))
		kxfer_dedicated_ask_locked(lane);
	spin_unlock_bh(&lane->lock);
	run->starved = true;
	return true;
}

/** kxfer_run_number_locked() - number a message that is about to be posted */
void kxfer_run_number_locked(struct kxfer_run *run, struct ib_send_wr *wr)
{
	struct kxfer_dedicated *dedicated = run->dedicated;

	wr->ex.imm_data = cpu_to_be32((u32)dedicated->sent ^ KXFER_RESPONDER_IMMEDIATE);
	dedicated->sent++;
}

/** kxfer_run_posted_locked() - after a post of messages. Return: false if the link fails */
bool kxfer_run_posted_locked(struct kxfer_run *run)
{
	struct kxfer_dedicated *dedicated = run->dedicated;

	if (nr_receives(dedicated) >= dedicated->receives / 2)
		return true;
	return !kxfer_dedicated_ask_locked(run->lane);
}
