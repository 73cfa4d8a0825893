// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that the responder of a dedicated connection answers, as a storage target does:
 * in front of each is a command with the key of the MR that it is sent from, and the answer
 * is a SEND_WITH_INV of that key. So the MR is invalid when the answer is here, and nothing
 * is to be posted for that.
 *
 * Answers come in the order of messages (RC), so the n-th is to invalidate the key of
 * message n; one that does anything else ends the link. An answer has no bytes: RECVs have
 * no memory. There are as many as messages can be under way, and each is posted again
 * before its answer counts.
 *
 * Whose the run is, as a proof. A run is known here from when it has the lane until it
 * gives that back, both under the lane's lock. An answer that counts is of a message whose
 * run is not done without it, and completions come from one caller at a time: so that run
 * is there until kxfer_run_answered() returns. One too many finds all messages answered,
 * and no run is looked at. RECVs that are flushed are so by the lane's end (lane.c), before
 * this goes with the link.
 */
#include <linux/slab.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "bench/run.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"

/* Messages under way at most. */
#define MAX_ANSWERS	KXFER_LANE_JOB_WRS
#define COMMAND_BYTES	sizeof(struct kxfer_responder_command)

/**
 * struct kxfer_answers - of a connection
 * @dedicated: it
 * @cqe: of its RECVs
 * @nr: that came; this and the rest under the lane's lock
 * @run: that has the lane, or NULL
 * @commands: array of MAX_ANSWERS: that of message n is the n-th, from the begin again
 * @commands_dma: their address
 * @keys: likewise: what the answer is to invalidate
 * @sge: likewise: command, and message
 */
struct kxfer_answers {
	struct kxfer_dedicated *dedicated;
	struct ib_cqe cqe;
	u64 nr;
	struct kxfer_run *run;
	struct kxfer_responder_command *commands;
	u64 commands_dma;
	u32 keys[MAX_ANSWERS];
	struct ib_sge sge[MAX_ANSWERS][2];
};

/* Called with the lock of an open lane, or before its link is LIVE. */
static int post_recv(struct kxfer_lane *lane, struct kxfer_answers *answers)
{
	struct ib_recv_wr wr = { .wr_cqe = &answers->cqe };

	return kxfer_fault_error(DEDICATED_RECV) ?: ib_post_recv(lane->qp, &wr, NULL);
}

/* With the lane's lock. Return: whose it is, or NULL: it counts for nothing */
static struct kxfer_run *take_locked(struct kxfer_lane *lane, struct kxfer_answers *answers,
				     const struct ib_wc *wc)
{
	/* Nobody waits; and behind one that was lost, none is the one that is expected. */
	if (!lane->open || !kxfer_link_is_live(lane->link))
		return NULL;
	if (answers->nr == answers->dedicated->sent ||
	    !(wc->wc_flags & IB_WC_WITH_INVALIDATE) ||
	    wc->ex.invalidate_rkey != answers->keys[answers->nr % MAX_ANSWERS]) {
		kxfer_link_protocol_error(lane->link,
					  "an answer that does not invalidate what it should");
		return NULL;
	}
	answers->nr++;
	if (post_recv(lane, answers)) {
		kxfer_link_fail(lane->link, -ECONNRESET);
		return NULL;
	}
	return answers->run;
}

/* In the CQ's context. */
static void answered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_answers *answers = container_of(wc->wr_cqe, struct kxfer_answers, cqe);
	struct kxfer_lane *lane = kxfer_dedicated_lane(answers->dedicated);
	struct kxfer_run *run;

	kxfer_fault_wc(DEDICATED_ANSWER, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "RECV of an answer");
		return;
	}
	spin_lock_bh(&lane->lock);
	run = take_locked(lane, answers, wc);
	spin_unlock_bh(&lane->lock);
	if (run)
		kxfer_run_answered(run);
}

/** kxfer_dedicated_recvs() - RECVs that the lane of a connection has */
u32 kxfer_dedicated_recvs(const struct kxfer_dedicated *dedicated)
{
	return dedicated->answered ? MAX_ANSWERS : 0;
}

static struct kxfer_answers *alloc_answers(struct kxfer_dedicated *dedicated)
{
	struct kxfer_answers *answers;

	answers = kxfer_fault(DEDICATED_ANSWERS) ? NULL : kzalloc(sizeof(*answers), GFP_KERNEL);
	if (!answers)
		return NULL;
	answers->dedicated = dedicated;
	answers->cqe.done = answered;
	answers->commands = kxfer_fault(DEDICATED_ANSWERS) ? NULL :
			    kcalloc(MAX_ANSWERS, COMMAND_BYTES, GFP_KERNEL);
	if (answers->commands)
		return answers;
	kfree(answers);
	return NULL;
}

/**
 * kxfer_dedicated_make_answers() - have RECVs for answers
 * @lane: of a dedicated connection; connected
 *
 * May sleep. Return: 0 or -errno; kxfer_dedicated_drop_answers() undoes a part too.
 */
int kxfer_dedicated_make_answers(struct kxfer_lane *lane)
{
	struct kxfer_dedicated *dedicated = lane->link->context;
	struct kxfer_answers *answers;
	int ret;
	u32 i;

	if (!dedicated->answered)
		return 0;
	answers = alloc_answers(dedicated);
	if (!answers)
		return -ENOMEM;
	dedicated->answers = answers;
	ret = kxfer_device_map(lane->link->dev->ibdev, answers->commands,
			       MAX_ANSWERS * COMMAND_BYTES, DMA_TO_DEVICE,
			       &answers->commands_dma);
	for (i = 0; i < MAX_ANSWERS && !ret; i++)
		ret = post_recv(lane, answers);
	return ret;
}

/** kxfer_dedicated_drop_answers() - the lane's QP is destroyed */
void kxfer_dedicated_drop_answers(struct kxfer_lane *lane)
{
	struct kxfer_answers *answers = kxfer_dedicated_of(lane->link)->answers;

	if (!answers || !answers->commands_dma)
		return;
	ib_dma_unmap_single(lane->link->dev->ibdev, answers->commands_dma,
			    MAX_ANSWERS * COMMAND_BYTES, DMA_TO_DEVICE);
	answers->commands_dma = 0;
}

/** kxfer_dedicated_free_answers() - with the connection */
void kxfer_dedicated_free_answers(struct kxfer_dedicated *dedicated)
{
	if (!dedicated->answers)
		return;
	kfree(dedicated->answers->commands);
	kfree(dedicated->answers);
}

/** kxfer_dedicated_answer_to_locked() - whose messages are answered; NULL: nobody's */
void kxfer_dedicated_answer_to_locked(struct kxfer_dedicated *dedicated, struct kxfer_run *run)
{
	if (dedicated->answers)
		dedicated->answers->run = run;
}

/**
 * kxfer_dedicated_command_locked() - put the command in front of the next message
 * @dedicated: its messages are answered, and its lane's lock is held
 * @wr: the message, of one SGE; gets two
 * @sge: that SGE
 * @rkey: that the answer is to invalidate
 *
 * To be called before the message is numbered.
 */
void kxfer_dedicated_command_locked(struct kxfer_dedicated *dedicated, struct ib_send_wr *wr,
				    const struct ib_sge *sge, u32 rkey)
{
	struct kxfer_answers *answers = dedicated->answers;
	u32 i = dedicated->sent % MAX_ANSWERS;

	answers->keys[i] = rkey;
	answers->commands[i] = (struct kxfer_responder_command) {
		.number = cpu_to_be32((u32)dedicated->sent),
		.rkey = cpu_to_be32(rkey),
	};
	ib_dma_sync_single_for_device(dedicated->link->dev->ibdev,
				      answers->commands_dma + i * COMMAND_BYTES,
				      COMMAND_BYTES, DMA_TO_DEVICE);
	answers->sge[i][0] = (struct ib_sge) {
		.addr = answers->commands_dma + i * COMMAND_BYTES,
		.length = COMMAND_BYTES,
		.lkey = dedicated->link->pd->local_dma_lkey,
	};
	answers->sge[i][1] = *sge;
	wr->sg_list = answers->sge[i];
	wr->num_sge = 2;
}
